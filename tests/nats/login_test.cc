// SPDX-License-Identifier: MIT
// Clients of NATS that log in, and the rights that servers give them.
#include <array>
#include <string>
#include <vector>

#include "tests/support/nats_authority.h"
#include "tests/support/nats_server.h"
#include "weft/nats/protocol/nkey.h"
#include "weft/net/tls/test_certificates.h"

namespace weft::nats {
namespace {

using rt::Task;
using test::Authority;
using test::in_long;
using test::key_of;
using test::NatsServer;
using test::Watch;

class NatsLoginTest : public test::NatsTest {
 public:
  using NatsTest::open;

 protected:
  void SetUp() override {
    NatsTest::SetUp();
    if (!IsSkipped() && !NKey::from_bytes(KeyKind::user, kZeros)) {
      GTEST_SKIP() << "this build has no libsodium";
    }
  }
  static constexpr std::array<std::uint8_t, NKey::kSeedSize> kZeros{};

 public:
  // The outcome of the first attempt to connect, and of a flush after it.
  static Task<Result<void>> outcome_of(const ClientOptions* given) {
    ClientOptions options = *given;
    Watch watch;
    bool ended = false;
    Error why;
    options.on_event = [&](const ClientEvent& event) {
      if (!ended) {
        why = event.why;
      }
      ended = true;
      watch.changed();
    };
    const auto client = open(std::move(options));
    const bool came = co_await Watch::until(&watch, [&] { return ended; });
    EXPECT_TRUE(came);
    if (why != Errc::ok) {
      co_return why;
    }
    co_return co_await client->flush(in_long());
  }
};

TEST_F(NatsLoginTest, AUserHasAPassword) {
  run(this, [](NatsLoginTest* self) -> Task<void> {
    const NatsServer server("authorization { user: me, password: \"p:w\" }\n");
    ClientOptions options;
    options.servers = server.url();
    options.user = "me";
    options.password = Secret("p:w");
    const auto right = co_await self->outcome_of(&options);
    EXPECT_TRUE(right) << right.error().message();
    options.password = Secret("no");
    const auto wrong = co_await self->outcome_of(&options);
    EXPECT_EQ(wrong.error().code(), Errc::handshake_refused) << wrong.error().message();
    options.servers = "nats://me:p%3Aw@127.0.0.1:" + server.port();
    const auto of_url = co_await self->outcome_of(&options);
    EXPECT_TRUE(of_url) << of_url.error().message();
  });
}

TEST_F(NatsLoginTest, ATokenIsEnough) {
  run(this, [](NatsLoginTest* self) -> Task<void> {
    const NatsServer server("authorization { token: \"to ken\" }\n");
    ClientOptions options;
    options.servers = server.url();
    const auto none = co_await self->outcome_of(&options);
    EXPECT_EQ(none.error().code(), Errc::handshake_refused);
    options.token = Secret("to ken");
    const auto right = co_await self->outcome_of(&options);
    EXPECT_TRUE(right) << right.error().message();
    options.servers = "to%20ken@127.0.0.1:" + server.port();
    const auto of_url = co_await self->outcome_of(&options);
    EXPECT_TRUE(of_url) << of_url.error().message();
  });
}

TEST_F(NatsLoginTest, AnNkeySignsTheNonce) {
  run(this, [](NatsLoginTest* self) -> Task<void> {
    const NKey right = key_of(KeyKind::user, 1);
    const NKey wrong = key_of(KeyKind::user, 2);
    const NatsServer server("authorization { users: [ { nkey: " + right.public_key() + " } ] }\n");
    ClientOptions options;
    options.servers = server.url();
    options.nkey_seed = Secret(right.seed());
    const auto taken = co_await self->outcome_of(&options);
    EXPECT_TRUE(taken) << taken.error().message();
    options.nkey_seed = Secret(wrong.seed());
    const auto refused = co_await self->outcome_of(&options);
    EXPECT_EQ(refused.error().code(), Errc::handshake_refused);
    options.nkey_seed = Secret("SUxx");
    const auto broken = co_await self->outcome_of(&options);
    EXPECT_EQ(broken.error().code(), Errc::invalid_argument);
    options.nkey_seed_file = server.directory() + "/seed";
    const auto absent = co_await self->outcome_of(&options);
    EXPECT_EQ(absent.error().code(), Errc::not_found) << absent.error().message();
    std::ofstream(options.nkey_seed_file) << right.seed() << '\n';
    const auto from_file = co_await self->outcome_of(&options);
    EXPECT_TRUE(from_file) << from_file.error().message();
  });
}

TEST_F(NatsLoginTest, ExpiredCredentialsAreRefusedUntilTheirFileIsRenewed) {
  run(this, [](NatsLoginTest* self) -> Task<void> {
    const Authority authority;
    const NatsServer server(authority.config());
    ClientOptions options;
    options.servers = server.url();
    options.credentials_file = server.directory() + "/user.creds";
    options.login_wait = std::chrono::milliseconds(10);
    Watch watch;
    int refused = 0;
    int connected = 0;
    options.on_event = [&](const ClientEvent& event) {
      refused += event.why == Errc::handshake_refused ? 1 : 0;
      connected += event.kind == ClientEvent::Kind::connected ? 1 : 0;
      watch.changed();
    };
    authority.write_credentials(options.credentials_file, -100);
    const auto client = self->open(options);
    const bool told = co_await Watch::until(&watch, [&] { return refused >= 2; });
    EXPECT_TRUE(told);
    EXPECT_EQ(connected, 0);
    authority.write_credentials(options.credentials_file, 3600);
    const bool came = co_await Watch::until(&watch, [&] { return connected == 1; });
    EXPECT_TRUE(came);
    const auto flushed = co_await client->flush(in_long());
    EXPECT_TRUE(flushed) << flushed.error().message();
  });
}

TEST_F(NatsLoginTest, CredentialsThatExpireEndTheirConnection) {
  run(this, [](NatsLoginTest* self) -> Task<void> {
    const Authority authority;
    const NatsServer server(authority.config());
    ClientOptions options;
    options.servers = server.url();
    options.credentials_file = server.directory() + "/user.creds";
    options.login_wait = std::chrono::milliseconds(10);
    Watch watch;
    bool refused = false;
    int connected = 0;
    options.on_event = [&](const ClientEvent& event) {
      refused = refused || event.why == Errc::handshake_refused;
      connected += event.kind == ClientEvent::Kind::connected ? 1 : 0;
      watch.changed();
    };
    authority.write_credentials(options.credentials_file, 2);
    const auto client = self->open(options);
    const bool ended = co_await Watch::until(&watch, [&] { return refused; });
    EXPECT_TRUE(ended);
    authority.write_credentials(options.credentials_file, 3600);
    const int before = connected;  // 0 if this machine took two seconds to connect
    const bool again = co_await Watch::until(&watch, [&] { return connected > before; });
    EXPECT_TRUE(again);
  });
}

TEST_F(NatsLoginTest, ARefusedSubjectEndsItsSubscriptionAndNotTheConnection) {
  run(this, [](NatsLoginTest* self) -> Task<void> {
    const NatsServer server(
        "authorization { users: [ { user: u, password: p, permissions: { publish: \"may.>\", "
        "subscribe: [\"may.>\", \"_INBOX.>\"] } } ] }\n");
    ClientOptions options;
    options.servers = "u:p@127.0.0.1:" + server.port();
    Watch watch;
    std::vector<std::string> refused;
    options.on_event = [&](const ClientEvent& event) {
      if (event.kind == ClientEvent::Kind::refused || event.kind == ClientEvent::Kind::unsubscribed) {
        EXPECT_EQ(event.why.code(), Errc::not_permitted);
        EXPECT_EQ(event.kind == ClientEvent::Kind::refused, event.subject == "not.this");
        refused.emplace_back(event.subject);
      }
      watch.changed();
    };
    auto client = self->open(options);
    Error ended;
    EXPECT_TRUE(
        client->subscribe("not.*", [](const Message&) {}, {.on_ended = [&](const Error& why) { ended = why; }}));
    std::size_t got = 0;
    EXPECT_TRUE(client->subscribe("may.>", [&](const Message&) { ++got; }));
    EXPECT_TRUE(client->publish("not.this", {}));
    EXPECT_TRUE(client->publish("may.this", {}));
    const auto connected = co_await client->connected(in_long());
    EXPECT_TRUE(connected);
    const auto flushed = co_await client->flush(in_long());
    EXPECT_TRUE(flushed) << flushed.error().message();
    EXPECT_EQ(ended.code(), Errc::not_permitted);
    EXPECT_EQ(refused, (std::vector<std::string>{"not.*", "not.this"}));
    EXPECT_EQ(client->subscriptions(), 1U);
    EXPECT_EQ(got, 1U);
    EXPECT_EQ(client->counts().lost.value(), 0U);
  });
}

#ifdef WEFT_HAVE_OPENSSL

TEST_F(NatsLoginTest, TlsBeginsAfterInfo) {
  run(this, [](NatsLoginTest* self) -> Task<void> {
    net::test::TestAuthority authority;
    const auto files = authority.issue("server");
    const NatsServer server("tls { cert_file: \"" + files.certificate + "\", key_file: \"" + files.key + "\" }\n");
    ClientOptions options;
    options.servers = "tls://127.0.0.1:" + server.port();
    options.tls = net::TlsClient::make({.ca_file = authority.file()}).value();
    const auto right = co_await self->outcome_of(&options);
    EXPECT_TRUE(right) << right.error().message();
    options.servers = server.url();  // the server requires it
    const auto required = co_await self->outcome_of(&options);
    EXPECT_TRUE(required) << required.error().message();
    options.tls_name = "elsewhere";
    const auto name = co_await self->outcome_of(&options);
    EXPECT_FALSE(name);
    options.tls_name.clear();
    options.tls = nullptr;  // the system does not trust this authority
    const auto stranger = co_await self->outcome_of(&options);
    EXPECT_FALSE(stranger);
  });
}

TEST_F(NatsLoginTest, AServerWithoutTlsGetsNoPlainLogin) {
  run(this, [](NatsLoginTest* self) -> Task<void> {
    const NatsServer server;
    ClientOptions options;
    options.servers = "tls://127.0.0.1:" + server.port();
    options.token = Secret("secret");
    const auto refused = co_await self->outcome_of(&options);
    EXPECT_EQ(refused.error().code(), Errc::handshake_refused) << refused.error().message();
  });
}

#endif

}  // namespace
}  // namespace weft::nats
