// SPDX-License-Identifier: MIT
// A WebSocket over TLS: the session that takes over a connection has the bytes that the layer of TLS holds.
#include "weft/net/tls.h"

#ifdef WEFT_HAVE_OPENSSL

#include <optional>
#include <string>

#include "weft/net/test_certificates.h"
#include "weft/serve/server/test_client.h"
#include "weft/serve/web/site.h"
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

}  // namespace
}  // namespace weft::serve::web

#endif
