// SPDX-License-Identifier: MIT
#include "weft/serve/udp/datagram_client.h"

#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "weft/net/stream/endpoint.h"
#include "weft/rt/core/runtime.h"
#include "weft/serve/udp/datagram_server.h"
#include "weft/sys/clock.h"
#include "weft/sys/datagram.h"
#include <gtest/gtest.h>

namespace weft::serve {
namespace {

using namespace std::chrono_literals;

struct DatagramMirror {
  void on_datagram(DatagramSession& session, Bytes payload) { (void)session.send(payload); }
};

Instant minute_from_now() { return sys::now() + 60s; }

std::string payload_of(const Result<Bytes>& received) {
  return received ? std::string(as_text(*received)) : received.error().message();
}

class DatagramClientTest : public testing::Test {
 protected:
  void serve(const std::string& endpoint = "udp://127.0.0.1:0", UdpOptions options = {}) {
    server_ = nullptr;
    auto opened =
        DatagramServer::open(*runtime_, endpoint, std::move(options), [](rt::Core&) { return DatagramMirror(); });
    ASSERT_TRUE(opened) << opened.error().message();
    server_ = std::move(*opened);
  }
  static DatagramClientOptions quick() {
    DatagramClientOptions options;
    options.repeat_first = 1ms;
    options.repeat_max = 20ms;
    return options;
  }
  [[nodiscard]] std::unique_ptr<DatagramClient> connect(const DatagramClientOptions& options = quick()) const {
    return std::move(DatagramClient::connect(server_->endpoint(), options)).value();
  }

  static void await_session(DatagramClient& client, std::uint64_t number) {
    const Instant end = minute_from_now();
    while (client.counts().opened < number && sys::now() < end) {
      client.update();
    }
    ASSERT_EQ(client.counts().opened, number);
  }

  std::unique_ptr<rt::Runtime> runtime_ = [] {
    rt::RuntimeOptions how;
    how.cores = 1;
    return std::move(rt::Runtime::start(how)).value();
  }();
  std::unique_ptr<DatagramServer> server_;
};

// A server that a test writes by hand, one datagram at a time.
class ScriptedServer {
 public:
  ScriptedServer() {
    sys::DatagramOptions how;
    how.local = sys::SocketAddress::parse_numeric("127.0.0.1", 0).value();
    how.bound = true;
    how.shared = true;  // a DatagramServer may bind the port before this one closes it
    fd_ = std::move(sys::open_datagram_socket(how, {})).value();
  }
  void aim_at(const std::string& endpoint) {
    const net::Endpoint parsed = net::parse_endpoint(endpoint, false).value();
    client_ = sys::SocketAddress::parse_numeric(parsed.host, parsed.port).value();
  }
  void lend_client(ScriptedServer& to) const { to.client_ = client_; }
  [[nodiscard]] std::string endpoint() const { return "udp://" + sys::local_address(fd_.fd())->to_text(); }
  // Updates the client at `now` until a datagram of it is there.
  ParsedDatagram next(DatagramClient& client, Instant now) {
    const Instant end = minute_from_now();
    while (sys::now() < end) {
      client.update(now);
      if (const auto datagram = try_next()) {
        return *datagram;
      }
    }
    ADD_FAILURE() << "the client sent nothing";
    return {};
  }
  std::optional<ParsedDatagram> try_next() {
    sys::IncomingDatagram one;
    one.room = room_;
    if (sys::receive_datagrams(fd_.fd(), std::span(&one, 1), true).count != 1) {
      return std::nullopt;
    }
    client_ = one.from;
    return parse_datagram(Bytes(room_).first(one.size));
  }
  void send(DatagramKind kind, std::uint64_t cookie, std::string_view payload = {}) {
    std::array<std::uint8_t, kDatagramHeader> header;
    write_datagram_header(header.data(), kind, cookie);
    const sys::OutgoingDatagram one{client_.raw(), client_.raw_size(), {header, as_bytes(payload)}};
    ASSERT_EQ(sys::send_datagrams(fd_.fd(), std::span(&one, 1)).count, 1u);
  }
  // Updates the client until it has taken so many datagrams of the server.
  static void await_taken(DatagramClient& client, std::uint64_t datagrams, Instant now) {
    const Instant end = minute_from_now();
    while (client.counts().in < datagrams && sys::now() < end) {
      client.update(now);
    }
    ASSERT_EQ(client.counts().in, datagrams);
  }
  void open(DatagramClient& client, std::uint64_t cookie, Instant now) {
    EXPECT_EQ(next(client, now).kind, DatagramKind::hello);
    send(DatagramKind::challenge, cookie);
    const ParsedDatagram asked = next(client, now);
    EXPECT_EQ(asked.kind, DatagramKind::open);
    EXPECT_EQ(asked.cookie, cookie);
    send(DatagramKind::opened, cookie);
    await_taken(client, 2, now);
    EXPECT_TRUE(client.is_open());
  }

