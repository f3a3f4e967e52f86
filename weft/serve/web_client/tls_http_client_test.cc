// SPDX-License-Identifier: MIT
#include "weft/net/tls/tls.h"

#ifdef WEFT_HAVE_OPENSSL

#include <string>
#include <utility>
#include <vector>

#include "weft/net/tls/test_certificates.h"
#include "weft/serve/web_client/test_web_client.h"
#include <gtest/gtest.h>

namespace weft::serve::web {
namespace {

using net::test::TestAuthority;
using test::open_http;
using test::outcome_text;
using test::patient;

class TlsHttpClientTest : public test::HttpClientFixture {
 protected:
  std::string serve_tls(const char* names, std::vector<std::string> protocols = {"http/1.1"}) {
    const auto files = authority_.issue("server", TestAuthority::kHour, names);
    net::TlsServerOptions tls{.certificate_file = files.certificate, .key_file = files.key};
    tls.protocols = std::move(protocols);
    ListenerOptions options;
    options.limits.handshake_timeout = serve::test::kLong;
    options.tls = *net::TlsServer::make(tls);
    EXPECT_TRUE(router_.get("/", [] { return "hello"; }));
    EXPECT_TRUE(router_.post("/size", [](const Request& request) { return std::to_string(request.body().size()); }));
    return "https" + listen_web({}, options).substr(3);
  }
  [[nodiscard]] HttpClientOptions trusting(std::vector<std::string> protocols = {"http/1.1"}) const {
    HttpClientOptions options = patient();
    net::TlsClientOptions tls;
    tls.ca_file = authority_.file();
    tls.protocols = std::move(protocols);
    options.tls = *net::TlsClient::make(tls);
    return options;
  }
  static rt::Task<void> get_into(std::string url, HttpClientOptions options, Result<std::string>* into) {
    const auto http = open_http(std::move(options));
    auto answer = co_await http->get(url);
    *into = answer ? Result<std::string>(answer->take_body()) : Result<std::string>(answer.error());
  }
  Result<std::string> get(const std::string& url, const HttpClientOptions& options) {
    Result<std::string> outcome;
    run(get_into(url, options, &outcome));
    return outcome;
  }

  TestAuthority authority_;
};

rt::Task<void> use_tls(std::string url, HttpClientOptions options) {
  const auto http = open_http(std::move(options));
  EXPECT_EQ(outcome_text(co_await http->get(url)), "200 hello");
  const auto size = co_await http->post(url + "/size", std::string(500'000, 'b'));
  EXPECT_EQ(outcome_text(size), "200 500000");
  EXPECT_EQ(http->counts().connected.value(), 1u);
  EXPECT_TRUE(co_await http->close(sys::now() + serve::test::kLong));
}
TEST_F(TlsHttpClientTest, HttpsIsHttpOverTls) { run(use_tls(serve_tls("IP:127.0.0.1"), trusting())); }

TEST_F(TlsHttpClientTest, ACertificateIsForTheHostOfTheUrl) {
  const std::string url = serve_tls("DNS:elsewhere.test");
  const auto refused = get(url, trusting());
  EXPECT_EQ(refused.error(), Errc::protocol_error) << refused.error().message();
  EXPECT_EQ(refused.error().fate(), Fate::not_sent);
  EXPECT_NE(refused.error().message().find("mismatch"), std::string::npos) << refused.error().message();
}

TEST_F(TlsHttpClientTest, AServerOfAnotherAuthorityIsRefused) {
  const std::string url = serve_tls("IP:127.0.0.1");
  TestAuthority other("another");
  HttpClientOptions options = patient();
  options.tls = *net::TlsClient::make({.ca_file = other.file()});
  EXPECT_EQ(get(url, options).error(), Errc::protocol_error);
  EXPECT_FALSE(get(url, patient()));  // nor does the system trust it
}

TEST_F(TlsHttpClientTest, AServerThatChoosesAnotherProtocolIsRefused) {
  const std::string url = serve_tls("IP:127.0.0.1", {"h2"});
  const auto refused = get(url, trusting({"h2"}));
  EXPECT_EQ(refused.error(), Errc::protocol_error) << refused.error().message();
  EXPECT_NE(refused.error().message().find("ALPN"), std::string::npos) << refused.error().message();
}

TEST_F(TlsHttpClientTest, ARedirectToHttpIsNotFollowed) {
  EXPECT_TRUE(router_.get("/down", [] { return Response(302).set("Location", "http://127.0.0.1/"); }));
  HttpClientOptions options = trusting();
  options.redirects_max = 3;
  const auto refused = get(serve_tls("IP:127.0.0.1") + "/down", options);
  EXPECT_EQ(refused.error(), Errc::not_permitted) << refused.error().message();
}

}  // namespace
}  // namespace weft::serve::web

#endif
