// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "weft/serve/client/test_serve_client.h"
#include "weft/serve/rpc/rpc_client.h"
#include "weft/serve/rpc/rpc_service.h"

namespace weft::serve::test {

struct Sum {
  std::int64_t a = 0;
  std::int64_t b = 0;
};

}  // namespace weft::serve::test

template <>
struct weft::serve::rpc::Body<weft::serve::test::Sum> {
  using Sum = weft::serve::test::Sum;
  static Result<Bytes> encode(const Sum& sum, Scratch& scratch) {
    const MutableBytes room = WEFT_TRY(scratch.take(16));
    store_big_endian(room.data(), sum.a);
    store_big_endian(room.data() + 8, sum.b);
    return Bytes(room);
  }
  static Result<Sum> decode(Bytes bytes) {
    if (bytes.size() != 16) {
      return Error(Errc::protocol_error, "a sum has 16 bytes");
    }
    return Sum{load_big_endian<std::int64_t>(bytes.data()), load_big_endian<std::int64_t>(bytes.data() + 8)};
  }
};

// For tests of calls: a server with methods, clients of it, and peers that send any frames.
namespace weft::serve::test {

using Add = rpc::Method<"calc.add", Sum, std::int64_t>;
using Upper = rpc::Method<"text.upper", std::string, std::string, 7>;
using Wait = rpc::Method<"wait", std::string, std::string>;
using Ping = rpc::Method<"ping", rpc::Empty, rpc::Empty>;

inline std::unique_ptr<rpc::Client> open_rpc(const std::string& endpoint, rpc::ClientOptions options = {}) {
  options.connection.reconnect_first = std::chrono::milliseconds(2);
  options.connection.reconnect_max = std::chrono::milliseconds(20);
  options.connection.connect_timeout = kLong;
  if (options.timeout == rpc::ClientOptions().timeout) {
    options.timeout = kLong;  // a busy machine may need that long
  }
  auto client = rpc::Client::open(std::make_shared<ClientHost>(*rt::Core::current()), endpoint, std::move(options));
  EXPECT_TRUE(client) << client.error().message();
  return std::move(client).value();
}

[[nodiscard]] inline rpc::CallOptions for_at_most(Duration timeout) {
  rpc::CallOptions options;
  options.timeout = timeout;
  return options;
}

inline rt::Task<void> await_connection(rpc::Client* client) {
  const auto connected = co_await client->connected();
  EXPECT_TRUE(connected) << connected.error().message();
}
inline rt::Task<void> end_client(rpc::Client* client) {
  const auto closed = co_await client->close(in_long());
  EXPECT_TRUE(closed) << closed.error().message();
}

// Awaits the call, for a task of its own.
template <typename M>
rt::Task<void> call_into(rpc::Client* client, typename M::Request request, Result<typename M::Response>* into,
                         rpc::CallOptions options = {}) {
  *into = co_await client->call<M>(request, options);
}

class RpcFixture : public ClientFixture {
 protected:
  // Serves the methods, and returns the endpoint.
  std::string serve(rpc::Methods methods, const rpc::ServiceOptions& limits = {}, const ListenerOptions& options = {}) {
    if (server_ == nullptr) {
      make_server();
    }
    service_.emplace(std::move(methods), limits);
    const auto bound = rpc::listen(*server_, "tcp://127.0.0.1:0", *service_, options);
    EXPECT_TRUE(bound) << bound.error().message();
    return bound ? *bound : "";
  }
  // Waits until the counters of the service fulfil the condition: a core counts after its peer has the answer.
  template <typename Condition>
  void until_counted(Condition condition) {
    const Instant limit = sys::now() + kLong;
    while (!condition(service_->counts()) && sys::now() < limit) {
      std::this_thread::yield();
    }
    EXPECT_TRUE(condition(service_->counts()));
  }

  std::optional<rpc::Service> service_;
};

// RawCaller: a client that sends any frames. Its calls block.
class RawCaller {
 public:
  explicit RawCaller(const std::string& endpoint) : client_(endpoint) {}

  static std::string frame(const rpc::Header& header, std::string_view body = {}) {
    std::string bytes(rpc::Codec::kHeaderMax + body.size(), '\0');
    const auto size = encode_frame(rpc::Codec(), header, as_bytes(body),
                                   MutableBytes(reinterpret_cast<std::uint8_t*>(bytes.data()), bytes.size()));
    EXPECT_TRUE(size) << size.error().message();
    bytes.resize(size ? *size : 0);
    return bytes;
  }
  static std::string request(std::uint64_t id, std::string_view method, std::string_view body = {},
                             std::uint64_t time_us = 0) {
    rpc::Header header;
    header.id = id;
    header.method = method;
    header.time_us = time_us;
    return frame(header, body);
  }
  static std::string cancel(std::uint64_t id) {
    rpc::Header header;
    header.type = rpc::FrameType::cancel;
    header.id = id;
    return frame(header);
  }

  void write(std::string_view bytes) { client_.write(bytes); }
  struct Got {
    std::uint64_t id = 0;
    rpc::Status status{};
    std::uint32_t code = 0;
    std::string body;

    friend bool operator==(const Got&, const Got&) = default;
  };
  // The next answer; nullopt: the stream has ended.
  std::optional<Got> receive() {
    std::string bytes = client_.read(rpc::Codec::kHeaderSize);
    if (bytes.size() < rpc::Codec::kHeaderSize) {
      return std::nullopt;
    }
    auto decoded = rpc::Codec().decode(as_bytes(bytes));
    if (!decoded.complete() && !decoded.failed()) {
      bytes += client_.read(decoded.least - bytes.size());
      decoded = rpc::Codec().decode(as_bytes(bytes));
    }
    EXPECT_TRUE(decoded.complete()) << decoded.error.message();
    EXPECT_EQ(decoded.frame.header.type, rpc::FrameType::answer);
    return Got{decoded.frame.header.id, decoded.frame.header.status, decoded.frame.header.number,
               std::string(as_text(decoded.frame.body))};
  }
  void close() { client_.close(); }

 private:
  Client client_;
};

}  // namespace weft::serve::test