 private:
  sys::Fd fd_;
  sys::SocketAddress client_;
  std::array<std::uint8_t, 2048> room_{};
};

TEST_F(DatagramClientTest, OpensASessionAndExchangesDatagrams) {
  serve();
  const auto client = connect();
  EXPECT_EQ(client->send(as_bytes("early")).error(), Errc::unreachable);
  ASSERT_TRUE(client->open_until(minute_from_now()));
  ASSERT_TRUE(client->send(as_bytes("hello")));
  EXPECT_EQ(payload_of(client->receive_until(minute_from_now())), "hello");
  EXPECT_EQ(client->counts().opened, 1u);
  EXPECT_EQ(server_->counters().sessions, 1u);
}

TEST_F(DatagramClientTest, ALongDatagramIsRefused) {
  serve();
  const auto client = connect();
  ASSERT_TRUE(client->open_until(minute_from_now()));
  EXPECT_TRUE(client->send(as_bytes(std::string(1200 - kDatagramHeader, 'x'))));
  EXPECT_EQ(client->send(as_bytes(std::string(1200, 'x'))).error(), Errc::message_too_large);
}

TEST_F(DatagramClientTest, ClosingEndsTheSessionOfTheServer) {
  serve();
  const auto client = connect();
  ASSERT_TRUE(client->open_until(minute_from_now()));
  client->close();
  client->close();
  const Instant end = minute_from_now();
  while (server_->counters().peer_closed == 0 && sys::now() < end) {
  }
  EXPECT_EQ(server_->counters().peer_closed, 1u);
  EXPECT_EQ(client->send(as_bytes("late")).error(), Errc::closed);
  EXPECT_EQ(client->receive_until(minute_from_now()).error(), Errc::closed);
  EXPECT_EQ(client->open_until(minute_from_now()).error(), Errc::closed);
}

TEST_F(DatagramClientTest, OpensAnotherSessionAfterTheServerHasRestarted) {
  serve();
  const auto client = connect();
  ASSERT_TRUE(client->open_until(minute_from_now()));
  auto old = std::move(server_);
  serve(old->endpoint());  // with another key; beside the old one, so that the port stays ours
  old = nullptr;           // the client gets `close`
  await_session(*client, 2);
  ASSERT_TRUE(client->send(as_bytes("again")));
  EXPECT_EQ(payload_of(client->receive_until(minute_from_now())), "again");
  EXPECT_EQ(client->counts().lost, 1u);
}

// The server before was killed, and ended no session.
TEST_F(DatagramClientTest, AStaleCookieIsAnsweredAndTheClientBeginsAgain) {
  for (const bool sends : {true, false}) {
    auto killed = std::make_unique<ScriptedServer>();
    const auto client = std::move(DatagramClient::connect(killed->endpoint(), quick())).value();
    const Instant now = sys::now();
    killed->open(*client, 7, now);
    serve(killed->endpoint());
    killed = nullptr;
    if (sends) {
      ASSERT_TRUE(client->send(as_bytes("stale")));
    } else {
      client->update(now + 10s);  // keeps alive
    }
    await_session(*client, 2);
    EXPECT_EQ(client->counts().lost, 1u);
    EXPECT_EQ(server_->counters().strays, sends ? 1u : 0u);
    EXPECT_EQ(server_->counters().wrong_cookie, sends ? 0u : 1u);
  }
}

TEST_F(DatagramClientTest, BesideAFloodOfStrangersEachQuestionIsAnswered) {
  UdpOptions options;
  options.answers_per_second = 10;
  serve("udp://127.0.0.1:0", options);
  const auto client = connect();
  ASSERT_TRUE(client->open_until(minute_from_now()));
  ScriptedServer stranger;
  stranger.aim_at(server_->endpoint());
  const Instant end = minute_from_now();
  for (int question = 0; question < 100; ++question) {
    for (int i = 0; i < 50; ++i) {
      stranger.send(i % 2 == 0 ? DatagramKind::hello : DatagramKind::data, 1);
    }
    const std::string text = std::to_string(question);
    std::string answer;
    while (answer != text && sys::now() < end) {  // the kernel may drop a datagram beside the flood
      ASSERT_TRUE(client->send(as_bytes(text)));
      answer = payload_of(client->receive_until(sys::now() + 100ms));
    }
    ASSERT_EQ(answer, text);
  }
  EXPECT_EQ(client->counts().opened, 1u);
  EXPECT_GT(server_->counters().unanswered, 0u);
}

TEST_F(DatagramClientTest, WithoutReconnectTheEndOfTheSessionClosesTheClient) {
  serve();
  DatagramClientOptions options = quick();
  options.reconnect = false;
  const auto client = connect(options);
  ASSERT_TRUE(client->open_until(minute_from_now()));
  ASSERT_TRUE(server_->stop(minute_from_now()));
  EXPECT_EQ(client->receive_until(minute_from_now()).error(), Errc::closed);
  EXPECT_TRUE(client->is_closed());
}

TEST(ScriptedDatagramClient, RepeatsItsQuestionsAndAsksForAnotherCookieAtLast) {
  ScriptedServer server;
  const auto client = std::move(DatagramClient::connect(server.endpoint())).value();
  Instant now = sys::now();
  EXPECT_EQ(server.next(*client, now).kind, DatagramKind::hello);
  now += 10s;
  EXPECT_EQ(server.next(*client, now).kind, DatagramKind::hello);
  server.send(DatagramKind::challenge, 7);
  for (int i = 0; i < 5; ++i) {
    const ParsedDatagram open = server.next(*client, now);
    EXPECT_EQ(open.kind, DatagramKind::open);
    EXPECT_EQ(open.cookie, 7u);
    now += 10s;
  }
  EXPECT_EQ(server.next(*client, now).kind, DatagramKind::hello);
  EXPECT_FALSE(client->is_open());
}

TEST(ScriptedDatagramClient, KeepsItsSessionAliveAndLosesASilentOne) {
  ScriptedServer server;
  const auto client = std::move(DatagramClient::connect(server.endpoint())).value();
  Instant now = sys::now();
  server.open(*client, 7, now);
  now += 10s;
  const ParsedDatagram alive = server.next(*client, now);
  EXPECT_EQ(alive.kind, DatagramKind::open);
  EXPECT_EQ(alive.cookie, 7u);
  server.send(DatagramKind::opened, 7);
  ScriptedServer::await_taken(*client, 3, now);
  now += 29s;
  EXPECT_EQ(server.next(*client, now).kind, DatagramKind::open);
  EXPECT_TRUE(client->is_open());
  now += 1s;
  client->update(now);
  EXPECT_FALSE(client->is_open());
  EXPECT_EQ(client->counts().lost, 1u);
  now += 10s;
  EXPECT_EQ(server.next(*client, now).kind, DatagramKind::hello);
}

TEST(ScriptedDatagramClient, AForgedDatagramChangesNothing) {
  ScriptedServer server;
  const auto client = std::move(DatagramClient::connect(server.endpoint())).value();
  const Instant now = sys::now();
  server.open(*client, 7, now);
  server.send(DatagramKind::close, 8);
  server.send(DatagramKind::data, 8, "forged");
  server.send(DatagramKind::challenge, 9);
  server.send(DatagramKind::hello, 7);
  server.send(DatagramKind::data, 7, std::string(2000, 'x'));  // longer than datagram_max
  server.send(DatagramKind::data, 7, "true");
  ScriptedServer::await_taken(*client, 8, now);
  EXPECT_TRUE(client->is_open());
  EXPECT_EQ(client->counts().ignored, 5u);
  EXPECT_EQ(payload_of(client->receive_until(minute_from_now())), "true");
}

TEST(ScriptedDatagramClient, IgnoresDatagramsOfAnotherAddress) {
  ScriptedServer server;
  ScriptedServer forger;
  const auto client = std::move(DatagramClient::connect(server.endpoint())).value();
  const Instant now = sys::now();
  server.open(*client, 7, now);
  server.lend_client(forger);
  forger.send(DatagramKind::close, 7);
  ScriptedServer::await_taken(*client, 3, now);
  EXPECT_TRUE(client->is_open());
  EXPECT_EQ(client->counts().ignored, 1u);
}

TEST(ScriptedDatagramClient, AFullQueueDropsItsOldestDatagram) {
  ScriptedServer server;
  DatagramClientOptions options;
  options.received_max = 2;
  const auto client = std::move(DatagramClient::connect(server.endpoint(), options)).value();
  const Instant now = sys::now();
  server.open(*client, 7, now);
  for (const std::string_view payload : {"one", "two", "three"}) {
    server.send(DatagramKind::data, 7, payload);
  }
  ScriptedServer::await_taken(*client, 5, now);
  EXPECT_EQ(client->counts().overflowed, 1u);
  EXPECT_EQ(as_text(client->try_receive().value()), "two");
  EXPECT_EQ(as_text(client->try_receive().value()), "three");
  EXPECT_FALSE(client->try_receive());
}

TEST(ScriptedDatagramClient, ASessionThatTheServerRefusesIsTriedAgainAfterAWait) {
  ScriptedServer server;
  const auto client = std::move(DatagramClient::connect(server.endpoint())).value();
  Instant now = sys::now();
  EXPECT_EQ(server.next(*client, now).kind, DatagramKind::hello);
  server.send(DatagramKind::challenge, 7);
  EXPECT_EQ(server.next(*client, now).kind, DatagramKind::open);
  server.send(DatagramKind::close, 7);
  ScriptedServer::await_taken(*client, 2, now);
  EXPECT_GT(client->update(now), now);
  EXPECT_FALSE(server.try_next());
  now += 10s;
  EXPECT_EQ(server.next(*client, now).kind, DatagramKind::hello);
  EXPECT_EQ(client->counts().lost, 0u);  // it was never open
}

TEST(ScriptedDatagramClient, AWaitEndsAtItsDeadline) {
  const ScriptedServer server;
  const auto client = std::move(DatagramClient::connect(server.endpoint())).value();
  EXPECT_EQ(client->open_until(sys::now()).error(), Errc::timed_out);
  EXPECT_EQ(client->receive_until(sys::now() + 1ms).error(), Errc::timed_out);
}

TEST(ScriptedDatagramClient, WrongEndpointsAndOptionsAreRefused) {
  EXPECT_EQ(DatagramClient::connect("tcp://127.0.0.1:1").error(), Errc::invalid_argument);
  EXPECT_EQ(DatagramClient::connect("udp://239.0.0.1:1").error(), Errc::invalid_argument);
  DatagramClientOptions options;
  options.received_max = 0;
  EXPECT_EQ(DatagramClient::connect("udp://127.0.0.1:1", options).error(), Errc::invalid_argument);
  options = {};
  options.datagram_max = 8;
  EXPECT_EQ(DatagramClient::connect("udp://127.0.0.1:1", options).error(), Errc::invalid_argument);
  options = {};
  options.keep_alive = 0s;
  EXPECT_EQ(DatagramClient::connect("udp://127.0.0.1:1", options).error(), Errc::invalid_argument);
}

}  // namespace
}  // namespace weft::serve
