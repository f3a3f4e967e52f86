// SPDX-License-Identifier: MIT
// Handshakes of TLS that take long: their turns have others in between, and all of them end.
#include "weft/net/tls/tls.h"

#ifdef WEFT_HAVE_OPENSSL

#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "weft/net/admit/handshake_turns.h"
#include "weft/net/tls/test_certificates.h"
#include "weft/serve/server/test_client.h"
#include <gtest/gtest.h>

namespace weft::serve {
namespace {

using test::Client;
using test::echo;

// A socket whose reads make a turn last longer than its share for handshakes.
class SlowStream final : public net::ByteStream {
 public:
  explicit SlowStream(std::unique_ptr<net::ByteStream> inner) noexcept : inner_(std::move(inner)) {}
  [[nodiscard]] int fd() const override { return inner_->fd(); }
  [[nodiscard]] sys::IoResult read(std::span<MutableBytes> into) override {
    const Instant end = sys::now() + 2 * net::HandshakeTurns::kLongest;
    while (sys::now() < end) {
    }
    return inner_->read(into);
  }
  [[nodiscard]] sys::IoResult write(std::span<const Bytes> from) override { return inner_->write(from); }
  void shutdown_write() override { inner_->shutdown_write(); }
  [[nodiscard]] std::string peer_address() const override { return inner_->peer_address(); }

 private:
  std::unique_ptr<net::ByteStream> inner_;
};

class TlsTurnTest : public test::ServerTest {};

TEST_F(TlsTurnTest, HandshakesThatComeTogetherAllEnd) {
  start_runtime(1);
  net::test::TestAuthority authority;
  const auto files = authority.issue("server");
  ListenerOptions options;
  options.limits.handshake_timeout = test::kLong;
  options.tls = *net::TlsServer::make({.certificate_file = files.certificate, .key_file = files.key});
  options.wrap = [](std::unique_ptr<net::ByteStream> stream) -> Result<std::unique_ptr<net::ByteStream>> {
    return std::unique_ptr<net::ByteStream>(std::make_unique<SlowStream>(std::move(stream)));
  };
  script_.on_frame = echo;
  const std::string endpoint = listen(options);
  const auto connector = *net::TlsClient::make({.ca_file = authority.file()});
  std::vector<std::thread> clients;
  for (int i = 0; i < 8; ++i) {
    clients.emplace_back([&] {
      Client client(endpoint);
      ASSERT_TRUE(client.start_tls(*connector)) << client.failure();
      client.send(1, "served");
      EXPECT_EQ(client.receive(), "served");
    });
  }
  for (std::thread& client : clients) {
    client.join();
  }
}

}  // namespace
}  // namespace weft::serve

#endif
