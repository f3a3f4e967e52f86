// SPDX-License-Identifier: MIT
#pragma once

#ifdef WEFT_HAVE_OPENSSL

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>

#include "tests/conformance/test_certificates.h"
#include "tests/conformance/wire.h"

// Sockets over tls+tcp, and peers by hand.
namespace weft::conformance {

using namespace std::chrono_literals;
using net::test::CertificateFiles;
using net::test::TestAuthority;
using Status = sys::IoResult::Status;

inline constexpr const char* kPlace = "tls+tcp://127.0.0.1:*";

[[nodiscard]] inline std::string_view reason_of(const MonitorEvent& event) {
  return event.reason.text() == nullptr ? std::string_view() : std::string_view(event.reason.text());
}

// A stream that passes on its first bytes only, each write in pieces. Behind those it swallows all.
class CutStream final : public net::ByteStream {
 public:
  CutStream(std::unique_ptr<net::ByteStream> below, std::size_t& passes, std::size_t piece)
      : below_(std::move(below)), passes_(passes), piece_(piece) {}

  [[nodiscard]] int fd() const override { return below_->fd(); }
  [[nodiscard]] sys::IoResult read(std::span<MutableBytes> into) override { return below_->read(into); }
  [[nodiscard]] sys::IoResult write(std::span<const Bytes> from) override {
    const std::size_t size = std::min({from[0].size(), piece_, passes_});
    const Bytes some = from[0].first(size);
    const sys::IoResult result = size == 0 ? sys::IoResult{Status::done, 0, 0} : below_->write({&some, 1});
    passes_ -= result.bytes;
    return passes_ == 0 ? sys::IoResult{Status::done, from[0].size(), 0} : result;
  }
  void shutdown_write() override { below_->shutdown_write(); }
  [[nodiscard]] std::string peer_address() const override { return below_->peer_address(); }

 private:
  std::unique_ptr<net::ByteStream> below_;
  std::size_t& passes_;
  const std::size_t piece_;
};

class Tls : public testing::Test {
 protected:
  static constexpr Duration kLong = 20s;

  [[nodiscard]] Socket make(SocketType type) {
    Socket socket = context_.socket(type).value();
    EXPECT_TRUE(socket.set(option::receive_timeout, kLong));
    EXPECT_TRUE(socket.set(option::send_timeout, kLong));
    EXPECT_TRUE(socket.set(option::handshake_timeout, kLong));
    EXPECT_TRUE(socket.set(option::reconnect_interval, 2ms));
    EXPECT_TRUE(socket.set(option::linger, 0ms));
    EXPECT_TRUE(socket.watch_events());
    return socket;
  }
  // A server with a certificate that demands none.
  [[nodiscard]] std::string bind(Socket& socket, const CertificateFiles& files = certificate()) {
    EXPECT_TRUE(socket.set(option::tls_certificate, files.certificate));
    EXPECT_TRUE(socket.set(option::tls_key, files.key));
    const auto bound = socket.bind(kPlace);
    EXPECT_TRUE(bound) << bound.error().message();
    return bound ? *bound : std::string();
  }
  // A server that demands certificates, and has one.
  [[nodiscard]] std::string bind_mutual(Socket& socket) {
    EXPECT_TRUE(socket.set(option::tls_authorities, authority().file()));
    return bind(socket);
  }
  static void connect(Socket& socket, const std::string& endpoint) {
    EXPECT_TRUE(socket.set(option::tls_authorities, authority().file()));
    const auto connected = socket.connect(endpoint);
    EXPECT_TRUE(connected) << connected.error().message();
  }
  static MonitorEvent wait_for(Socket& socket, EventKind kind) { return test::wait_for_event(socket, kind, kLong); }
  static void expect_refused(Socket& socket, std::string_view text, Errc code = Errc::protocol_error) {
    const MonitorEvent event = wait_for(socket, EventKind::handshake_failed);
    EXPECT_EQ(event.reason.code(), code) << event.reason.message();
    EXPECT_EQ(reason_of(event), text);
    EXPECT_GE(socket.statistics()->handshakes_failed, 1u);
  }
  static void exchange(Socket& push, Socket& pull, std::string_view text = "hello") {
    ASSERT_TRUE(push.send(text));
    const auto got = pull.recv();
    ASSERT_TRUE(got) << got.error().message();
    EXPECT_EQ(got->text(), text);
  }
  // Whatever a bad peer did, the next good one is served.
  void expect_serves(Socket& pull, const std::string& endpoint) {
    Socket push = make(SocketType::push);
    give_certificate(push);
    connect(push, endpoint);
    exchange(push, pull, "next");
  }
  // A connection to the endpoint without TLS.
  [[nodiscard]] static BytePeer dial_plain(const std::string& endpoint) {
    return BytePeer::dial(endpoint.substr(endpoint.find("tcp://")));
  }
  [[nodiscard]] static std::unique_ptr<net::ByteStream> dial_stream(const std::string& endpoint) {
    net::Dialer dialer(*net::parse_endpoint(endpoint, false), {});
    auto progress = dialer.begin();
    while (progress && *progress == net::Progress::pending) {
      EXPECT_TRUE(wait_fd(dialer.fd(), dialer.interest()));
      progress = dialer.finish();
    }
    EXPECT_TRUE(progress);
    return dialer.take_stream();
  }
  static bool wait_fd(int fd, sys::Interest interest) {
    sys::PollFd polled{.fd = fd, .want = interest};
    return sys::poll_fds({&polled, 1}, kLong).value_or(std::size_t{0}) == 1;
  }
  // A client that writes through a CutStream and has not begun.
  [[nodiscard]] static std::unique_ptr<net::ByteStream> wrap_cut(const std::string& endpoint, std::size_t& passes,
                                                                 std::size_t piece) {
    auto client = net::TlsClient::make({authority().file(), true, certificate().certificate, certificate().key});
    return (*client)->wrap(std::make_unique<CutStream>(dial_stream(endpoint), passes, piece), "localhost").value();
  }
  // Shakes hands as far as the cut permits. Returns false if the server ended the connection before.
  [[nodiscard]] static bool shake_hands(net::ByteStream& client, const std::size_t& passes) {
    while (passes > 0 && !client.state().established) {
      if (client.read({}).status == Status::failed) {
        return false;
      }
      if (client.state().unsent) {
        if (client.write({}).status == Status::failed) {
          return false;
        }
      } else if (passes > 0 && !client.state().established) {
        EXPECT_TRUE(wait_fd(client.fd(), sys::Interest::readable));
      }
    }
    return true;
  }
  [[nodiscard]] static std::unique_ptr<net::ByteStream> dial_cut(const std::string& endpoint, std::size_t& passes,
                                                                 std::size_t piece) {
    auto stream = wrap_cut(endpoint, passes, piece);
    EXPECT_TRUE(shake_hands(*stream, passes)) << stream->state().failure.message();
    return stream;
  }

  Context context_;
};

}  // namespace weft::conformance

#endif
