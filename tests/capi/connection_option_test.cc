// SPDX-License-Identifier: MIT
// Options of connections, as a peer without ZeroMQ and the monitor see them.
#include <memory>

#include "tests/capi/plain_peer.h"

namespace weft::capi {
namespace {

class ConnectionOptions : public CapiTest {
 protected:
  static std::string to(int port) { return "127.0.0.1:" + std::to_string(port); }
  static std::string ready(const char* type) {
    return greeting("NULL") + command("READY", property("Socket-Type", type));
  }
  static int receive(void* socket) {
    char bytes[1024];
    return zmq_recv(socket, bytes, sizeof bytes, 0);
  }

  Plain closed_;
  const int closed_port_ = closed_.bind();
};

TEST_F(ConnectionOptions, ReconnectIvlIsTheLeastPauseBetweenAttempts) {
  const Watched push(context_, ZMQ_PUSH);
  push.set(ZMQ_RECONNECT_IVL, 40);
  push.connect(closed_port_);
  for (int i = 0; i < 3; ++i) {
    push.expect(ZMQ_EVENT_CLOSED);
    const Event event = push.next();
    EXPECT_EQ(event.number, ZMQ_EVENT_CONNECT_RETRIED);
    EXPECT_TRUE(event.value >= 40 && event.value <= 80) << event.value;
  }
}

TEST_F(ConnectionOptions, WithAReconnectIvlOfMinusOneThereIsOneAttempt) {
  const Watched push(context_, ZMQ_PUSH);
  push.set(ZMQ_RECONNECT_IVL, -1);
  push.connect(closed_port_);
  push.expect(ZMQ_EVENT_CLOSED);
  push.expect_silence();
}

TEST_F(ConnectionOptions, UpToReconnectIvlMaxThePausesGrow) {
  int longest[2] = {};
  for (const int maximum : {0, 16}) {
    const Watched push(context_, ZMQ_PUSH);
    push.set(ZMQ_RECONNECT_IVL_MAX, maximum);
    push.connect(closed_port_);
    for (int i = 0; i < 10; ++i) {
      push.expect(ZMQ_EVENT_CLOSED);
      const Event event = push.next();
      EXPECT_EQ(event.number, ZMQ_EVENT_CONNECT_RETRIED);
      int& most = longest[maximum != 0];
      most = std::max(most, event.value);
    }
  }
  EXPECT_LE(longest[0], 2);
  EXPECT_GE(longest[1], 8);
  EXPECT_LE(longest[1], 32);
}

TEST_F(ConnectionOptions, ReconnectStopEndsTheAttemptsAfterARefusal) {
  const Watched push(context_, ZMQ_PUSH);
  push.set(ZMQ_RECONNECT_STOP, 1);
  push.connect(closed_port_);
  push.expect(ZMQ_EVENT_CLOSED);
  push.expect_silence();
}

TEST_F(ConnectionOptions, AFaultOfThePeerIsTheEndUnlessTheSocketIsToReconnect) {
  for (const int again : {0, 1}) {
    Plain listener;
    const Watched push(context_, ZMQ_PUSH);
    push.set(WEFT_RECONNECT_AFTER_FAULT, again);
    push.connect(listener.listen());
    for (int i = 0; i <= again; ++i) {
      const Plain peer(listener.accept());
      peer.send(greeting("CURVE"));
      push.expect(ZMQ_EVENT_CONNECTED);
      push.expect(ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL);
      push.expect(ZMQ_EVENT_DISCONNECTED);
      if (again != 0) {
        push.expect(ZMQ_EVENT_CONNECT_RETRIED);
      }
    }
    if (again == 0) {
      push.expect_silence();
    }
  }
}

TEST_F(ConnectionOptions, ConnectTimeoutEndsAnUnansweredAttempt) {
  Plain listener;  // accepts no connection; once its queue is full the system lets further attempts hang
  const int port = listener.listen(0);
  const Plain fillers[] = {Plain(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0)),
                           Plain(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0)),
                           Plain(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0))};
  for (const Plain& filler : fillers) {
    filler.begin_connect(port);
  }
  const Watched push(context_, ZMQ_PUSH);
  push.set(ZMQ_CONNECT_TIMEOUT, 20);
  push.connect(port);
  push.expect(ZMQ_EVENT_CLOSED);
  push.expect(ZMQ_EVENT_CONNECT_RETRIED);
}

TEST_F(ConnectionOptions, HandshakeIvlEndsAConnectionThatSaysNothing) {
  const Watched pull(context_, ZMQ_PULL);
  pull.set(ZMQ_HANDSHAKE_IVL, 20);
  Plain silent;
  ASSERT_EQ(silent.connect(pull.bind()), 0);
  pull.expect(ZMQ_EVENT_ACCEPTED);
  pull.expect(ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL, ETIMEDOUT);
  pull.expect(ZMQ_EVENT_DISCONNECTED);
}

