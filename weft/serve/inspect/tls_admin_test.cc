// SPDX-License-Identifier: MIT
// An admin port that other machines reach.
#ifdef WEFT_HAVE_OPENSSL

#include <memory>
#include <string>

#include "weft/net/tls/test_certificates.h"
#include "weft/serve/server/admin.h"
#include "weft/serve/server/test_client.h"

namespace weft::serve {
namespace {

class AdminTlsTest : public test::ServerTest {
 protected:
  void SetUp() override {
    ServerTest::SetUp();
    const auto files = authority_.issue("server");
    options_.tls = *net::TlsServer::make({.certificate_file = files.certificate, .key_file = files.key});
    options_.endpoint = "tcp://0.0.0.0:0";
    options_.remote = true;
    options_.request_timeout = options_.health_timeout = test::kLong;  // a busy machine may need that long
  }

  net::test::TestAuthority authority_;
  AdminOptions options_;
};

TEST_F(AdminTlsTest, APortThatOtherMachinesReachAnswersOverTlsToTheToken) {
  EXPECT_NE(Admin::make(*runtime_, options_).error().message().find("AdminOptions::token is empty"), std::string::npos);
  options_.token = "0123456789-token";
  const auto admin = Admin::make(*runtime_, options_);
  ASSERT_TRUE(admin) << admin.error().message();
  const std::string port = (*admin)->endpoint().substr((*admin)->endpoint().rfind(':'));
  const auto trust = *net::TlsClient::make({.ca_file = authority_.file()});
  const auto ask = [&](const std::string& fields) {
    test::Client client("tcp://127.0.0.1" + port);
    EXPECT_TRUE(client.start_tls(*trust)) << client.failure();
    client.write("GET /healthz HTTP/1.1\r\nHost: x\r\n" + fields + "Connection: close\r\n\r\n");
    return client.read_to_end();
  };
  EXPECT_TRUE(ask("").starts_with("HTTP/1.1 401 "));
  EXPECT_TRUE(ask("Authorization: Bearer 0123456789-token\r\n").ends_with("alive\n"));
  test::Client plain("tcp://127.0.0.1" + port);
  plain.write("GET /healthz HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer 0123456789-token\r\n\r\n");
  EXPECT_EQ(plain.read_to_end().find("HTTP/"), std::string::npos);
}

}  // namespace
}  // namespace weft::serve

#endif
