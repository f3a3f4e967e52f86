// SPDX-License-Identifier: MIT
// A listener's certificate, from its file and after a reload.
#ifdef WEFT_HAVE_OPENSSL

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "weft/net/tls/test_certificates.h"
#include "weft/rt/loop/test_signal.h"
#include "weft/serve/config/config.h"
#include "weft/serve/config/watcher.h"
#include "weft/serve/server/test_client.h"
#include "weft/sys/path.h"

namespace weft::serve::config {
namespace {

class ConfigTlsTest : public serve::test::ServerTest {
 protected:
  void SetUp() override {
    if (!toml_available()) {
      GTEST_SKIP() << "this build has no TOML";
    }
    ServerTest::SetUp();
    directory_ = sys::make_private_directory().value();
    script_.on_frame = serve::test::echo;
    trust_ = *net::TlsClient::make({.ca_file = authority_.file()});
    (void)authority_.issue("first");
    (void)authority_.issue("second", net::test::TestAuthority::kHour, "DNS:elsewhere.example");
  }
  void TearDown() override {
    ServerTest::TearDown();
    if (!directory_.empty()) {
      std::filesystem::remove_all(directory_);
    }
  }
  // The certificate of that name, copied beside the file of configuration.
  void use(const std::string& name) const {
    for (const char* end : {".crt", ".key"}) {
      std::filesystem::copy_file(authority_.path(name + end), directory_ + "/server" + end,
                                 std::filesystem::copy_options::overwrite_existing);
    }
  }
  void write(const std::string& tls) const {
    std::ofstream(directory_ + "/server.toml")
        << "[[listener]]\nendpoint = \"tcp://127.0.0.1:0\"\n[listener.tls]\n" + tls;
  }
  // Whether a client that trusts the authority gets a certificate for this name.
  bool is_named(const std::string& endpoint, const std::string& name) const {
    return serve::test::Client(endpoint).start_tls(*trust_, name);
  }

  net::test::TestAuthority authority_;
  std::shared_ptr<net::TlsClient> trust_;
  std::string directory_;
};

TEST_F(ConfigTlsTest, AReloadReadsTheCertificateAgainAndABadOneChangesNothing) {
  const std::string text = "certificate_file = \"server.crt\"\nkey_file = \"server.key\"\n";
  use("first");
  write(text);
  Problems problems;
  const auto config = Config::load(directory_ + "/server.toml", {}, {}, &problems);
  ASSERT_TRUE(config) << problems.text();
  const auto now = (*config)->current();
  const std::string endpoint = listen(now->listeners[0].options, now->listeners[0].endpoint);
  serve::test::Client before(endpoint);
  ASSERT_TRUE(before.start_tls(*trust_));

  use("second");
  ASSERT_TRUE((*config)->reload(&problems)) << problems.text();
  EXPECT_TRUE(is_named(endpoint, "elsewhere.example"));
  EXPECT_FALSE(is_named(endpoint, "localhost"));
  before.send(1, "served");
  EXPECT_EQ(before.receive(), "served");

  std::ofstream(directory_ + "/server.crt") << "nonsense";
  EXPECT_EQ((*config)->reload(&problems).error(), Errc::invalid_argument);
  EXPECT_NE(problems.text().find(":4:1: listener[0].tls.certificate_file: "), std::string::npos) << problems.text();
  EXPECT_TRUE(is_named(endpoint, "elsewhere.example"));

  // Other files, also beside a rule that is refused: then the certificate stays.
  const std::string other = "certificate_file = \"" + authority_.path("first.crt") + "\"\nkey_file = \"" +
                            authority_.path("first.key") + "\"\n";
  write(other + "[server]\ncores = 7\n");
  EXPECT_EQ((*config)->reload(&problems).error(), Errc::invalid_argument);
  EXPECT_TRUE(is_named(endpoint, "elsewhere.example"));
  write(other);
  ASSERT_TRUE((*config)->reload(&problems)) << problems.text();
  EXPECT_TRUE(is_named(endpoint, "localhost"));

  write("");
  EXPECT_EQ((*config)->reload(&problems).error(), Errc::invalid_argument);
  EXPECT_NE(problems.text().find("TLS begins and ends only at a start"), std::string::npos) << problems.text();
}

// Also with the files that a reload has named.
TEST_F(ConfigTlsTest, AWatcherReloadsWhenAFileOfACertificateChanges) {
  use("first");
  write("certificate_file = \"server.crt\"\nkey_file = \"server.key\"\n");
  const auto config = Config::load(directory_ + "/server.toml");
  ASSERT_TRUE(config);
  const auto now = (*config)->current();
  const std::string endpoint = listen(now->listeners[0].options, now->listeners[0].endpoint);
  rt::test::Signal reported;
  const auto watcher = ConfigWatcher::start(**config, [&](const Result<void>&, const Problems&) { reported.give(); });
  ASSERT_TRUE(watcher) << watcher.error().message();
  ASSERT_TRUE(reported.take());
  const auto until_named = [&](const std::string& name) {
    while (!is_named(endpoint, name)) {
      ASSERT_TRUE(reported.take()) << name;
    }
  };
  until_named("localhost");
  use("second");
  until_named("elsewhere.example");

  std::filesystem::create_directory(directory_ + "/next");
  for (const char* const end : {".crt", ".key"}) {
    std::filesystem::copy_file(authority_.path("first") + end, directory_ + "/next/server" + end);
  }
  write("certificate_file = \"next/server.crt\"\nkey_file = \"next/server.key\"\n");
  until_named("localhost");
  for (const char* const end : {".crt", ".key"}) {
    std::filesystem::rename(directory_ + "/server" + end, directory_ + "/next/server" + end);
  }
  until_named("elsewhere.example");
}

}  // namespace
}  // namespace weft::serve::config

#endif
