// SPDX-License-Identifier: MIT
// Sessions over TLS must behave as sessions over sockets do.
#include "weft/net/tls/tls.h"

#ifdef WEFT_HAVE_OPENSSL

#include <deque>
#include <set>
#include <thread>

#include "weft/net/tls/test_certificates.h"
#include "weft/serve/server/test_slow_consumer.h"
#include "weft/sys/limits.h"

namespace weft::serve {
namespace {

using net::test::TestAuthority;
using test::Client;
using test::echo;
using test::frame_of;
using test::HeaderSession;
using test::kLong;
using test::Signal;

class TlsServerTest : public test::ServerTest {
 protected:
  void SetUp() override {
    ServerTest::SetUp();
    const auto files = authority_.issue("server");
    use({.certificate_file = files.certificate, .key_file = files.key});
    connector_ = *net::TlsClient::make({.ca_file = authority_.file()});
    options_.limits.handshake_timeout = options_.limits.close_timeout = kLong;  // a busy machine may need that long
    script_.on_close = [this](HeaderSession& session, const Error&) {
      ++heard_;
      reason_ = session.reason();
      closed_.give();
    };
    script_.on_frame = echo;
  }
  void use(const net::TlsServerOptions& options) {
    std::string why;
    auto tls = net::TlsServer::make(options, &why);
    ASSERT_TRUE(tls) << why;
    options_.tls = std::move(*tls);
  }
  std::unique_ptr<Client> connect(const std::string& endpoint) {
    auto client = std::make_unique<Client>(endpoint);
    EXPECT_TRUE(client->start_tls(*connector_)) << client->failure();
    return client;
  }
  void until_closed_for(CloseReason reason, std::uint64_t count = 1) {
    until([&](const CounterValues& counters) { return counters.closed_for(reason) == count; });
  }

  // The service got `count` ends, and no more until the server stopped.
  void expect_heard(int count) {
    EXPECT_TRUE(server_->stop(sys::now() + kLong));
    EXPECT_EQ(heard_, count);
  }