TEST_F(ConnectionOptions, HeartbeatsGoOutAndAnnounceTheirTtl) {
  const Watched pull(context_, ZMQ_PULL);
  pull.set(ZMQ_HEARTBEAT_IVL, 5);
  pull.set(ZMQ_HEARTBEAT_TTL, 70'000);
  pull.set(ZMQ_HEARTBEAT_TIMEOUT, kLong * 10);
  Plain push;
  ASSERT_EQ(push.connect(pull.bind()), 0);
  push.send(ready("PUSH"));
  // More pings follow although none is answered: the time-out is long.
  const std::string ping = command("PING", "\x02\xBC"s);  // 700 tenths of a second
  std::string pings = push.receive_until(ping);
  pings.erase(0, pings.find(ping));
  std::string expected;
  for (int i = 0; i < 10; ++i) {
    expected += ping;
  }
  while (pings.size() < expected.size()) {
    const std::string more = push.receive();
    ASSERT_FALSE(more.empty());
    pings += more;
  }
  EXPECT_EQ(pings.substr(0, expected.size()), expected);
}

TEST_F(ConnectionOptions, WithoutAHeartbeatTimeoutASilentPeerIsLeftAfterAnInterval) {
  const Watched pull(context_, ZMQ_PULL);
  pull.set(ZMQ_HEARTBEAT_IVL, 5);
  Plain push;
  ASSERT_EQ(push.connect(pull.bind()), 0);
  push.send(ready("PUSH"));
  pull.expect(ZMQ_EVENT_ACCEPTED);
  pull.expect(ZMQ_EVENT_HANDSHAKE_SUCCEEDED);
  pull.expect(ZMQ_EVENT_DISCONNECTED);
}

TEST_F(ConnectionOptions, AMessageBeyondMaxmsgsizeEndsTheConnection) {
  const Watched pull(context_, ZMQ_PULL);
  const std::int64_t most = 100;
  ASSERT_EQ(zmq_setsockopt(pull.get(), ZMQ_MAXMSGSIZE, &most, sizeof most), 0);
  const int port = pull.bind();
  for (const int size : {100, 101}) {
    auto push = std::make_unique<Plain>();
    ASSERT_EQ(push->connect(port), 0);
    push->send(ready("PUSH") + frame(0, std::string(static_cast<std::size_t>(size), 'x')));
    pull.expect(ZMQ_EVENT_ACCEPTED);
    pull.expect(ZMQ_EVENT_HANDSHAKE_SUCCEEDED);
    if (size <= most) {
      EXPECT_EQ(receive(pull.get()), size);
      push.reset();
    }
    pull.expect(ZMQ_EVENT_DISCONNECTED);
  }
  EXPECT_ERRNO(EAGAIN, zmq_recv(pull.get(), nullptr, 0, ZMQ_DONTWAIT));
}

TEST_F(ConnectionOptions, ConnectionsBeyondTheBoundAreClosed) {
  for (const int option : {WEFT_CONNECTIONS_MAX, WEFT_ADDRESS_CONNECTIONS_MAX, WEFT_ADDRESS_RATE_MAX}) {
    const Watched pull(context_, ZMQ_PULL);
    pull.set(option, 1);
    const int port = pull.bind();
    Plain first;
    ASSERT_EQ(first.connect(port), 0);
    pull.expect(ZMQ_EVENT_ACCEPTED);
    // The rate admits one more peer in each second for which the machine stops this test.
    int event = ZMQ_EVENT_ACCEPTED;
    for (int i = 0; i < 100 && event == ZMQ_EVENT_ACCEPTED; ++i) {
      Plain other;
      ASSERT_EQ(other.connect(port), 0);
      do {
        event = pull.next().number;
      } while (event != ZMQ_EVENT_ACCEPTED && event != ZMQ_EVENT_ACCEPT_FAILED);
    }
    EXPECT_EQ(event, ZMQ_EVENT_ACCEPT_FAILED);
  }
}

TEST_F(ConnectionOptions, WithImmediateOnlyConnectedPeersAreSentTo) {
  const Watched push(context_, ZMQ_PUSH);
  push.connect(closed_port_);
  EXPECT_EQ(zmq_send(push.get(), "x", 1, ZMQ_DONTWAIT), 1) << "who connects may be sent to before he is there";
  const Watched patient(context_, ZMQ_PUSH);
  patient.set(ZMQ_IMMEDIATE, 1);
  patient.connect(closed_port_);
  EXPECT_ERRNO(EAGAIN, zmq_send(patient.get(), "x", 1, ZMQ_DONTWAIT));
}

TEST_F(ConnectionOptions, WithLingerATerminationWaitsForSoLongAndNoLonger) {
  for (const int linger : {0, 5}) {  // the default is for ever
    void* const own = zmq_ctx_new();
    void* const push = zmq_socket(own, ZMQ_PUSH);
    ASSERT_EQ(zmq_setsockopt(push, ZMQ_LINGER, &linger, sizeof linger), 0);
    ASSERT_EQ(zmq_connect(push, ("tcp://" + to(closed_port_)).c_str()), 0);
    ASSERT_EQ(zmq_send(push, "for nobody", 10, 0), 10);
    ASSERT_EQ(zmq_close(push), 0);
    EXPECT_EQ(zmq_ctx_term(own), 0);
  }
}

TEST_F(ConnectionOptions, TheRoutingIdIsToldInTheHandshake) {
  Plain listener;
  const Watched dealer(context_, ZMQ_DEALER);
  dealer.set(ZMQ_ROUTING_ID, "called so"s);
  dealer.connect(listener.listen());
  const Plain router(listener.accept());
  router.send(ready("ROUTER"));
  (void)router.receive_until(property("Identity", "called so"));
}

TEST_F(ConnectionOptions, FiltersAreAnnouncedInTheHandshakeOnDemand) {
  for (const int on : {1, 0}) {
    Plain listener;
    const Watched sub(context_, ZMQ_SUB);
    sub.set(WEFT_ANNOUNCE_FILTERS, on);
    sub.set(ZMQ_SUBSCRIBE, "end of the handshake"s);
    sub.connect(listener.listen());
    const Plain xpub(listener.accept());
    xpub.send(ready("XPUB"));
    const std::string said = xpub.receive_until("end of the handshake");
    EXPECT_EQ(said.find(property("X-Weft-Filter", "1")) != std::string::npos, on == 1);
  }
}

TEST_F(ConnectionOptions, TheHiccupMsgComesWhenAConnectionIsLost) {
  Plain listener;
  const Watched dealer(context_, ZMQ_DEALER);
  dealer.set(ZMQ_HICCUP_MSG, "lost"s);
  dealer.connect(listener.listen());
  {
    const Plain router(listener.accept());
    router.send(ready("ROUTER"));
    (void)router.receive_until("READY");
  }
  EXPECT_EQ(receive(dealer.get()), 4);
}

TEST_F(ConnectionOptions, TheTcpAcceptFilterAppliesToConnectingPeers) {
  for (const char* filter : {"10.255.255.0/24", "127.0.0.0/8"}) {
    const Watched pull(context_, ZMQ_PULL);
    pull.set(ZMQ_TCP_ACCEPT_FILTER, std::string(filter));
    Plain push;
    ASSERT_EQ(push.connect(pull.bind()), 0);
    pull.expect(filter[1] == '0' ? ZMQ_EVENT_ACCEPT_FAILED : ZMQ_EVENT_ACCEPTED);
  }
}

TEST_F(ConnectionOptions, TheIpcFiltersApplyToConnectingPeers) {
  struct Row {
    int option;
    std::uint32_t own;
  };
  for (const Row& row : {Row{ZMQ_IPC_FILTER_PID, static_cast<std::uint32_t>(::getpid())},
                         Row{ZMQ_IPC_FILTER_UID, ::getuid()}, Row{ZMQ_IPC_FILTER_GID, ::getgid()}}) {
    for (const bool welcome : {false, true}) {
      const Watched pull(context_, ZMQ_PULL);
      const std::uint32_t number = welcome ? row.own : row.own + 1;
      ASSERT_EQ(zmq_setsockopt(pull.get(), row.option, &number, sizeof number), 0);
      ASSERT_EQ(zmq_bind(pull.get(), "ipc://*"), 0);
      char endpoint[256];
      std::size_t size = sizeof endpoint;
      ASSERT_EQ(zmq_getsockopt(pull.get(), ZMQ_LAST_ENDPOINT, endpoint, &size), 0);
      const Watched push(context_, ZMQ_PUSH);
      ASSERT_EQ(zmq_connect(push.get(), endpoint), 0);
      pull.expect(welcome ? ZMQ_EVENT_ACCEPTED : ZMQ_EVENT_ACCEPT_FAILED);
    }
  }
}

TEST_F(ConnectionOptions, TheSocksProxyIsConnectedToAndToldNameAndPassword) {
  for (const bool with_name : {false, true}) {
    Plain proxy;
    const Watched push(context_, ZMQ_PUSH);
    push.set(ZMQ_SOCKS_PROXY, (with_name ? "127.0.0.2:0;" : "") + to(proxy.listen()));
    if (with_name) {
      push.set(ZMQ_SOCKS_USERNAME, "somebody"s);
      push.set(ZMQ_SOCKS_PASSWORD, "secret"s);
    }
    ASSERT_EQ(zmq_connect(push.get(), "tcp://192.0.2.1:5555"), 0);
    const Plain client(proxy.accept());
    const std::string methods = client.receive();
    EXPECT_EQ(methods.find('\2', 2) != std::string::npos, with_name) << "RFC 1928: 2 is name and password";
    client.send(with_name ? "\5\2"s : "\5\0"s);
    if (with_name) {
      EXPECT_EQ(client.receive_until("secret"), "\1\10somebody\6secret");
      client.send("\1\0"s);
    }
    (void)client.receive_until("\5\1\0\1\xC0\0\2\1\x15\xB3"s);  // connect to 192.0.2.1, port 5555
  }
}

}  // namespace
}  // namespace weft::capi
