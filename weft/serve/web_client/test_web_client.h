// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "weft/base/result.h"
#include "weft/rt/task/async_event.h"
#include "weft/rt/task/task_scope.h"
#include "weft/rt/task/task_time.h"
#include "weft/serve/client/client_host.h"
#include "weft/serve/web/test_site.h"
#include "weft/serve/web_client/http_client.h"
#include <gtest/gtest.h>

// For tests: a client on core 0, and peers that send any bytes.
namespace weft::serve::web::test {

// A codec whose frames are the bytes as they came.
struct RawCodec {
  struct Header {};
  struct Frame {
    Header header;
    Bytes body;
  };
  static constexpr std::size_t kHeaderMax = 1;

  [[nodiscard]] static Decoded<Frame> decode(Bytes input) noexcept {
    return input.empty() ? Decoded<Frame>::more(1) : Decoded<Frame>::whole({{}, input}, input.size());
  }
  [[nodiscard]] static Result<std::size_t> encode_header(const Header& /*header*/, Bytes /*body*/,
                                                         std::span<std::uint8_t, kHeaderMax> /*out*/) noexcept {
    return std::size_t{0};
  }
  [[nodiscard]] static Bytes trailer() noexcept { return {}; }
  [[nodiscard]] static std::size_t body_max() noexcept { return std::size_t{1} << 30; }
};
using RawSession = SessionOf<RawCodec>;

// A peer of the client that has its script: say(session, text) for each read. One core.
struct Liar {
  std::function<void(RawSession&, const std::string& text)>* say;

  void on_frame(RawSession& session, const RawCodec::Frame& frame) {
    (*say)(session, std::string(as_text(frame.body)));
  }
};

inline void answer(RawSession& session, std::string_view text) { (void)session.send_bytes(as_bytes(text)); }
// Answers, and ends the stream in order.
inline void answer_and_end(RawSession& session, std::string_view text) {
  answer(session, text);
  session.close();
}

[[nodiscard]] inline HttpClientOptions patient() {
  HttpClientOptions options;
  options.connect_timeout = options.head_timeout = options.body_timeout = options.idle_timeout = kLong;
  options.total_timeout = 4 * kLong;
  return options;
}

class HttpClientFixture : public SiteTest {
 protected:
  // "http://127.0.0.1:port" of a site.
  std::string serve_site(const HttpLimits& limits = {}) { return url_of(listen_web(limits)); }
  std::string serve_lies(std::function<void(RawSession&, const std::string& text)> say) {
    start_runtime(1);
    make_server();
    lies_ = std::move(say);
    auto bound = server_->listen<RawCodec>("tcp://127.0.0.1:0", {}, [this] { return Liar{&lies_}; });
    EXPECT_TRUE(bound) << bound.error().message();
    return url_of(*bound);
  }
  static std::string url_of(const std::string& endpoint) { return "http" + endpoint.substr(3); }

  // Runs the task on core 0 and waits for its end. The sessions of its client end with it.
  void run(rt::Task<void> task) {
    auto future = rt::spawn(runtime_->core(0).loop(), std::move(task));
    ASSERT_TRUE(future.wait_until(sys::now() + 4 * kLong));
    const auto ended = future.get();
    EXPECT_TRUE(ended) << ended.error().message();
  }

  std::function<void(RawSession&, const std::string& text)> lies_;
};

[[nodiscard]] inline std::unique_ptr<HttpClient> open_http(HttpClientOptions options = patient()) {
  auto http = HttpClient::open(std::make_shared<ClientHost>(*rt::Core::current()), std::move(options));
  EXPECT_TRUE(http) << http.error().message();
  return std::move(http).value();
}

// "200 body", or the code of the error with its fate.
[[nodiscard]] inline std::string outcome_text(const Result<ClientResponse>& answer) {
  if (answer) {
    return std::to_string(answer->status()) + " " + answer->body();
  }
  const Fate fate = answer.error().fate();
  return std::string(describe(answer.error().code())) + (fate == Fate::not_sent          ? ", not sent"
                                                         : fate == Fate::outcome_unknown ? ", unknown"
                                                         : fate == Fate::answered        ? ", answered"
                                                                                         : ", unsaid");
}

}  // namespace weft::serve::web::test
