// SPDX-License-Identifier: MIT
// A client of NATS and a peer that does as a script has it: its greeting, and an answer to each line.
#include <atomic>
#include <functional>
#include <string>
#include <utility>

#include "tests/support/nats_server.h"
#include "weft/net/tls/test_certificates.h"
#include "weft/serve/frame/delimiter_codec.h"
#include "weft/serve/server/server.h"

namespace weft::nats {
namespace {

using rt::Task;
using test::in_long;
using test::Watch;

using LineSession = serve::SessionOf<serve::DelimiterCodec>;

constexpr std::string_view kInfo = "INFO {\"server_id\":\"S\",\"headers\":true,\"max_payload\":100}\r\n";

struct Script {
  std::string greeting{kInfo};
  // The bytes after a line of the client; nothing to say: empty.
  std::function<std::string(std::string_view)> answer = [](std::string_view line) {
    return std::string(line == "PING\r" ? "PONG\r\n" : "");
  };
};

struct ScriptService {
  const Script* script;

  void on_open(LineSession& session) {
    if (!script->greeting.empty()) {
      EXPECT_TRUE(session.send_bytes(as_bytes(script->greeting)));
    }
  }
  void on_frame(LineSession& session, const serve::BodyFrame& frame) {
    const std::string text = script->answer(as_text(frame.body));
    if (!text.empty()) {
      (void)session.send_bytes(as_bytes(text));
    }
  }
};

class NatsScriptTest : public test::NatsTest {
 protected:
  void SetUp() override { start_runtime(); }
  void TearDown() override {
    if (server_ != nullptr) {
      EXPECT_TRUE(server_->stop(in_long()));
    }
    server_.reset();
    NatsTest::TearDown();
  }

 public:
  using NatsTest::open;

  void listen(std::shared_ptr<net::TlsServer> tls = nullptr) {
    auto made = serve::Server::make(*runtime_, {});
    ASSERT_TRUE(made) << made.error().message();
    server_ = std::move(*made);
    serve::ListenerOptions options;
    options.tls = std::move(tls);
    const auto bound = server_->listen<serve::DelimiterCodec>("tcp://127.0.0.1:0", options,
                                                              [this] { return ScriptService{&script_}; });
    ASSERT_TRUE(bound) << bound.error().message();
    options_.servers = "nats" + bound->substr(3);
  }
  // The reason why the first connection, or the first attempt, ended.
  static Task<Error> end_of(const ClientOptions* given) {
    ClientOptions options = *given;
    Watch watch;
    Error why;
    options.on_event = [&](const ClientEvent& event) {
      why = why == Errc::ok ? event.why : why;
      watch.changed();
    };
    const auto client = open(std::move(options));
    const bool ended = co_await Watch::until(&watch, [&] { return why != Errc::ok; });
    EXPECT_TRUE(ended);
    co_return why;
  }
  void expect_end(Errc code) {
    run(this, [code](NatsScriptTest* self) -> Task<void> { return self->check_end(code); });
  }
  Task<void> check_end(Errc code) {
    const Error why = co_await end_of(&options_);
    EXPECT_EQ(why.code(), code) << why.message();
  }

  Script script_;
  ClientOptions options_;
  std::unique_ptr<serve::Server> server_;
};

TEST_F(NatsScriptTest, APeerThatIsNotNatsIsIncompatible) {
  script_.greeting = "220 mail.example ESMTP\r\n";
  listen();
  expect_end(Errc::incompatible_peer);
}

TEST_F(NatsScriptTest, AMalformedInfoIsAnError) {
  script_.greeting = "INFO [1]\r\n";
  listen();
  expect_end(Errc::protocol_error);
}

TEST_F(NatsScriptTest, AnInfoWithoutEndHasABound) {
  script_.greeting = "INFO {\"a\":\"" + std::string(kInfoMax, 'x');
  listen();
  expect_end(Errc::protocol_error);
}

TEST_F(NatsScriptTest, AnUnknownOperationEndsTheConnection) {
  script_.answer = [](std::string_view line) { return std::string(line == "PING\r" ? "PONG\r\nHELLO\r\n" : ""); };
  listen();
  expect_end(Errc::protocol_error);
}

TEST_F(NatsScriptTest, AServerWithoutNonceTakesNoNkey) {
  options_.nkey_seed = Secret("SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY");
  listen();
  expect_end(Errc::handshake_refused);
}

TEST_F(NatsScriptTest, BytesAfterInfoAreNotLost) {
  script_.greeting = std::string(kInfo) + "PING\r\nMSG stray 7 2\r\nok\r\n";
  std::atomic<int> pongs = 0;
  script_.answer = [&pongs](std::string_view line) {
    pongs += line == "PONG\r" ? 1 : 0;
    return std::string(line == "PING\r" ? "PONG\r\n" : "");
  };
  listen();
  run(this, [](NatsScriptTest* self) -> Task<void> {
    auto client = self->open(self->options_);
    const auto connected = co_await client->connected(in_long());
    EXPECT_TRUE(connected) << connected.error().message();
    const auto flushed = co_await client->flush(in_long());
    EXPECT_TRUE(flushed);
    EXPECT_EQ(client->counts().unclaimed.value(), 1U);
    EXPECT_EQ(client->publish("a", std::vector<std::uint8_t>(101)).error().code(), Errc::message_too_large);
  });
  EXPECT_EQ(pongs, 1);
}

TEST_F(NatsScriptTest, ASilentServerTimesOut) {
  script_.answer = [](std::string_view) { return std::string(); };
  listen();
  run(this, [](NatsScriptTest* self) -> Task<void> {
    Watch watch;
    Error why;
    ClientOptions options = self->options_;
    options.connect_timeout = std::chrono::milliseconds(20);
    options.on_event = [&](const ClientEvent& event) {
      why = event.why;
      watch.changed();
    };
    const auto client = Client::open(std::make_shared<serve::ClientHost>(*rt::Core::current()), options);
    EXPECT_TRUE(client);
    const bool ended = co_await Watch::until(&watch, [&] { return why == Errc::timed_out; });
    EXPECT_TRUE(ended);
    EXPECT_EQ((*client)->counts().connected.value(), 0U);
  });
}

#ifdef WEFT_HAVE_OPENSSL

TEST_F(NatsScriptTest, TlsMayComeBeforeInfo) {
  net::test::TestAuthority authority;
  const auto files = authority.issue("server");
  listen(net::TlsServer::make({.certificate_file = files.certificate, .key_file = files.key}).value());
  options_.tls = net::TlsClient::make({.ca_file = authority.file()}).value();
  options_.tls_first = true;
  run(this, [](NatsScriptTest* self) -> Task<void> {
    auto client = self->open(self->options_);
    const auto connected = co_await client->connected(in_long());
    EXPECT_TRUE(connected) << connected.error().message();
    const auto flushed = co_await client->flush(in_long());
    EXPECT_TRUE(flushed);
  });
}

#endif

}  // namespace
}  // namespace weft::nats
