// SPDX-License-Identifier: MIT
// The hosts for which an admin port answers.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "weft/serve/inspect/access.h"
#include "weft/serve/metrics/test_prometheus.h"
#include "weft/serve/server/admin.h"
#include "weft/serve/server/test_client.h"

namespace weft::serve {
namespace {

class AdminHostTest : public test::ServerTest {
 protected:
  void TearDown() override {
    admin_.reset();
    ServerTest::TearDown();
  }
  void make_admin(AdminOptions options = {}) {
    options.request_timeout = options.health_timeout = test::kLong;  // a busy machine may need that long
    options.scrapes = options.looks = {1'000, 1'000};
    auto admin = Admin::make(*runtime_, std::move(options));
    ASSERT_TRUE(admin) << admin.error().message();
    admin_ = std::move(*admin);
  }
  // The answer to a head without the end of its connection.
  std::string answer(const std::string& head) {
    test::Client client(admin_->endpoint());
    client.write(head + "Connection: close\r\n\r\n");
    return client.read_to_end();
  }
  std::string answer_for(const std::string& host, const std::string& path = "/healthz") {
    return answer("GET " + path + " HTTP/1.1\r\nHost: " + host + "\r\n");
  }
  bool takes(const std::string& host) { return answer_for(host).starts_with("HTTP/1.1 200 "); }
  bool refuses(const std::string& host, const std::string& path = "/healthz") {
    return answer_for(host, path).starts_with("HTTP/1.1 421 Misdirected Request\r\n");
  }

  std::unique_ptr<Admin> admin_;
};

TEST_F(AdminHostTest, NoPageAnswersForAHostThatIsNotThePorts) {
  make_admin();
  const char* const pages[] = {"/metrics",     "/healthz",        "/readyz",         "/debug",
                               "/debug/cores", "/debug/sessions", "/debug/handlers", "/nothing"};
  for (const char* page : pages) {
    EXPECT_TRUE(refuses("rebound.example:9100", page)) << page;
  }
  EXPECT_EQ(admin_->refusals().host, std::size(pages));
  const std::string page = answer_for("127.0.0.1:9100", "/metrics");
  const test::Scrape scrape = test::ScrapeReader::read(page.substr(page.find("\r\n\r\n") + 4));
  EXPECT_EQ(scrape.samples.at("weft_admin_requests_refused_total{reason=\"host\"}"), std::size(pages));
  EXPECT_EQ(scrape.samples.at("weft_admin_requests_refused_total{reason=\"token\"}"), 0);
  EXPECT_NE(answer_for("rebound.example").find("AdminOptions::hosts\n"), std::string::npos);
}

TEST_F(AdminHostTest, TheAddressesOfThisMachineAndLocalhostAreThePorts) {
  make_admin();
  for (const char* host : {"127.0.0.1", "127.0.0.1:80", "127.255.0.1:1", "[::1]", "[::1]:9100", "localhost:9100",
                           "LocalHost", "[::ffff:127.0.0.1]:9100"}) {
    EXPECT_TRUE(takes(host)) << host;
  }
  for (const char* host : {"128.0.0.1", "10.0.0.7:9100", "0.0.0.0", "[::2]", "localhost.example", "a.localhost",
                           "localhost.", "127.0.0.1.example", "2130706433", "0x7f.1", "127.1"}) {
    EXPECT_TRUE(refuses(host)) << host;
  }
}

TEST_F(AdminHostTest, TheTargetsHostCounts) {
  make_admin();
  const auto ask = [this](const std::string& target) {
    return answer("GET " + target + " HTTP/1.1\r\nHost: localhost\r\n");
  };
  EXPECT_TRUE(ask("http://rebound.example/healthz").starts_with("HTTP/1.1 421 "));
  EXPECT_TRUE(ask("http://127.0.0.1/healthz").starts_with("HTTP/1.1 200 "));
}

// Old probes send none, and browsers always send one.
TEST_F(AdminHostTest, AProbeWithoutAHostIsAnswered) {
  make_admin();
  EXPECT_TRUE(answer("GET /healthz HTTP/1.0\r\n").ends_with("alive\n"));
  EXPECT_TRUE(takes(""));
}

TEST_F(AdminHostTest, NamesOfTheOptionsAreThePorts) {
  AdminOptions options;
  options.hosts = {"admin.internal", "10.0.0.7", "[fd00::7]"};
  make_admin(std::move(options));
  for (const char* host : {"admin.internal", "Admin.Internal:443", "10.0.0.7:9100", "[fd00::7]:9100", "127.0.0.1"}) {
    EXPECT_TRUE(takes(host)) << host;
  }
  for (const char* host : {"admin.internal.example", "internal", "10.0.0.8", "[fd00::8]"}) {
    EXPECT_TRUE(refuses(host)) << host;
  }
}

TEST_F(AdminHostTest, ANameWithAWrongFormIsRefusedAtTheStart) {
  for (const char* wrong : {"", "admin:9100", "[fd00::7]:1", "two words", "a/b", "[fd00::7"}) {
    AdminOptions options;
    options.hosts = {wrong};
    EXPECT_EQ(Admin::make(*runtime_, std::move(options)).error(), Errc::invalid_argument) << wrong;
  }
  AdminOptions options;
  options.hosts = {std::string(kAdminHostBytesMax + 1, 'a')};
  EXPECT_EQ(Admin::make(*runtime_, options).error(), Errc::invalid_argument);
  options.hosts.assign(kAdminHostsMax + 1, "a");
  EXPECT_EQ(Admin::make(*runtime_, std::move(options)).error(), Errc::invalid_argument);
}

// A browser's page has no token, and does not reach ipc.
TEST_F(AdminHostTest, WithATokenAndOverIpcOnlyTheNamesOfTheOptionsLimitTheHosts) {
  AdminOptions options;
  options.token = "0123456789-token";
  const std::string token = "Authorization: Bearer " + options.token + "\r\n";
  const auto ask = [&](const std::string& host) {
    return answer("GET /healthz HTTP/1.1\r\nHost: " + host + "\r\n" + token);
  };
  make_admin(options);
  EXPECT_TRUE(ask("any.example").ends_with("alive\n"));
  EXPECT_TRUE(answer_for("any.example").starts_with("HTTP/1.1 401 "));
  EXPECT_EQ(admin_->refusals().token, 1u);
  options.hosts = {"admin.internal"};
  make_admin(options);
  EXPECT_TRUE(ask("admin.internal").ends_with("alive\n"));
  EXPECT_TRUE(ask("any.example").starts_with("HTTP/1.1 421 "));
  AdminOptions ipc;
  ipc.endpoint = "ipc://*";
  make_admin(ipc);
  EXPECT_TRUE(takes("any.example"));
  ipc.hosts = {"admin.internal"};
  make_admin(ipc);
  EXPECT_TRUE(refuses("any.example"));
}

}  // namespace
}  // namespace weft::serve
