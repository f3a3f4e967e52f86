// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "weft/base/random.h"
#include "weft/net/dialer.h"
#include "weft/net/tls/tls.h"
#include "weft/rt/loop/test_signal.h"
#include "weft/rt/task/task_scope.h"
#include "weft/serve/frame/delimiter_codec.h"
#include "weft/serve/frame/header_codec.h"
#include "weft/serve/server/server.h"
#include "weft/sys/clock.h"
#include "weft/sys/poll.h"
#include <gtest/gtest.h>

namespace weft::serve::test {

using rt::test::Signal;
using HeaderSession = SessionOf<HeaderCodec>;

inline constexpr Duration kLong = std::chrono::seconds(30);  // never passes unless something is broken

[[nodiscard]] inline std::string frame_of(std::uint32_t id, std::string_view body) {
  std::string frame(HeaderCodec::kHeaderSize + body.size(), '\0');
  const auto size = encode_frame(HeaderCodec(), FrameHeader{id, 0}, as_bytes(body),
                                 MutableBytes(reinterpret_cast<std::uint8_t*>(frame.data()), frame.size()));
  EXPECT_TRUE(size);
  return frame;
}

// Starts tasks inside each other, until one more would begin in the next turn. The innermost one runs `last`.
inline rt::Task<void> run_nested(rt::TaskScope* scope, std::function<rt::Task<void>()> last) {
  if (rt::detail::nested_too_deep()) {
    co_return co_await last();
  }
  EXPECT_TRUE(scope->spawn(run_nested(scope, std::move(last))));
}

// Client: the other end of a connection. It has no protocol, and its calls block.
class Client {
 public:
  explicit Client(const std::string& endpoint, const sys::SocketOptions& options = {}) {
    net::Dialer dialer(*net::parse_endpoint(endpoint, false), options);
    auto progress = dialer.begin();
    while (progress && *progress == net::Progress::pending) {
      EXPECT_TRUE(wait(dialer.fd(), sys::Interest::writable));
      progress = dialer.finish();
    }
    EXPECT_TRUE(progress) << progress.error().message();
    stream_ = dialer.take_stream();
  }

  // Speaks TLS from now on. Returns false if the handshake failed; failure() returns the reason, unless the peer just
  // closed.
  bool start_tls(const net::TlsClient& tls, const std::string& name = "localhost") {
    stream_ = *tls.wrap(std::move(stream_), name);
    while (!stream_->state().established) {
      const auto status = stream_->read({}).status;
      reset_ = status == sys::IoResult::Status::failed;
      if (reset_ || (status == sys::IoResult::Status::would_block && !stream_->state().established &&
                     !wait(stream_->fd(), sys::Interest::readable))) {
        return false;
      }
    }
    return true;
  }
  [[nodiscard]] std::string failure() const { return stream_->state().failure.text(); }

  void write(std::string_view bytes) { EXPECT_EQ(write_some(bytes, kLong), bytes.size()); }
  // Writes until the kernel takes nothing for `patience`, or the connection fails. Returns the number of bytes taken.
  std::size_t write_some(std::string_view bytes, Duration patience) {
    const std::size_t size = bytes.size();
    while (!bytes.empty() || stream_->state().unsent) {
      const Bytes from = as_bytes(bytes);
      const sys::IoResult result = stream_->write({&from, 1});
      if (result.status == sys::IoResult::Status::done) {
        bytes.remove_prefix(result.bytes);
      } else if (result.status != sys::IoResult::Status::would_block ||
                 !wait(stream_->fd(), sys::Interest::writable, patience)) {
        break;
      }
    }
    return size - bytes.size();
  }
  void send(std::uint32_t id, std::string_view body) { write(frame_of(id, body)); }
  void end_writing() { stream_->shutdown_write(); }
  void close() { stream_.reset(); }

  // Reads `size` bytes; fewer when the stream ends.
  std::string read(std::size_t size) {
    while (input_.size() < size && read_more()) {
    }
    std::string bytes = input_.substr(0, size);
    input_.erase(0, bytes.size());
    return bytes;
  }
  std::string read_to_end() {
    while (read_more()) {
    }
    return std::move(input_);
  }
  // Reads one frame's body; null: the stream has ended.
  std::optional<std::string> receive() {
    const std::string header = read(HeaderCodec::kHeaderSize);
    if (header.size() < HeaderCodec::kHeaderSize) {
      return std::nullopt;
    }
    const auto size = load_big_endian<std::uint32_t>(reinterpret_cast<const std::uint8_t*>(header.data()) + 6);
    return read(size);
  }
  [[nodiscard]] bool reset() const noexcept { return reset_; }
  [[nodiscard]] net::ByteStream& stream() noexcept { return *stream_; }

