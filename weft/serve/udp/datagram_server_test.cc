// SPDX-License-Identifier: MIT
#include "weft/serve/udp/datagram_server.h"

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <future>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "weft/net/stream/endpoint.h"
#include "weft/rt/core/runtime.h"
#include "weft/serve/udp/datagram_wire.h"
#include "weft/sys/clock.h"
#include "weft/sys/datagram.h"
#include "weft/sys/linux/test_seccomp.h"
#include <gtest/gtest.h>

namespace weft::serve {
namespace {

using namespace std::chrono_literals;

struct Echo {
  void on_datagram(DatagramSession& session, Bytes payload) {
    if (payload.size() == 4 && payload[0] == 'k') {  // "kick"
      session.close();
      return;
    }
    if (payload.size() == 5 && payload[0] == 't') {  // "throw"
      throw std::runtime_error("the service failed");
    }
    (void)session.send(payload);
    if (payload.size() == 6 && payload[0] == 'd') {  // "double"
      (void)session.send(payload);
    }
  }
};

struct GotDatagram {
  DatagramKind kind{};
  std::uint64_t cookie = 0;
  std::string payload;
  std::size_t size = 0;
};

// A client with a socket of its own.
class Peer {
 public:
  explicit Peer(const std::string& endpoint) {
    const auto parsed = net::parse_endpoint(endpoint, false).value();
    server_ = sys::SocketAddress::parse_numeric(parsed.host, parsed.port).value();
    sys::DatagramOptions how;
    how.local = server_.with_port(0);  // the loopback address
    how.bound = true;
    fd_ = std::move(sys::open_datagram_socket(how, {})).value();
  }

  void send_raw(Bytes bytes) {
    const sys::OutgoingDatagram one{server_.raw(), server_.raw_size(), {bytes, {}}};
    ASSERT_EQ(sys::send_datagrams(fd_.fd(), std::span(&one, 1)).count, 1u);
  }
  void send(DatagramKind kind, std::uint64_t cookie, std::string_view payload = {}) {
    std::vector<std::uint8_t> bytes(kDatagramHeader + payload.size());
    write_datagram_header(bytes.data(), kind, cookie);
    copy_bytes(bytes.data() + kDatagramHeader, as_bytes(payload));
    send_raw(bytes);
  }
  GotDatagram receive() {
    std::array<std::uint8_t, 2048> room;
    sys::IncomingDatagram one;
    one.room = room;
    for (const Instant end = sys::now() + 60s; sys::now() < end; std::this_thread::yield()) {
      if (sys::receive_datagrams(fd_.fd(), std::span(&one, 1), true).count == 1) {
        const auto datagram = parse_datagram(Bytes(room).first(one.size)).value();
        return {datagram.kind, datagram.cookie, std::string(datagram.payload.begin(), datagram.payload.end()),
                one.size};
      }
    }
    ADD_FAILURE() << "no datagram came";
    return {};
  }
  std::uint64_t ask_cookie() {
    send(DatagramKind::hello, 0);
    const GotDatagram got = receive();
    EXPECT_EQ(got.kind, DatagramKind::challenge);
    return got.cookie;
  }
  std::uint64_t open() {
    const std::uint64_t cookie = ask_cookie();
    send(DatagramKind::open, cookie);
    EXPECT_EQ(receive().kind, DatagramKind::opened);
    return cookie;
  }

 private:
  sys::SocketAddress server_;
  sys::Fd fd_;
};

class DatagramServerTest : public testing::Test {
 protected:
  // One core, which handles the datagrams of one peer in order.
  void open(UdpOptions options = {}, unsigned cores = 1) {
    rt::RuntimeOptions how;
    how.cores = cores;
    runtime_ = std::move(rt::Runtime::start(how)).value();
    const auto served = serve("udp://127.0.0.1:0", std::move(options));
    ASSERT_TRUE(served) << served.error().message();
  }
  Result<void> serve(const std::string& endpoint, UdpOptions options) {
    server_ = WEFT_TRY(DatagramServer::open(*runtime_, endpoint, std::move(options), [](rt::Core&) { return Echo(); }));
    return {};
  }
  [[nodiscard]] DatagramCounterValues counts() const { return server_->counters(); }

