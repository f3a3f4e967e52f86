// SPDX-License-Identifier: MIT
// Clients whose connections are TLS.
#include "weft/net/tls/tls.h"

#ifdef WEFT_HAVE_OPENSSL

#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "weft/net/admit/handshake_turns.h"
#include "weft/net/listener.h"
#include "weft/net/tls/test_certificates.h"
#include "weft/serve/client/test_serve_client.h"

namespace weft::serve {
namespace {

using net::test::TestAuthority;
using test::ask;
using test::echo;
using test::in_long;
using test::kOne;
using test::open_client;

class ClientTlsTest : public test::ClientFixture {
 protected:
  void SetUp() override {
    ClientFixture::SetUp();
    const auto files = authority_.issue("server");
    tls_.tls = *net::TlsServer::make({.certificate_file = files.certificate, .key_file = files.key});
    tls_.limits.handshake_timeout = tls_.limits.close_timeout = test::kLong;
    script_.on_frame = echo;
  }
  [[nodiscard]] static ClientOptions trusting(const TestAuthority& authority) {
    ClientOptions options;
    options.tls = *net::TlsClient::make({.ca_file = authority.file()});
    options.tls_name = "localhost";
    options.connect_timeout = test::kLong;
    return options;
  }
  // Waits until an attempt to connect fails, and returns the reason.
  static rt::Task<Error> refusal(std::string endpoint, ClientOptions options) {
    rt::AsyncEvent told;
    Error why;
    options.on_event = [&](const ClientEvent& event) {
      EXPECT_EQ(event.kind, ClientEvent::Kind::unconnected);
      why = event.why;
      told.set();
    };
    const auto client = open_client(endpoint, options);
    EXPECT_TRUE(co_await told.wait());
    EXPECT_FALSE(client->is_connected());
    EXPECT_EQ(client->connections().connected.value(), 0u);
    co_return why;
  }
  Error refused(const std::string& endpoint, const ClientOptions& options) {
    Error why;
    const auto into = [](rt::Task<Error> task, Error* out) -> rt::Task<void> { *out = co_await std::move(task); };
    run(into(refusal(endpoint, options), &why));
    return why;
  }

  TestAuthority authority_;
  ListenerOptions tls_;
};

TEST_F(ClientTlsTest, RequestsAreAnsweredOverTcpAndUnixSockets) {
  const auto live = [](std::string endpoint, ClientOptions options) -> rt::Task<void> {
    const auto client = open_client(endpoint, options);
    EXPECT_TRUE(co_await client->connected(in_long()));
    const auto small = co_await ask(client.get(), kOne, "hello");
    EXPECT_EQ(small, "hello");
    const std::string big(1'000'000, 'b');  // many records
    const auto back = co_await ask(client.get(), kOne, big);
    EXPECT_EQ(back, big);
    EXPECT_TRUE(co_await client->close(in_long()));
    EXPECT_EQ(client->requests().answered.value(), 2u);
  };
  ClientOptions options = trusting(authority_);
  options.limits.write_budget = 4 * 1024 * 1024;
  tls_.limits.write_budget = 4 * 1024 * 1024;
  run(live(listen(tls_), options));
  run(live(listen(tls_, "ipc://*"), options));
}

TEST_F(ClientTlsTest, AServerThatCannotShowThatItIsTheOneIsNotConnectedTo) {
  const std::string endpoint = listen(tls_);
  const Error untrusted = refused(endpoint, trusting(TestAuthority("another")));
  EXPECT_EQ(untrusted, Errc::protocol_error);
  EXPECT_NE(untrusted.message().find(endpoint + ": "), std::string::npos) << untrusted.message();
  EXPECT_NE(untrusted.message().find("certificate"), std::string::npos) << untrusted.message();
  ClientOptions elsewhere = trusting(authority_);
  elsewhere.tls_name = "elsewhere.test";
  EXPECT_EQ(refused(endpoint, elsewhere), Errc::protocol_error);
}

// Notes the turn of the core in which it reads first, and reads for longer than the handshakes of a turn may take.
class SlowReads final : public net::ByteStream {
 public:
  using Turns = std::map<Instant, int>;  // the number of such reads

  SlowReads(std::unique_ptr<net::ByteStream> inner, Turns& turns) noexcept : inner_(std::move(inner)), turns_(turns) {}
  [[nodiscard]] int fd() const override { return inner_->fd(); }
  [[nodiscard]] sys::IoResult read(std::span<MutableBytes> into) override {
    if (!std::exchange(noted_, true)) {  // a later one may be the session's
      ++turns_[rt::Loop::current()->now()];
    }
    const Instant end = sys::now() + 2 * net::HandshakeTurns::kLongest;
    while (sys::now() < end) {
    }
    return inner_->read(into);
  }
  [[nodiscard]] sys::IoResult write(std::span<const Bytes> from) override { return inner_->write(from); }
  void shutdown_write() override { inner_->shutdown_write(); }
  [[nodiscard]] std::string peer_address() const override { return inner_->peer_address(); }

 private:
  std::unique_ptr<net::ByteStream> inner_;
  Turns& turns_;
  bool noted_ = false;
};

TEST_F(ClientTlsTest, HandshakesThatBeginTogetherTakeTurns) {
  SlowReads::Turns turns;
  ClientOptions options = trusting(authority_);
  options.wrap = [&turns](std::unique_ptr<net::ByteStream> stream) -> Result<std::unique_ptr<net::ByteStream>> {
    return std::unique_ptr<net::ByteStream>(std::make_unique<SlowReads>(std::move(stream), turns));
  };
  const auto live = [](std::string endpoint, ClientOptions with) -> rt::Task<void> {
    const auto host = std::make_shared<ClientHost>(*rt::Core::current());
    std::vector<std::unique_ptr<test::HeaderClient>> clients;
    for (int i = 0; i < 4; ++i) {
      clients.push_back(open_client(endpoint, with, host));
    }
    for (const auto& client : clients) {
      EXPECT_TRUE(co_await client->connected(in_long()));
    }
  };
  run(live(listen(tls_), options));
  EXPECT_EQ(turns.size(), 4u);
}

TEST_F(ClientTlsTest, AServerWithoutTlsIsNotConnectedTo) {
  EXPECT_NE(refused(listen(), trusting(authority_)), Errc::ok);
}

TEST_F(ClientTlsTest, AHandshakeWithoutAnAnswerCountsAsTimeToConnect) {
  auto silent = net::Listener::open(*net::parse_endpoint("tcp://127.0.0.1:*", true), {});
  ASSERT_TRUE(silent) << silent.error().message();
  ClientOptions options = trusting(authority_);
  options.connect_timeout = std::chrono::milliseconds(1);
  EXPECT_EQ(refused((*silent)->bound_endpoint(), options), Errc::timed_out);
}

}  // namespace
}  // namespace weft::serve

#endif
