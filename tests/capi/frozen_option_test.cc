// SPDX-License-Identifier: MIT
// A bind and a connect freeze the options: a later change acts on later binds and connects only. The exceptions are
// those of libzmq's manual.
#include <memory>
#include <vector>

#include "tests/capi/plain_peer.h"

namespace weft::capi {
namespace {

using Parts = std::vector<std::string>;

std::string ready(const std::string& type) {
  return greeting("NULL") + command("READY", property("Socket-Type", type));
}

// One whole message; empty: none came.
Parts receive(void* socket) {
  Parts parts;
  int more = 1;
  for (std::size_t size = sizeof more; more != 0;) {
    char part[256];
    const int length = zmq_recv(socket, part, sizeof part, 0);
    if (length < 0) {
      ADD_FAILURE() << "nothing came: " << zmq_strerror(zmq_errno());
      return {};
    }
    parts.emplace_back(part, static_cast<std::size_t>(length));
    EXPECT_EQ(zmq_getsockopt(socket, ZMQ_RCVMORE, &more, &size), 0);
  }
  return parts;
}

void send(void* socket, const std::string& text) {
  ASSERT_EQ(zmq_send(socket, text.data(), text.size(), 0), static_cast<int>(text.size()));
}

class FrozenOptions : public CapiTest {
 protected:
  // The identity that the socket at `port` sends to its peer.
  static void expect_identity(int port, const std::string& identity) {
    Plain router;
    ASSERT_EQ(router.connect(port), 0);
    router.send(ready("ROUTER"));
    (void)router.receive_until(property("Identity", identity));
  }
};

TEST_F(FrozenOptions, AnEndpointKeepsTheMechanismOfItsBind) {
  const Watched pull(context_, ZMQ_PULL);
  pull.set(ZMQ_PLAIN_SERVER, 1);
  const int guarded = pull.bind();
  pull.set(ZMQ_PLAIN_SERVER, 0);
  const int open = pull.bind();
  {
    Plain intruder;
    ASSERT_EQ(intruder.connect(guarded), 0);
    intruder.send(ready("PUSH") + frame(0, "x"));
    pull.expect(ZMQ_EVENT_ACCEPTED);
    EXPECT_NE(pull.next().number, ZMQ_EVENT_HANDSHAKE_SUCCEEDED) << "a client without a password was served";
  }
  Plain named;
  ASSERT_EQ(named.connect(guarded), 0);
  named.send(greeting("PLAIN"));
  (void)named.receive_until("PLAIN\0"s);
  Plain anybody;
  ASSERT_EQ(anybody.connect(open), 0);
  anybody.send(ready("PUSH") + frame(0, "y"));
  EXPECT_EQ(receive(pull.get()), Parts{"y"});
}

TEST_F(FrozenOptions, AnOpenEndpointStaysOpen) {
  const Watched pull(context_, ZMQ_PULL);
  const int open = pull.bind();
  pull.set(ZMQ_PLAIN_SERVER, 1);
  (void)pull.bind();
  Plain anybody;
  ASSERT_EQ(anybody.connect(open), 0);
  anybody.send(ready("PUSH") + frame(0, "y"));
  EXPECT_EQ(receive(pull.get()), Parts{"y"});
}

TEST_F(FrozenOptions, AnEndpointKeepsItsKeys) {
  if (zmq_has("curve") == 0) {
    GTEST_SKIP() << "built without libsodium";
  }
  char keys[3][2][41];
  for (auto& pair : keys) {
    ASSERT_EQ(zmq_curve_keypair(pair[0], pair[1]), 0);
  }
  const Watched pull(context_, ZMQ_PULL);
  pull.set(ZMQ_CURVE_SERVER, 1);
  int ports[2];
  for (int i = 0; i < 2; ++i) {
    pull.set(ZMQ_CURVE_SECRETKEY, std::string(keys[i][1]));
    ports[i] = pull.bind();
  }
  for (int i = 0; i < 2; ++i) {
    const Watched push(context_, ZMQ_PUSH);
    push.set(ZMQ_CURVE_SERVERKEY, std::string(keys[i][0]));
    push.set(ZMQ_CURVE_PUBLICKEY, std::string(keys[2][0]));
    push.set(ZMQ_CURVE_SECRETKEY, std::string(keys[2][1]));
    push.connect(ports[i]);
    push.set(ZMQ_CURVE_SERVERKEY, std::string(keys[2][0]));
    push.expect(ZMQ_EVENT_CONNECTED);
    push.expect(ZMQ_EVENT_HANDSHAKE_SUCCEEDED);
  }
}

TEST_F(FrozenOptions, AnEndpointTellsTheIdentityOfItsBind) {
  const Watched dealer(context_, ZMQ_DEALER);
  dealer.set(ZMQ_ROUTING_ID, "first"s);
  const int first = dealer.bind();
  dealer.set(ZMQ_ROUTING_ID, "second"s);
  expect_identity(first, "first");
  expect_identity(dealer.bind(), "second");
}

TEST_F(FrozenOptions, AnEndpointThatIsBoundAgainTakesTheNewOptions) {
  const Watched dealer(context_, ZMQ_DEALER);
  dealer.set(ZMQ_ROUTING_ID, "first"s);
  const int port = dealer.bind();
  const std::string endpoint = "tcp://127.0.0.1:" + std::to_string(port);
  ASSERT_EQ(zmq_unbind(dealer.get(), endpoint.c_str()), 0);
  dealer.set(ZMQ_ROUTING_ID, "second"s);
  while (zmq_bind(dealer.get(), endpoint.c_str()) != 0) {  // libzmq closes the listener a little later
    ASSERT_EQ(zmq_errno(), EADDRINUSE);
  }
  expect_identity(port, "second");
}

TEST_F(FrozenOptions, AConnectionTellsTheIdentityOfItsConnectEachTime) {
  Plain listener;
  const Watched dealer(context_, ZMQ_DEALER);
  dealer.set(ZMQ_ROUTING_ID, "first"s);
  dealer.connect(listener.listen());
  dealer.set(ZMQ_ROUTING_ID, "second"s);
  dealer.set(ZMQ_RECONNECT_IVL, -1);
  for (int i = 0; i < 2; ++i) {
    const Plain router(listener.accept());
    router.send(ready("ROUTER"));
    (void)router.receive_until(property("Identity", "first"));
  }
}

TEST_F(FrozenOptions, OverInprocTheIdentitiesAreThoseOfBindAndConnect) {
  for (const bool binds : {true, false}) {
    const Watched dealer(context_, ZMQ_DEALER);
    const Watched router(context_, ZMQ_ROUTER);
    const char* const name = binds ? "inproc://bound" : "inproc://connected";
    dealer.set(ZMQ_ROUTING_ID, "first"s);
    ASSERT_EQ((binds ? zmq_bind : zmq_connect)(dealer.get(), name), 0);
    dealer.set(ZMQ_ROUTING_ID, "second"s);
    ASSERT_EQ((binds ? zmq_connect : zmq_bind)(router.get(), name), 0);
    send(dealer.get(), "x");
    EXPECT_EQ(receive(router.get()), (Parts{"first", "x"}));
  }
}

TEST_F(FrozenOptions, AnEndpointKeepsItsBoundOnMessages) {
  const Watched pull(context_, ZMQ_PULL);
  int ports[2];
  for (const std::int64_t most : {99, 101}) {
    ASSERT_EQ(zmq_setsockopt(pull.get(), ZMQ_MAXMSGSIZE, &most, sizeof most), 0);
    ports[most > 100] = pull.bind();
  }
  for (const int wide : {0, 1}) {
    Plain push;
    ASSERT_EQ(push.connect(ports[wide]), 0);
    push.send(ready("PUSH") + frame(0, std::string(100, 'x')));
    pull.expect(ZMQ_EVENT_ACCEPTED);
    pull.expect(ZMQ_EVENT_HANDSHAKE_SUCCEEDED);
    if (wide == 0) {
      pull.expect(ZMQ_EVENT_DISCONNECTED);
    } else {
      EXPECT_EQ(receive(pull.get()), Parts{std::string(100, 'x')});
    }
  }
}

TEST_F(FrozenOptions, AnEndpointKeepsItsTimeForHandshakes) {
  const Watched pull(context_, ZMQ_PULL);
  pull.set(ZMQ_HANDSHAKE_IVL, 20);
  const int port = pull.bind();
  pull.set(ZMQ_HANDSHAKE_IVL, 0);
  Plain silent;
  ASSERT_EQ(silent.connect(port), 0);
  EXPECT_EQ(silent.receive().empty(), false);  // the greeting
  while (!silent.receive().empty()) {
  }
}

TEST_F(FrozenOptions, AnEndpointKeepsItsHeartbeats) {
  const Watched pull(context_, ZMQ_PULL);
  pull.set(ZMQ_HEARTBEAT_IVL, 5);
  const int port = pull.bind();
  pull.set(ZMQ_HEARTBEAT_IVL, 0);
  Plain push;
  ASSERT_EQ(push.connect(port), 0);
  push.send(ready("PUSH"));
  (void)push.receive_until("PING");
}

TEST_F(FrozenOptions, TheAuthenticatorIsToldTheDomainAndTheIdentityOfTheBind) {
  const Watched authenticator(context_, ZMQ_REP);
  ASSERT_EQ(zmq_bind(authenticator.get(), "inproc://zeromq.zap.01"), 0);
  const Watched dealer(context_, ZMQ_DEALER);
  dealer.set(ZMQ_ZAP_DOMAIN, "first"s);
  dealer.set(ZMQ_ROUTING_ID, "called so"s);
  const int port = dealer.bind();
  dealer.set(ZMQ_ZAP_DOMAIN, "second"s);
  dealer.set(ZMQ_ROUTING_ID, "otherwise"s);
  Plain peer;
  ASSERT_EQ(peer.connect(port), 0);
  peer.send(ready("DEALER"));
  const Parts request = receive(authenticator.get());
  ASSERT_GE(request.size(), 6u);
  EXPECT_EQ(request[2], "first");
  EXPECT_EQ(request[4], "called so");
  EXPECT_EQ(request[5], "NULL");
}

TEST_F(FrozenOptions, TheGreetingOfNewPeersIsThatOfTheBind) {
  for (const char* endpoint : {"inproc://hello", "tcp://127.0.0.1:*"}) {
    const Watched router(context_, ZMQ_ROUTER);
    router.set(ZMQ_HELLO_MSG, "hello"s);
    router.set(ZMQ_DISCONNECT_MSG, "bye"s);
    ASSERT_EQ(zmq_bind(router.get(), endpoint), 0);
    router.set(ZMQ_HELLO_MSG, "changed"s);
    router.set(ZMQ_DISCONNECT_MSG, "changed"s);
    char exact[64];
    std::size_t size = sizeof exact;
    ASSERT_EQ(zmq_getsockopt(router.get(), ZMQ_LAST_ENDPOINT, exact, &size), 0);
    {
      const Watched dealer(context_, ZMQ_DEALER);
      ASSERT_EQ(zmq_connect(dealer.get(), exact), 0);
      EXPECT_EQ(receive(dealer.get()), Parts{"hello"});
    }
    EXPECT_EQ(receive(router.get()).back(), "bye");
  }
}

// libzmq's pipes of connections take the marks of the bind; a later change acts on the pipes that there are.
TEST_F(FrozenOptions, NewPeersGetTheMarksOfTheBindAndAChangeActsOnAllThatAreThere) {
  const Watched push(context_, ZMQ_PUSH);
  const Watched pull(context_, ZMQ_PULL);
  push.set(ZMQ_SNDTIMEO, 0);
  push.set(ZMQ_SNDHWM, 10);
  ASSERT_EQ(zmq_bind(push.get(), "inproc://marks"), 0);
  push.set(ZMQ_SNDHWM, 3);
  pull.set(ZMQ_RCVHWM, 5);
  ASSERT_EQ(zmq_connect(pull.get(), "inproc://marks"), 0);
  int sent = 0;
  const auto fill = [&] {
    while (zmq_send(push.get(), "x", 1, 0) == 1) {
      ++sent;
    }
    return sent;
  };
  EXPECT_EQ(fill(), 15);
  push.set(ZMQ_SNDHWM, 20);
  EXPECT_EQ(fill(), 25);
}

TEST_F(FrozenOptions, ABoundEndpointDoesNotBecomeRaw) {
  const Watched router(context_, ZMQ_ROUTER);
  router.set(ZMQ_PLAIN_SERVER, 1);
  (void)router.bind();
  const int on = 1;
  EXPECT_ERRNO(EINVAL, zmq_setsockopt(router.get(), ZMQ_ROUTER_RAW, &on, sizeof on));
}

TEST_F(FrozenOptions, OptionsOfTheSocketItselfActAtOnce) {
  const Watched router(context_, ZMQ_ROUTER);
  const int port = router.bind();
  EXPECT_EQ(zmq_send(router.get(), "nobody", 6, ZMQ_SNDMORE), 6);
  EXPECT_EQ(zmq_send(router.get(), "x", 1, 0), 1);
  router.set(ZMQ_ROUTER_MANDATORY, 1);
  EXPECT_ERRNO(EHOSTUNREACH, zmq_send(router.get(), "nobody", 6, ZMQ_SNDMORE));
  router.set(ZMQ_PROBE_ROUTER, 1);
  Plain dealer;
  ASSERT_EQ(dealer.connect(port), 0);
  dealer.send(ready("DEALER"));
  (void)dealer.receive_until(frame(0, ""));
  router.set(ZMQ_RCVTIMEO, 0);
  EXPECT_ERRNO(EAGAIN, zmq_recv(router.get(), nullptr, 0, 0));
}

}  // namespace
}  // namespace weft::capi
