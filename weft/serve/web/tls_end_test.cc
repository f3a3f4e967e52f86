// SPDX-License-Identifier: MIT
// Ends of HTTP over TLS: the announced end of the stream is the end of an answer, too.
#include "weft/net/tls.h"

#ifdef WEFT_HAVE_OPENSSL

#include <memory>
#include <string>

#include "weft/net/test_certificates.h"
#include "weft/serve/web/body_stream.h"
#include "weft/serve/web/test_site.h"
#include <gtest/gtest.h>

namespace weft::serve::web {
namespace {

using serve::test::Client;
using serve::test::kLong;

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
    client.write("GET / HTTP/1.0\r\n\r\n");
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
