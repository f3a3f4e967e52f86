// SPDX-License-Identifier: MIT
// A fleet on NATS whose servers ask for a login, or have certificates.
#include <array>
#include <cstdint>
#include <fstream>
#include <string>

#include "tests/support/nats_authority.h"
#include "weft/net/tls/test_certificates.h"
#include "weft/topic/test_fleets.h"
#include "weft/topic/topics.h"
#include <gtest/gtest.h>

namespace weft::topic {
namespace {

using nats::test::NatsServer;

class LoginToFleet : public testing::Test {
 protected:
  void SetUp() override {
    if (std::string(WEFT_NATS_SERVER).empty()) {
      GTEST_SKIP() << "there is no nats-server";
    }
    const std::array<std::uint8_t, nats::NKey::kSeedSize> zeros{};
    if (!nats::NKey::from_bytes(nats::KeyKind::user, zeros)) {
      GTEST_SKIP() << "this build has no libsodium";
    }
  }
  // A message between two handles with connections of their own.
  void expect_message(const TopicsOptions& options) {
    Context near;
    Context far;
    Topics a = *Topics::open(near, options);
    Topics b = *Topics::open(far, options);
    Subscription s = *b.subscribe("t");
    Publisher t = *a.publisher("t");
    const auto ready = t.wait_subscribers(1, soon());
    ASSERT_TRUE(ready) << ready.error().message() << "; " << a.sync(sys::now()).error().message();
    ASSERT_TRUE(t.publish("hello"));
    EXPECT_EQ(s.next_until(soon())->text(), "hello");
  }
  // The reason that sync() gives, once a server has refused the handle. Before, the server may be away.
  static Error refusal(Topics& topics) {
    Error why(Errc::timed_out);
    const auto is_away = [&] {
      return why == Errc::timed_out || why == Errc::connection_closed || why == Errc::connection_failed;
    };
    for (const Instant end = soon(); is_away() && sys::now() < end;) {
      const auto synced = topics.sync(sys::now() + 20ms);
      why = synced ? Error() : synced.error();
    }
    return why;
  }
  static Error refusal(const TopicsOptions& options) {
    Context context;
    Topics topics = *Topics::open(context, options);
    return refusal(topics);
  }
};

TEST_F(LoginToFleet, APasswordATokenOrAnNkey) {
  const nats::NKey key = nats::test::key_of(nats::KeyKind::user, 1);
  const NatsServer server("authorization { users: [ { user: me, password: \"p:w\" }, { nkey: " + key.public_key() +
                          " } ] }\n");
  TopicsOptions options;
  options.fleet = server.url();
  EXPECT_EQ(refusal(options), Errc::handshake_refused);
  options.security.user = "me";
  options.security.password = "no";
  EXPECT_EQ(refusal(options), Errc::handshake_refused);
  options.security.password = "p:w";
  expect_message(options);
  options.security = {};
  options.security.nkey_seed_file = server.directory() + "/seed";
  std::ofstream(options.security.nkey_seed_file) << key.seed() << '\n';
  expect_message(options);

  const NatsServer of_token("authorization { token: secret }\n");
  options.security = {};
  options.fleet = of_token.url();
  options.security.token = "secret";
  expect_message(options);
}

// The handle tries again some seconds after a refusal, and reads the file anew.
TEST_F(LoginToFleet, ExpiredCredentialsAreRefusedUntilTheirFileIsRenewed) {
  const nats::test::Authority authority;
  const NatsServer server(authority.config());
  TopicsOptions options;
  options.fleet = server.url();
  options.security.credentials_file = server.directory() + "/user.creds";
  authority.write_credentials(options.security.credentials_file, -100);
  Context context;
  Topics topics = *Topics::open(context, options);
  EXPECT_EQ(refusal(topics), Errc::handshake_refused);
  authority.write_credentials(options.security.credentials_file, 3600);
  const auto synced = topics.sync(soon());
  ASSERT_TRUE(synced) << synced.error().message();
  expect_message(options);
}

TEST_F(LoginToFleet, AHandleWhoseCredentialsExpireGoesOnWhenTheirFileIsRenewed) {
  const nats::test::Authority authority;
  const NatsServer server(authority.config());
  TopicsOptions options;
  options.fleet = server.url();
  options.security.credentials_file = server.directory() + "/user.creds";
  authority.write_credentials(options.security.credentials_file, 2);
  Context context;
  Topics topics = *Topics::open(context, options);
  Error why;
  for (const Instant end = soon(); why != Errc::handshake_refused && sys::now() < end;) {
    const auto synced = topics.sync(sys::now() + 100ms);
    why = synced ? Error() : synced.error();
  }
  EXPECT_EQ(why, Errc::handshake_refused) << why.message();
  authority.write_credentials(options.security.credentials_file, 3600);
  const auto synced = topics.sync(soon());
  ASSERT_TRUE(synced) << synced.error().message();
  expect_message(options);
}

#ifdef WEFT_HAVE_OPENSSL

class CertificateOfFleet : public LoginToFleet {
 protected:
  static std::string config_of(const net::test::CertificateFiles& files) {
    return "tls { cert_file: \"" + files.certificate + "\", key_file: \"" + files.key + "\" }\n";
  }
};

TEST_F(CertificateOfFleet, ItsAuthorityIsTrustedAndNoOther) {
  net::test::TestAuthority authority;
  net::test::TestAuthority stranger("stranger");
  const NatsServer server(config_of(authority.issue("server")));
  TopicsOptions options;
  options.fleet = "tls://127.0.0.1:" + server.port();
  options.security.tls_authorities = authority.file();
  expect_message(options);
  options.security.tls_authorities = stranger.file();
  EXPECT_EQ(refusal(options), Errc::protocol_error);
  options.security.tls_authorities = authority.file();
  options.security.tls_server_name = "elsewhere";
  EXPECT_EQ(refusal(options), Errc::protocol_error);
}

TEST_F(CertificateOfFleet, AServerThatWantsOneGetsTheHandlesOwn) {
  net::test::TestAuthority authority;
  net::test::TestAuthority stranger("stranger");
  const auto files = authority.issue("server");
  const nats::NKey key = nats::test::key_of(nats::KeyKind::user, 1);
  const NatsServer server("tls { cert_file: \"" + files.certificate + "\", key_file: \"" + files.key +
                          "\", ca_file: \"" + authority.file() +
                          "\", verify: true }\nauthorization { users: [ { nkey: " + key.public_key() + " } ] }\n");
  TopicsOptions options;
  options.fleet = "tls://127.0.0.1:" + server.port();
  options.security.tls_authorities = authority.file();
  options.security.nkey_seed_file = server.directory() + "/seed";
  std::ofstream(options.security.nkey_seed_file) << key.seed() << '\n';
  const auto enter_with = [&](const net::test::CertificateFiles& own) {
    options.security.tls_certificate = own.certificate;
    options.security.tls_key = own.key;
  };
  enter_with(authority.issue("handle"));
  expect_message(options);
  enter_with(stranger.issue("other"));
  Context context;
  Topics topics = *Topics::open(context, options);
  EXPECT_FALSE(topics.sync(sys::now() + 200ms));
  EXPECT_EQ(topics.statistics().fleet_connected, 0u);
}

// The server comes back with another certificate: of its authority, or of a stranger's.
TEST_F(CertificateOfFleet, AHandleConnectsAgainAfterAChangeByTheSameAuthority) {
  net::test::TestAuthority authority;
  net::test::TestAuthority stranger("stranger");
  const auto files = authority.issue("server");
  NatsServer server(config_of(files));
  TopicsOptions options;
  options.fleet = "tls://127.0.0.1:" + server.port();
  options.security.tls_authorities = authority.file();
  Context context;
  Topics topics = *Topics::open(context, options);
  ASSERT_TRUE(topics.sync(soon()));
  const auto replace = [&](const net::test::CertificateFiles& by) {
    std::filesystem::copy_file(by.certificate, files.certificate, std::filesystem::copy_options::overwrite_existing);
    std::filesystem::copy_file(by.key, files.key, std::filesystem::copy_options::overwrite_existing);
    server.restart();
  };
  replace(stranger.issue("other"));
  EXPECT_EQ(refusal(topics), Errc::protocol_error);
  replace(authority.issue("renewed"));
  const auto synced = topics.sync(soon());
  ASSERT_TRUE(synced) << synced.error().message();
  expect_message(options);
}

#endif

}  // namespace
}  // namespace weft::topic
