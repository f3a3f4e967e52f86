// SPDX-License-Identifier: MIT
#include "bench/library.h"
#include "weft/weft.h"

namespace bench {
namespace {

void check(const weft::Error& error, const char* call) {
  if (error.code() != weft::Errc::ok) {
    fail(std::string("weft: ") + call + ": " + error.message());
  }
}

weft::SocketType type_of(SocketType type) {
  switch (type) {
    case SocketType::push: return weft::SocketType::push;
    case SocketType::pull: return weft::SocketType::pull;
    case SocketType::req: return weft::SocketType::req;
    case SocketType::rep: break;
  }
  return weft::SocketType::rep;
}

class WeftSocket final : public Socket {
 public:
  explicit WeftSocket(weft::Socket socket) : socket_(std::move(socket)) {
    check(socket_.set(weft::option::send_high_water_mark, 1000).error(), "set");
    check(socket_.set(weft::option::receive_high_water_mark, 1000).error(), "set");
    check(socket_.set(weft::option::heartbeat_interval, weft::Duration::zero()).error(), "set");
    check(socket_.set(weft::option::linger, weft::Duration::zero()).error(), "set");
  }

  std::string bind(const std::string& endpoint) override {
    auto exact = socket_.bind(endpoint);
    check(exact.error(), "bind");
    return std::move(exact).value();
  }
  void connect(const std::string& endpoint) override { check(socket_.connect(endpoint).error(), "connect"); }
  void send(const void* data, std::size_t size) override {
    const auto sent = socket_.send(weft::Bytes(static_cast<const std::uint8_t*>(data), size));
    if (!sent) [[unlikely]] {
      check(sent.error(), "send");
    }
  }
  std::size_t receive(void* target, std::size_t capacity) override {
    const auto received = socket_.recv_into(weft::MutableBytes(static_cast<std::uint8_t*>(target), capacity));
    if (!received) [[unlikely]] {
      check(received.error(), "receive");
    }
    return received->size;
  }

 private:
  weft::Socket socket_;
};

class WeftContext final : public Context {
 public:
  explicit WeftContext(const weft::ContextOptions& options) : context_(options) {}
  std::unique_ptr<Socket> open_socket(SocketType type) override {
    auto socket = context_.socket(type_of(type));
    check(socket.error(), "socket");
    return std::make_unique<WeftSocket>(std::move(socket).value());
  }

 private:
  weft::Context context_;
};

class WeftLibrary final : public Library {
 public:
  std::string name() const override { return "weft"; }
  std::string version() const override { return WEFT_BENCH_VERSION; }
  std::unique_ptr<Context> open_context(WaitMode mode) override {
    weft::ContextOptions options;
    if (mode == WaitMode::eco) {
      options.wait_mode = weft::WaitMode::eco;
    }
    return std::make_unique<WeftContext>(options);
  }
};

}  // namespace

std::unique_ptr<Library> make_weft() { return std::make_unique<WeftLibrary>(); }

}  // namespace bench