  std::unique_ptr<rt::Runtime> runtime_;
  std::unique_ptr<DatagramServer> server_;
};

TEST_F(DatagramServerTest, ASessionBeginsWithACookieAndEchoes) {
  open({}, 2);
  Peer peer(server_->endpoint());
  const std::uint64_t cookie = peer.open();
  peer.send(DatagramKind::data, cookie, "hello");
  EXPECT_EQ(peer.receive().payload, "hello");
  EXPECT_EQ(counts().opened, 1u);
  EXPECT_EQ(counts().sessions, 1u);
}

TEST_F(DatagramServerTest, AnUnprovenAddressHasNoStateAndGetsNoMoreBytesThanItSent) {
  open();
  Peer peer(server_->endpoint());
  peer.send(DatagramKind::hello, 0);
  EXPECT_EQ(peer.receive().size, kDatagramHeader);
  peer.send(DatagramKind::data, 7, "x");  // no session
  const GotDatagram refused = peer.receive();
  EXPECT_EQ(refused.kind, DatagramKind::close);
  EXPECT_EQ(refused.size, kDatagramHeader);
  EXPECT_EQ(counts().sessions, 0u);
  EXPECT_EQ(counts().strays, 1u);
}

TEST_F(DatagramServerTest, ACookieOfAnotherAddressOpensNothing) {
  open();
  Peer peer(server_->endpoint());
  Peer thief(server_->endpoint());
  const std::uint64_t cookie = peer.ask_cookie();
  thief.send(DatagramKind::open, cookie);
  EXPECT_EQ(thief.receive().kind, DatagramKind::close);
  EXPECT_EQ(counts().wrong_cookie, 1u);
  EXPECT_EQ(counts().opened, 0u);
}

TEST_F(DatagramServerTest, ADatagramWithAWrongCookieDoesNotReachTheSession) {
  open();
  Peer peer(server_->endpoint());
  const std::uint64_t cookie = peer.open();
  peer.send(DatagramKind::data, cookie + 1, "forged");
  peer.send(DatagramKind::close, cookie + 1);
  peer.send(DatagramKind::data, cookie, "mine");
  EXPECT_EQ(peer.receive().payload, "mine");
  EXPECT_EQ(counts().wrong_cookie, 2u);
}

TEST_F(DatagramServerTest, AnOpenThatIsRepeatedIsAnsweredAgain) {
  open();
  Peer peer(server_->endpoint());
  peer.send(DatagramKind::open, peer.open());
  EXPECT_EQ(peer.receive().kind, DatagramKind::opened);
  EXPECT_EQ(counts().opened, 1u);
}

TEST_F(DatagramServerTest, OversizeAndMalformedDatagramsAreDropped) {
  UdpOptions options;
  options.datagram_max = 64;
  open(options);
  Peer peer(server_->endpoint());
  const std::uint64_t cookie = peer.open();
  peer.send(DatagramKind::data, cookie, std::string(56, 'x'));  // 65 bytes
  peer.send_raw(as_bytes("short"));
  peer.send(DatagramKind::opened, cookie);
  peer.send(DatagramKind::data, cookie, std::string(55, 'y'));
  EXPECT_EQ(peer.receive().payload, std::string(55, 'y'));
  EXPECT_EQ(counts().oversize, 1u);
  EXPECT_EQ(counts().malformed, 2u);
}

TEST_F(DatagramServerTest, AFloodOfOneSessionIsDroppedAndAnotherSessionIsServed) {
  UdpOptions options;
  options.datagrams_per_second = 10;
  open(options);
  Peer flooder(server_->endpoint());
  Peer other(server_->endpoint());
  const std::uint64_t cookie = flooder.open();
  const std::uint64_t others = other.open();
  for (int i = 0; i < 100; ++i) {
    flooder.send(DatagramKind::data, cookie, "flood");
  }
  other.send(DatagramKind::data, others, "served");
  EXPECT_EQ(other.receive().payload, "served");
  EXPECT_GT(counts().over_rate, 0u);
}

TEST_F(DatagramServerTest, AnswersToUnprovenAddressesAreBounded) {
  UdpOptions options;
  options.answers_per_second = 1;
  open(options);
  Peer peer(server_->endpoint());
  const Instant end = sys::now() + 60s;
  while (counts().unanswered == 0 && sys::now() < end) {
    peer.send(DatagramKind::hello, 0);
    peer.send(DatagramKind::data, 1);
  }
  EXPECT_GT(counts().unanswered, 0u);
}

TEST_F(DatagramServerTest, SessionsOfOneAddressAreBounded) {
  UdpOptions options;
  options.admission.address_connections_max = 1;
  open(options);
  Peer first(server_->endpoint());
  Peer second(server_->endpoint());
  const std::uint64_t cookie = first.open();
  const std::uint64_t seconds = second.ask_cookie();
  second.send(DatagramKind::open, seconds);
  EXPECT_EQ(second.receive().kind, DatagramKind::close);
  EXPECT_EQ(counts().refused_address, 1u);
  first.send(DatagramKind::close, cookie);  // makes room
  while (counts().sessions != 0) {
    std::this_thread::yield();
  }
  (void)second.open();
}

TEST_F(DatagramServerTest, SessionsOfACoreAreBounded) {
  UdpOptions options;
  options.sessions_max = 0;
  open(options);
  Peer peer(server_->endpoint());
  peer.send(DatagramKind::open, peer.ask_cookie());
  EXPECT_EQ(peer.receive().kind, DatagramKind::close);
  EXPECT_EQ(counts().refused_full, 1u);
}

TEST_F(DatagramServerTest, ASilentSessionEnds) {
  UdpOptions options;
  options.idle_timeout = 1ms;
  open(options);
  Peer peer(server_->endpoint());
  (void)peer.open();
  EXPECT_EQ(peer.receive().kind, DatagramKind::close);
  EXPECT_EQ(counts().idle, 1u);
}

TEST_F(DatagramServerTest, ARepeatedOpenIsAnsweredAndKeepsTheSession) {
  UdpOptions options;
  options.idle_timeout = 1s;
  open(options);
  Peer peer(server_->endpoint());
  const std::uint64_t cookie = peer.open();
  const Instant end = sys::now() + 3s;
  Instant last = sys::now();
  while (sys::now() < end) {
    peer.send(DatagramKind::open, cookie);
    const DatagramKind answer = peer.receive().kind;
    if (sys::now() - last > 500ms) {
      return;  // the machine is too busy to keep a session
    }
    last = sys::now();
    ASSERT_EQ(answer, DatagramKind::opened);
  }
  EXPECT_EQ(counts().idle, 0u);
}

TEST_F(DatagramServerTest, AServiceMayCloseItsSessionInItsOwnCall) {
  open();
  Peer peer(server_->endpoint());
  peer.send(DatagramKind::data, peer.open(), "kick");
  EXPECT_EQ(peer.receive().kind, DatagramKind::close);
  EXPECT_EQ(counts().by_service, 1u);
}

TEST_F(DatagramServerTest, AServiceThatThrowsEndsTheSessionAlone) {
  open();
  Peer peer(server_->endpoint());
  Peer other(server_->endpoint());
  const std::uint64_t others = other.open();
  peer.send(DatagramKind::data, peer.open(), "throw");
  EXPECT_EQ(peer.receive().kind, DatagramKind::close);
  other.send(DatagramKind::data, others, "lives");
  EXPECT_EQ(other.receive().payload, "lives");
  EXPECT_EQ(counts().service_failed, 1u);
}

TEST_F(DatagramServerTest, StopTellsThePeersAndLeavesNoSession) {
  open({}, 2);
  Peer peer(server_->endpoint());
  (void)peer.open();
  EXPECT_TRUE(server_->stop(sys::now() + 60s));
  EXPECT_EQ(peer.receive().kind, DatagramKind::close);
  EXPECT_EQ(counts().sessions, 0u);
  EXPECT_EQ(counts().server_stopped, 1u);
}

TEST_F(DatagramServerTest, TheRuntimeMayStopFirst) {
  open();
  Peer peer(server_->endpoint());
  (void)peer.open();
  ASSERT_TRUE(runtime_->stop(sys::now() + 60s));
  EXPECT_EQ(peer.receive().kind, DatagramKind::close);
  EXPECT_TRUE(server_->stop(sys::now() + 60s));
}

TEST_F(DatagramServerTest, ServesIpv6) {
  open();
  if (const auto served = serve("udp://[::1]:0", {}); !served) {
    GTEST_SKIP() << "no IPv6 here: " << served.error().message();
  }
  EXPECT_TRUE(server_->endpoint().starts_with("udp://[::1]:")) << server_->endpoint();
  Peer peer(server_->endpoint());
  Peer thief(server_->endpoint());
  const std::uint64_t cookie = peer.open();
  peer.send(DatagramKind::data, cookie, "six");
  EXPECT_EQ(peer.receive().payload, "six");
  thief.send(DatagramKind::open, cookie);  // another port
  EXPECT_EQ(thief.receive().kind, DatagramKind::close);
  EXPECT_EQ(counts().wrong_cookie, 1u);
}

TEST_F(DatagramServerTest, AnIpv6PrefixHasItsBoundOfSessions) {
  open();
  UdpOptions options;
  options.admission.address_connections_max = 0;
  options.admission.prefix_connections_max = 1;
  if (const auto served = serve("udp://[::1]:0", options); !served) {
    GTEST_SKIP() << "no IPv6 here: " << served.error().message();
  }
  Peer first(server_->endpoint());
  Peer second(server_->endpoint());
  (void)first.open();
  second.send(DatagramKind::open, second.ask_cookie());
  EXPECT_EQ(second.receive().kind, DatagramKind::close);
  EXPECT_EQ(counts().refused_address, 1u);
}

// A call that sends two datagrams fails; any other number of them leaves.
class DatagramSendFaultTest : public DatagramServerTest, public testing::WithParamInterface<int> {};

TEST_P(DatagramSendFaultTest, ARefusedDatagramIsCountedAndNothingElseIsDisturbed) {
  open();
  Peer peer(server_->endpoint());
  Peer other(server_->endpoint());
  const std::uint64_t cookie = peer.open();
  const std::uint64_t others = other.open();
  std::promise<bool> filtered;
  ASSERT_TRUE(runtime_->post(0, [&filtered] {
    filtered.set_value(sys::test::refuse_call_with(sys::test::kSendDatagrams, 2, 2, GetParam()));
  }));
  if (!filtered.get_future().get()) {
    GTEST_SKIP() << "this system takes no seccomp filter";
  }
  peer.send(DatagramKind::data, cookie, "double");
  const bool no_room = GetParam() == EAGAIN;  // the rest of the turn is dropped; another error is of one datagram
  if (no_room) {
    const Instant end = sys::now() + 60s;
    while (counts().send_buffer != 2 && sys::now() < end) {
      std::this_thread::yield();
    }
  } else {
    EXPECT_EQ(peer.receive().payload, "double");
  }
  peer.send(DatagramKind::data, cookie, "again");
  EXPECT_EQ(peer.receive().payload, "again");
  other.send(DatagramKind::data, others, "other");
  EXPECT_EQ(other.receive().payload, "other");
  EXPECT_EQ(counts().send_buffer, no_room ? 2u : 0u);
  EXPECT_EQ(counts().send_failed, no_room ? 0u : 1u);
  EXPECT_EQ(counts().sessions, 2u);
}

INSTANTIATE_TEST_SUITE_P(Errors, DatagramSendFaultTest, testing::Values(EAGAIN, ENOBUFS, EPERM, ECONNREFUSED));

TEST_F(DatagramServerTest, WrongEndpointsAndOptionsAreRefused) {
  open();
  const auto make = [](rt::Core&) { return Echo(); };
  EXPECT_EQ(DatagramServer::open(*runtime_, "tcp://127.0.0.1:0", {}, make).error(), Errc::invalid_argument);
  UdpOptions tiny;
  tiny.datagram_max = 8;
  EXPECT_EQ(DatagramServer::open(*runtime_, "udp://127.0.0.1:0", tiny, make).error(), Errc::invalid_argument);
}

}  // namespace
}  // namespace weft::serve
