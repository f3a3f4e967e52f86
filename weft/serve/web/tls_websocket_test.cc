// SPDX-License-Identifier: MIT
// HTTP and WebSocket over TLS: the session that takes over a connection has the bytes that the layer of TLS holds; the
// announced end of the stream is the end of an answer, too.
#include "weft/net/tls/tls.h"

#ifdef WEFT_HAVE_OPENSSL

#include <memory>
#include <optional>
#include <string>

#include "weft/net/tls/test_certificates.h"
#include "weft/serve/server/test_client.h"
#include "weft/serve/web/body_stream.h"
#include "weft/serve/web/site.h"
#include "weft/serve/web/test_site.h"
#include "weft/serve/web/test_websocket.h"
#include <gtest/gtest.h>

namespace weft::serve::web {
namespace {

using serve::test::Client;
using serve::test::kLong;

class TlsWebSocketTest : public serve::test::ServerTest {};

TEST_F(TlsWebSocketTest, FramesThatComeWithTheRequestAreAnswered) {
  net::test::TestAuthority authority;
  const auto files = authority.issue("server");
  ListenerOptions options;
  options.limits.handshake_timeout = kLong;
  options.tls = *net::TlsServer::make({.certificate_file = files.certificate, .key_file = files.key});
  const auto connector = *net::TlsClient::make({.ca_file = authority.file()});
  Router router;
  ASSERT_TRUE(router.websocket("/echo", [](WebSocketSession& session, const Message& message) {
    (void)session.send(message.kind, message.body);
  }));
  const Site site(std::move(router));
  make_server();
  const auto bound = server_->listen<HttpCodec>("tcp://127.0.0.1:0", options, site.services(), site.codec());
  ASSERT_TRUE(bound) << bound.error().message();
  Client client(*bound);
  ASSERT_TRUE(client.start_tls(*connector)) << client.failure();
  const std::string large(300'000, 'x');
  client.write(
      "GET /echo HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
      "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n" +
      test::client_frame(0x81, "early") + test::client_frame(0x82, large) + test::client_frame(0x88, ""));
  std::string head;
  while (!head.ends_with("\r\n\r\n")) {
    const std::string byte = client.read(1);
    ASSERT_FALSE(byte.empty());
    head += byte;
  }
  EXPECT_TRUE(head.starts_with("HTTP/1.1 101 "));
  EXPECT_EQ(client.read_to_end(),
            test::server_frame(0x81, "early") + test::server_frame(0x82, large) + test::server_frame(0x88, ""));
  EXPECT_FALSE(client.reset());
}

class TlsEndTest : public test::SiteTest {
 protected:
  // The answer to GET /, which writes "part", and fails if `fails`, to a client of HTTP/1.0.
  void meet(bool fails) {
    ASSERT_TRUE(router_.get("/", [fails] {
      return Response::stream([fails](BodyWriter& out) -> rt::Task<Result<void>> {
        (void)co_await out.write("part");
        co_return fails ? Result<void>(Error(Errc::not_found, "no")) : Result<void>();
      });
    }));
    const auto files = authority_.issue("server");
    ListenerOptions options;
    options.limits = session_limits();
    options.limits.handshake_timeout = kLong;
    options.tls = *net::TlsServer::make({.certificate_file = files.certificate, .key_file = files.key});
    connector_ = *net::TlsClient::make({.ca_file = authority_.file()});
    Client client(listen_web({}, options));
    ASSERT_TRUE(client.start_tls(*connector_)) << client.failure();
    client.write("GET https://localhost/ HTTP/1.0\r\n\r\n");
    answer_ = client.read_to_end();
    reset_ = client.reset();
  }

  net::test::TestAuthority authority_;
  std::shared_ptr<const net::TlsClient> connector_;
  std::string answer_;
  bool reset_ = false;
};

TEST_F(TlsEndTest, IsAnnouncedAfterAWholeAnswer) {
  meet(false);
  EXPECT_TRUE(answer_.ends_with("\r\n\r\npart"));
  EXPECT_FALSE(reset_);
}

TEST_F(TlsEndTest, IsNotAnnouncedAfterAPartOfAnAnswer) {
  meet(true);
  EXPECT_TRUE(reset_);
}

}  // namespace
}  // namespace weft::serve::web

#endif