 private:
  static bool wait(int fd, sys::Interest interest, Duration timeout = kLong) {
    sys::PollFd polled{.fd = fd, .want = interest};
    return sys::poll_fds({&polled, 1}, timeout).value_or(std::size_t{0}) == 1;
  }
  bool read_more() {
    std::uint8_t bytes[16 * 1024];
    for (;;) {
      MutableBytes into(bytes);
      const sys::IoResult result = stream_->read({&into, 1});
      if (result.status == sys::IoResult::Status::would_block) {
        if (!wait(stream_->fd(), sys::Interest::readable)) {
          ADD_FAILURE() << "nothing to read";
          return false;
        }
        continue;
      }
      reset_ = result.status == sys::IoResult::Status::failed;
      input_.append(as_text(Bytes(bytes).first(result.bytes)));
      return result.status == sys::IoResult::Status::done;
    }
  }

  std::unique_ptr<net::ByteStream> stream_;
  std::string input_;
  bool reset_ = false;
};

// A service made of functions, the same for every core.
struct Script {
  std::function<void(HeaderSession&)> on_open;
  std::function<void(HeaderSession&, const HeaderCodec::Frame&)> on_frame;
  std::function<void(HeaderSession&, const Error&)> on_close;
};
struct ScriptService {
  const Script* script;

  void on_open(HeaderSession& session) {
    if (script->on_open) {
      script->on_open(session);
    }
  }
  void on_frame(HeaderSession& session, const HeaderCodec::Frame& frame) {
    if (script->on_frame) {
      script->on_frame(session, frame);
    }
  }
  void on_close(HeaderSession& session, const Error& why) {
    if (script->on_close) {
      script->on_close(session, why);
    }
  }
};
inline void echo(HeaderSession& session, const HeaderCodec::Frame& frame) {
  (void)session.send(frame.header, frame.body);
}

class ServerTest : public testing::Test {
 protected:
  void SetUp() override { start_runtime(2); }
  void TearDown() override {
    if (server_ != nullptr) {
      EXPECT_TRUE(server_->stop(sys::now() + kLong));
    }
    server_.reset();
    runtime_.reset();
  }

  void start_runtime(unsigned cores, std::size_t lane_capacity = rt::RuntimeOptions().lane_capacity) {
    rt::RuntimeOptions options;
    options.cores = cores;
    options.pinning = rt::Pinning::never;
    options.wait_mode = sync::WaitMode::eco;
    options.lane_capacity = lane_capacity;
    auto runtime = rt::Runtime::start(options);
    ASSERT_TRUE(runtime) << runtime.error().message();
    server_.reset();
    runtime_ = std::move(*runtime);
  }
  void make_server(const ServerOptions& options = {}) {
    auto server = Server::make(*runtime_, options);
    ASSERT_TRUE(server) << server.error().message();
    server_ = std::move(*server);
  }
  // Starts a listener whose sessions run script_.
  std::string listen(const ListenerOptions& options = {}, std::string_view endpoint = "tcp://127.0.0.1:0") {
    if (server_ == nullptr) {
      make_server();
    }
    auto bound = server_->listen<HeaderCodec>(endpoint, options, [this] { return ScriptService{&script_}; });
    EXPECT_TRUE(bound) << bound.error().message();
    return bound ? *bound : "";
  }
  // A stop that aborts all sessions, and waits for all, however busy the machine is.
  Result<void> stop_now() {
    server_->begin_stop(sys::now());
    return server_->stop(sys::now() + kLong);
  }
  // Waits until the server's counters fulfil the condition: a core counts after its peers have received the result.
  template <typename Condition>
  void until(Condition condition) {
    const Instant limit = sys::now() + kLong;
    while (!condition(server_->counters()) && sys::now() < limit) {
      std::this_thread::yield();
    }
    EXPECT_TRUE(condition(server_->counters()));
  }
  // Lets on_close() give a signal and keep the reason.
  void watch_close() {
    script_.on_close = [this](HeaderSession& session, const Error&) {
      reason_ = session.reason();
      closed_.give();
    };
  }
  std::uint64_t closed_for(CloseReason reason) { return server_->counters().closed_for(reason); }

  Script script_;
  Signal closed_;
  std::atomic<CloseReason> reason_{CloseReason::service_failed};  // of the last session that closed, on any core
  std::unique_ptr<rt::Runtime> runtime_;
  std::unique_ptr<Server> server_;
};

}  // namespace weft::serve::test