  std::atomic<int> heard_ = 0;
  TestAuthority authority_;
  std::shared_ptr<net::TlsClient> connector_;
  ListenerOptions options_;
};

// --- traffic ---

class TlsEverywhere : public TlsServerTest, public testing::WithParamInterface<const char*> {};

TEST_P(TlsEverywhere, FramesOfEverySizeComeBack) {
  options_.limits.write_budget = 8u << 20;
  const auto client = connect(listen(options_, GetParam()));
  for (const std::size_t size : {0u, 1u, 100u, 8192u, 16384u, 16385u, 65536u, 300'000u, 1'500'000u}) {
    const std::string body(size, static_cast<char>('a' + size % 26));
    client->send(1, body);
    EXPECT_EQ(client->receive(), body) << size;
  }
}

TEST_P(TlsEverywhere, PipelinedFramesComeBackInOrder) {
  const auto client = connect(listen(options_, GetParam()));
  std::string burst;
  for (std::uint32_t i = 0; i < 2000; ++i) {
    burst += frame_of(i, std::string(i % 300, 'p'));
  }
  client->write(burst);  // 300 KB fit into both kernels and the session
  EXPECT_TRUE(client->read(burst.size()) == burst);
}

INSTANTIATE_TEST_SUITE_P(TlsServerTest, TlsEverywhere, testing::Values("tcp://127.0.0.1:0", "ipc://*"),
                         [](const auto& parameter) { return parameter.index == 0 ? "Tcp" : "Unix"; });

TEST_F(TlsServerTest, TheHeaderOfAProxyComesBeforeTheHandshake) {
  options_.proxy_protocol = net::AcceptFilter::parse("127.0.0.1", "").value();
  script_.on_frame = [](HeaderSession& session, const HeaderCodec::Frame& frame) {
    (void)session.send(frame.header, as_bytes(session.peer_address()));
  };
  const std::string endpoint = listen(options_);
  Client client(endpoint);
  client.write("PROXY TCP4 192.0.2.1 198.51.100.7 4711 443\r\n");
  ASSERT_TRUE(client.start_tls(*connector_)) << client.failure();
  client.send(1, "");
  EXPECT_EQ(client.receive(), "192.0.2.1:4711");
  Client bare(endpoint);
  EXPECT_FALSE(bare.start_tls(*connector_));
  until([](const CounterValues& counters) { return counters.rejected_for(Rejection::proxy_header) == 1; });
}

TEST_F(TlsServerTest, SessionsBeginBehindTheHandshakeAndKnowTheirPeer) {
  net::TlsServerOptions options{.certificate_file = authority_.path("server.crt"),
                                .key_file = authority_.path("server.key")};
  options.client_ca_file = authority_.file();
  options.protocols = {"echo"};
  use(options);
  std::atomic<int> begun = 0;
  script_.on_open = [&](HeaderSession& session) {
    ++begun;
    const auto info = net::tls_info(session.stream());
    (void)session.send({7, 0}, as_bytes(info ? info->peer_subject + " " + info->protocol : "nobody"));
  };
  const std::string endpoint = listen(options_);
  Client early(endpoint);  // sends nothing
  until([](const CounterValues& counters) { return counters.opened == 1; });
  EXPECT_EQ(begun, 0);
  const auto known = authority_.issue("known");
  connector_ = *net::TlsClient::make({.ca_file = authority_.file(),
                                      .certificate_file = known.certificate,
                                      .key_file = known.key,
                                      .protocols = {"echo"}});
  EXPECT_EQ(connect(endpoint)->receive(), "CN=known echo");
  EXPECT_EQ(begun, 1);
  ASSERT_TRUE(closed_.take());
  early.close();
  until([](const CounterValues& counters) { return counters.closed_total() == 2; });
  expect_heard(1);
}

// A session in its handshake owes nothing, and the service never gets it.
TEST_F(TlsServerTest, AStopEndsTheHandshakesUnderWay) {
  const std::string endpoint = listen(options_);
  std::uint64_t opened = 0;
  for (const Duration patience : {kLong, Duration()}) {
    Client silent(endpoint);
    Client begun(endpoint);
    begun.write(std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11));  // of a ClientHello
    opened += 2;
    until([opened](const CounterValues& counters) { return counters.opened == opened; });
    server_->begin_stop(sys::now() + patience);
    (void)silent.read_to_end();
    (void)begun.read_to_end();
    silent.close();
    begun.close();
    (void)server_->stop(sys::now() + kLong);
    EXPECT_EQ(server_->sessions(), 0u);
    ASSERT_TRUE(server_->restart());
  }
  expect_heard(0);
}

TEST_F(TlsServerTest, BroadcastsAndGroupsReachThemButNotThoseWhoStillShakeHands) {
  script_.on_frame = [](HeaderSession& session, const HeaderCodec::Frame& frame) {
    (void)session.join(GroupId{1});
    echo(session, frame);
  };
  const std::string endpoint = listen(options_);
  Client early(endpoint);
  std::vector<std::unique_ptr<Client>> members;
  for (int i = 0; i < 4; ++i) {
    members.push_back(connect(endpoint));
    members.back()->send(1, "in");
    EXPECT_EQ(members.back()->receive(), "in");
  }
  const auto large = SharedFrame::encode(HeaderCodec(), {5, 0}, as_bytes(std::string(100'000, 'g')));
  ASSERT_TRUE(large);
  ASSERT_TRUE(server_->publish(GroupId{1}, *large));
  ASSERT_TRUE(server_->broadcast(*large));
  for (const auto& member : members) {
    EXPECT_EQ(member->receive(), std::string(100'000, 'g'));
    EXPECT_EQ(member->receive(), std::string(100'000, 'g'));
  }
  ASSERT_TRUE(early.start_tls(*connector_));
  early.send(1, "late");
  EXPECT_EQ(early.receive(), "late");
}

// --- the end ---

TEST_F(TlsServerTest, CloseDeliversWhatWasQueuedAndThenTheEnd) {
  options_.limits.write_budget = 64u << 20;
  script_.on_frame = [](HeaderSession& session, const HeaderCodec::Frame& frame) {
    const std::string body(1 << 20, 'q');
    for (int i = 0; i < 16; ++i) {  // more than the kernel takes
      EXPECT_TRUE(session.send(frame.header, as_bytes(body)));
    }
    session.close();
  };
  const auto client = connect(listen(options_));
  client->send(1, "");
  const std::string bytes = client->read_to_end();
  EXPECT_EQ(bytes.size(), 16 * (12u + (1u << 20)));
  EXPECT_FALSE(client->reset());  // TLS announced the end
  client->end_writing();
  ASSERT_TRUE(closed_.take());
  EXPECT_EQ(reason_, CloseReason::service);
  EXPECT_EQ(server_->counters().undelivered, 0u);
}

TEST_F(TlsServerTest, APeerThatEndsItsStreamGetsItsAnswers) {
  const auto client = connect(listen(options_));
  std::string burst;
  for (std::uint32_t i = 0; i < 500; ++i) {
    burst += frame_of(i, std::string(200, 'e'));
  }
  client->write(burst);
  client->end_writing();
  EXPECT_TRUE(client->read_to_end() == burst);
  EXPECT_FALSE(client->reset());
  client->close();
  ASSERT_TRUE(closed_.take());
  EXPECT_EQ(reason_, CloseReason::peer_closed);
}

TEST_F(TlsServerTest, AnEndThatTlsDidNotAnnounceIsAFailure) {
  const auto client = connect(listen(options_));
  client->send(1, "x");
  EXPECT_EQ(client->receive(), "x");
  sys::shutdown_write(client->stream().fd());  // the socket alone
  ASSERT_TRUE(closed_.take());
  EXPECT_EQ(reason_, CloseReason::peer_failed);
}

TEST_F(TlsServerTest, AResetEndsASessionThatIsPaused) {
  Signal paused;
  script_.on_frame = [&](HeaderSession& session, const HeaderCodec::Frame& frame) {
    EXPECT_TRUE(session.send(frame.header, as_bytes(std::string(64 * 1024, 'r'))));
    session.pause_reading();
    paused.give();
  };
  const auto client = connect(listen(options_));
  client->send(1, "request");
  ASSERT_TRUE(paused.take());
  EXPECT_EQ(client->read(10).size(), 10u);  // the rest is unread: closing resets
  client->close();
  ASSERT_TRUE(closed_.take());
  EXPECT_EQ(reason_, CloseReason::peer_failed);
}

TEST_F(TlsServerTest, AStopDeliversAndRestartServesAgain) {
  const std::string endpoint = listen(options_);
  auto client = connect(endpoint);
  client->send(1, "before");
  EXPECT_EQ(client->receive(), "before");
  Client early(endpoint);
  until([](const CounterValues& counters) { return counters.opened == 2; });
  ASSERT_TRUE(server_->stop(sys::now() + kLong));
  EXPECT_EQ(client->read_to_end(), "");
  EXPECT_FALSE(client->reset());
  ASSERT_TRUE(server_->restart());
  client = connect(endpoint);
  client->send(1, "after");
  EXPECT_EQ(client->receive(), "after");
}

// --- slow readers ---

class TlsSlowConsumers : public TlsServerTest {
 protected:
  static constexpr std::uint32_t kFrames = 3000;

  // As over sockets.
  std::vector<std::uint32_t> run(SlowConsumer policy) {
    auto run = test::run_slow_consumer(script_, closed_, options_, policy, kFrames,
                                       [this](const ListenerOptions& options) { return connect(listen(options)); });
    EXPECT_TRUE(policy == SlowConsumer::disconnect || run.whole);
    EXPECT_LT(run.numbers.size(), kFrames);
    return std::move(run.numbers);
  }
};

TEST_F(TlsSlowConsumers, DropNewestKeepsWhatCameFirst) {
  const auto numbers = run(SlowConsumer::drop_newest);
  ASSERT_FALSE(numbers.empty());
  EXPECT_EQ(numbers.front(), 0u);
  EXPECT_EQ(server_->counters().dropped_newest, kFrames - numbers.size());
}

TEST_F(TlsSlowConsumers, DropOldestKeepsWhatCameLast) {
  const auto numbers = run(SlowConsumer::drop_oldest);
  ASSERT_FALSE(numbers.empty());
  EXPECT_EQ(numbers.back(), kFrames - 1);
  EXPECT_EQ(server_->counters().dropped_oldest, kFrames - numbers.size());
}

TEST_F(TlsSlowConsumers, ConflateKeepsTheNewest) {
  const auto numbers = run(SlowConsumer::conflate);
  ASSERT_FALSE(numbers.empty());
  EXPECT_EQ(numbers.back(), kFrames - 1);
  EXPECT_EQ(server_->counters().conflated, kFrames - numbers.size());
}

TEST_F(TlsSlowConsumers, DisconnectEndsTheSession) {
  (void)run(SlowConsumer::disconnect);
  EXPECT_EQ(reason_, CloseReason::slow_consumer);
}

TEST_F(TlsServerTest, APeerThatDoesNotReadDoesNotStopTheOthers) {
  options_.limits.write_budget = 64 * 1024;
  start_runtime(1);
  const std::string endpoint = listen(options_);
  const auto greedy = connect(endpoint);
  const std::string frame = frame_of(1, std::string(60'000, 'g'));
  const auto good = connect(endpoint);
  for (int i = 0; i < 200; ++i) {  // echoes that the peer does not read: the server stops reading from it
    if (greedy->write_some(frame, Duration::zero()) < frame.size()) {
      break;
    }
  }
  good->send(1, "served");
  EXPECT_EQ(good->receive(), "served");
}

// --- certificates ---

TEST_F(TlsServerTest, ANewCertificateIsForNewConnectionsAndOldOnesContinue) {
  const std::string endpoint = listen(options_);
  const auto old = connect(endpoint);
  TestAuthority other("another authority");
  const auto trusting = *net::TlsClient::make({.ca_file = other.file()});
  const auto files = other.issue("server");
  const auto replace = std::filesystem::copy_options::overwrite_existing;
  std::filesystem::copy_file(files.certificate, authority_.path("server.crt"), replace);
  std::string why;
  EXPECT_FALSE(options_.tls->reload(&why));  // the key is the old certificate's
  EXPECT_TRUE(why.starts_with(authority_.path("server.key"))) << why;
  EXPECT_NE(connect(endpoint), nullptr);
  std::filesystem::copy_file(files.key, authority_.path("server.key"), replace);
  ASSERT_TRUE(options_.tls->reload(&why)) << why;
  Client next(endpoint);
  EXPECT_TRUE(next.start_tls(*trusting)) << next.failure();
  Client suspicious(endpoint);
  EXPECT_FALSE(suspicious.start_tls(*connector_));
  old->send(1, "still here");
  EXPECT_EQ(old->receive(), "still here");
}

TEST_F(TlsServerTest, CertificatesAreReloadedWhileClientsCome) {
  const std::string endpoint = listen(options_);
  std::atomic<bool> stop = false;
  std::thread reloading([&] {
    while (!stop) {
      EXPECT_TRUE(options_.tls->reload());
    }
  });
  for (int i = 0; i < 30; ++i) {
    const auto client = connect(endpoint);
    client->send(1, "x");
    EXPECT_EQ(client->receive(), "x");
  }
  stop = true;
  reloading.join();
}

// --- bad peers: each is limited with a counted reason ---

TEST_F(TlsServerTest, PeersThatDoNotSpeakItAreRefusedAndCounted) {
  const std::string endpoint = listen(options_);
  const auto good = connect(endpoint);
  Client http(endpoint);
  http.write("GET / HTTP/1.1\r\n\r\n");
  (void)http.read_to_end();
  until_closed_for(CloseReason::refused_tls);
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    Random random(seed);
    std::string garbage(64 + random.below(1000), '\0');
    std::generate(garbage.begin(), garbage.end(), [&] { return static_cast<char>(random.below(256)); });
    garbage[0] = static_cast<char>(0x80);  // starts no TLS record: the server must not wait for the rest of one
    Client bad(endpoint);
    (void)bad.write_some(garbage, kLong);
    (void)bad.read_to_end();
  }
  until([](const CounterValues& counters) { return counters.closed_total() == 51; });
  EXPECT_GE(closed_for(CloseReason::refused_tls) + closed_for(CloseReason::peer_failed), 51u);
  good->send(1, "served");
  EXPECT_EQ(good->receive(), "served");
  expect_heard(1);
}

TEST_F(TlsServerTest, APeerThatBreaksTheHandshakeOffIsCountedAsFailed) {
  const std::string endpoint = listen(options_);
  Client half(endpoint);
  half.write(std::string("\x16\x03\x01\x02\x00\x01", 6));  // the beginning of a hello
  half.end_writing();
  until_closed_for(CloseReason::peer_failed);
  expect_heard(0);
}

TEST_F(TlsServerTest, AClientWithoutItsCertificateIsRefusedAndCounted) {
  net::TlsServerOptions options{.certificate_file = authority_.path("server.crt"),
                                .key_file = authority_.path("server.key")};
  options.client_ca_file = authority_.file();
  use(options);
  Client client(listen(options_));
  (void)client.start_tls(*connector_);  // the client does not see the refusal at first
  EXPECT_EQ(client.read_to_end(), "");
  until_closed_for(CloseReason::refused_tls);
  expect_heard(0);
}

TEST_F(TlsServerTest, AClientThatRefusesTheCertificateIsCounted) {
  const TestAuthority stranger("stranger");
  const auto suspicious = *net::TlsClient::make({.ca_file = stranger.file()});
  Client client(listen(options_));
  EXPECT_FALSE(client.start_tls(*suspicious));
  until_closed_for(CloseReason::refused_tls);
}

TEST_F(TlsServerTest, ASlowHandshakeIsCutOffHoweverManyBytesDripIn) {
  options_.limits.handshake_timeout = std::chrono::milliseconds(30);
  Client client(listen(options_));
  std::string hello("\x16\x03\x01\x20\x00", 5);  // announces 8 KB
  hello += std::string("\x01\x00\x1f\xfc\x03\x03", 6) + std::string(8000, 'h');
  Signal over;
  std::thread dripping([&] {
    for (std::size_t sent = 0; sent < hello.size() && client.write_some(hello.substr(sent, 1), kLong) == 1; ++sent) {
      std::this_thread::yield();
    }
    over.give();
  });
  until([](const CounterValues& counters) { return counters.closed_total() == 1; });
  ASSERT_TRUE(over.take());
  dripping.join();
  expect_heard(0);
}

TEST_F(TlsServerTest, ASilentPeerIsCutOff) {
  options_.limits.handshake_timeout = std::chrono::milliseconds(30);
  Client silent(listen(options_));
  EXPECT_EQ(silent.read_to_end(), "");
  until_closed_for(CloseReason::handshake_timeout);
  expect_heard(0);
}

TEST_F(TlsServerTest, LeasesAreGivenBackWhateverBecomesOfTheHandshake) {
  net::AdmissionOptions limits;
  limits.address_connections_max = 4;
  auto admission = net::Admission::make(limits);
  ASSERT_TRUE(admission);
  options_.admission = std::move(*admission);
  const std::string endpoint = listen(options_);
  for (int round = 0; round < 10; ++round) {
    std::deque<Client> bad;
    for (int i = 0; i < 4; ++i) {
      bad.emplace_back(endpoint).write("nonsense, and more of it");
    }
    for (Client& client : bad) {
      (void)client.read_to_end();
    }
    bad.clear();
    until([&](const CounterValues&) { return options_.admission->connections() == 0; });
  }
  const auto client = connect(endpoint);
  EXPECT_EQ(options_.admission->connections(), 1u);
}

TEST_F(TlsServerTest, TwoHundredClientsAtOnceAreServed) {
  const std::string endpoint = listen(options_);
  constexpr int kThreads = 4;
  std::atomic<int> served = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      std::vector<std::unique_ptr<Client>> clients;
      for (int i = 0; i < 200 / kThreads; ++i) {
        clients.push_back(connect(endpoint));
        clients.back()->send(1, "first");
      }
      for (const auto& client : clients) {
        EXPECT_EQ(client->receive(), "first");
      }
      for (const auto& client : clients) {
        client->send(1, std::string(5000, 's'));
        served += client->receive() == std::string(5000, 's') ? 1 : 0;
        client->end_writing();
      }
      for (const auto& client : clients) {
        EXPECT_EQ(client->read_to_end(), "");
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(served, 200);
  until([this](const CounterValues& counters) {
    return counters.closed_for(CloseReason::peer_closed) == 200 && server_->sessions() == 0;
  });
}

}  // namespace
}  // namespace weft::serve

#endif
