// SPDX-License-Identifier: MIT
// Endpoints are bound and unbound; peers leave and return; queued messages linger.
#include <algorithm>

#include "tests/conformance/conformance.h"
#include "tests/support/sanitized.h"

namespace weft::conformance {
namespace {

class Life : public Conformance {};
WEFT_EVERY_TRANSPORT(Life);
class LifeOverStreams : public Life {};
WEFT_TRANSPORTS_WHERE(LifeOverStreams, over_streams);

TEST_P(Life, ConnectMayComeBeforeBind) {
  const std::string endpoint = free_endpoint();
  Socket push = make(SocketType::push);
  connect(push, endpoint);
  send(push, "early");
  send(push, {"two", "parts"});
  Socket pull = make(SocketType::pull);
  secure_server(pull);
  ASSERT_TRUE(pull.bind(endpoint));
  EXPECT_EQ(recv_text(pull), "early");
  EXPECT_EQ(recv(pull), (Texts{"two", "parts"}));
  send(push, "late");
  EXPECT_EQ(recv_text(pull), "late");
}

TEST_P(Life, EveryPatternWorksWithConnectBeforeBind) {
  const std::string endpoint = free_endpoint();
  Socket req = make(SocketType::req);
  connect(req, endpoint);
  send(req, "question");
  Socket rep = make(SocketType::rep);
  secure_server(rep);
  ASSERT_TRUE(rep.bind(endpoint));
  EXPECT_EQ(recv_text(rep), "question");
  send(rep, "answer");
  EXPECT_EQ(recv_text(req), "answer");

  const std::string another = free_endpoint();
  Socket sub = make(SocketType::sub);
  ASSERT_TRUE(sub.subscribe("t"));
  connect(sub, another);
  Socket pub = make(SocketType::xpub);
  secure_server(pub);
  ASSERT_TRUE(pub.bind(another));
  EXPECT_EQ(recv_text(pub), "\1t");
  send(pub, "t");
  EXPECT_EQ(recv_text(sub), "t");
}

TEST_P(Life, SeveralMayConnectBeforeTheBind) {
  const std::string endpoint = free_endpoint();
  std::vector<Socket> pushes;
  for (int i = 0; i < 5; ++i) {
    pushes.push_back(make(SocketType::push));
    connect(pushes.back(), endpoint);
    send(pushes.back(), "x");
  }
  Socket pull = make(SocketType::pull);
  secure_server(pull);
  ASSERT_TRUE(pull.bind(endpoint));
  EXPECT_EQ(recv_many(pull, 5).size(), 5u);
}

TEST_P(Life, ASocketMayBindAndConnectSeveralTimes) {
  Socket pull = make(SocketType::pull);
  const std::string one = bind(pull);
  const std::string two = bind(pull);
  Socket push = make(SocketType::push);
  connect(push, one);
  connect(push, two);
  send(push, "1");
  send(push, "2");
  Texts got = recv_many(pull, 2);
  std::sort(got.begin(), got.end());
  EXPECT_EQ(got, (Texts{"1", "2"}));
}

TEST_P(Life, AnEndpointInUseIsRefused) {
  Socket one = make(SocketType::pull);
  Socket two = make(SocketType::pull);
  const std::string endpoint = bind(one);
  EXPECT_EQ(two.bind(endpoint).error(), Errc::address_in_use);
  EXPECT_EQ(one.bind(endpoint).error(), Errc::address_in_use);
}

TEST_P(Life, UnbindFreesTheEndpointAtOnce) {
  Socket one = make(SocketType::pull);
  const std::string endpoint = bind(one);
  for (int i = 0; i < 20; ++i) {
    Socket two = make(SocketType::pull);
    ASSERT_TRUE(one.unbind(endpoint));
    secure_server(two);
    ASSERT_TRUE(two.bind(endpoint)) << i;
    ASSERT_TRUE(two.unbind(endpoint));
    secure_server(one);
    ASSERT_TRUE(one.bind(endpoint)) << i;
  }
  EXPECT_EQ(one.unbind(endpoint + "0").error(), Errc::no_such_endpoint);
}

TEST_P(Life, UnbindTakesTheEndpointThatBindReturned) {
  Socket socket = make(SocketType::pull);
  const std::string given = new_endpoint();
  const auto exact = socket.bind(given);
  ASSERT_TRUE(exact);
  if (given != *exact) {  // a wildcard
    EXPECT_EQ(socket.unbind(given).error(), Errc::no_such_endpoint);
  }
  ASSERT_TRUE(socket.unbind(*exact));
  EXPECT_EQ(socket.unbind(*exact).error(), Errc::no_such_endpoint);
  Socket another = make(SocketType::pull);
  EXPECT_TRUE(another.bind(*exact));
}

TEST_P(Life, ClosingFreesTheEndpointAtOnce) {
  std::string endpoint = free_endpoint();
  for (int i = 0; i < 20; ++i) {
    Socket pull = make(SocketType::pull);
    secure_server(pull);
    ASSERT_TRUE(pull.bind(endpoint)) << i;
  }
}

TEST_P(Life, UnbindEndsTheConnectionsMadeThereAndNewOnesAreNotTaken) {
  Socket pull = make(SocketType::pull);
  const std::string endpoint = bind(pull);
  const std::string other = bind(pull);
  Socket push = make(SocketType::push);
  connect(push, other);
  send(push, "1");
  EXPECT_EQ(recv_text(pull), "1");
  Socket first = make(SocketType::push);
  ASSERT_TRUE(first.watch_events());
  ASSERT_TRUE(first.set(option::linger, 0ms));
  connect(first, endpoint);
  send(first, "before");
  EXPECT_EQ(recv_text(pull), "before");
  ASSERT_TRUE(pull.unbind(endpoint));
  if (GetParam().streams) {
    wait_for_event(first, EventKind::disconnected);
  } else {
    send(first, "a connection without a handshake stays");
    EXPECT_EQ(recv_text(pull), "a connection without a handshake stays");
  }
  Socket late = make(SocketType::push);
  ASSERT_TRUE(late.set(option::linger, 0ms));
  connect(late, endpoint);
  send(late, "nobody listens");
  send(push, "2");
  EXPECT_EQ(recv_text(pull), "2");
  EXPECT_EQ(pull.try_recv().error(), Errc::would_block);
}

TEST_P(Life, AfterDisconnectNothingIsSentThereAndQueuedMessagesArrive) {
  Socket one = make(SocketType::pull);
  Socket two = make(SocketType::pull);
  const std::string to_one = bind(one);
  Socket push = make(SocketType::push);
  connect(push, to_one);
  for (int i = 0; i < 100; ++i) {
    send(push, std::to_string(i));
  }
  ASSERT_TRUE(push.disconnect(to_one));
  EXPECT_EQ(push.disconnect(to_one).error(), Errc::no_such_endpoint);
  EXPECT_EQ(push.try_send(as_bytes("nobody")).error(), Errc::would_block);
  connect(push, bind(two));
  send(push, "to two");
  EXPECT_EQ(recv_text(two), "to two");
  EXPECT_EQ(recv_many(one, 100), numbered("", 0, 100));
  EXPECT_EQ(one.try_recv().error(), Errc::would_block);
}

TEST_P(Life, ASocketMayConnectAgainAfterDisconnecting) {
  Socket rep = make(SocketType::rep);
  const std::string endpoint = bind(rep);
  Socket req = make(SocketType::req);
  for (int i = 0; i < 10; ++i) {
    connect(req, endpoint);
    send(req, "question");
    EXPECT_EQ(recv_text(rep), "question");
    send(rep, "answer");
    EXPECT_EQ(recv_text(req), "answer");
    ASSERT_TRUE(req.disconnect(endpoint));
  }
}

TEST_P(LifeOverStreams, WhenTheBinderReturnsTheConnectorComesBack) {
  const std::string endpoint = free_endpoint();
  Socket push = make(SocketType::push);
  ASSERT_TRUE(push.watch_events());
  connect(push, endpoint);
  for (int i = 0; i < 5; ++i) {
    Socket pull = make(SocketType::pull);
    secure_server(pull);
    ASSERT_TRUE(pull.bind(endpoint));
    wait_for_event(push, EventKind::handshake_succeeded);
    send(push, std::to_string(i));
    EXPECT_EQ(recv_text(pull), std::to_string(i));
    pull.close();
    wait_for_event(push, EventKind::disconnected);
  }
}

TEST_P(LifeOverStreams, WhenThePublisherReturnsItIsSubscribedToAgain) {
  const std::string endpoint = free_endpoint();
  Socket sub = make(SocketType::sub);
  connect(sub, endpoint);
  ASSERT_TRUE(sub.subscribe("a"));
  ASSERT_TRUE(sub.subscribe("gone"));
  for (int i = 0; i < 5; ++i) {
    Socket xpub = make(SocketType::xpub);
    secure_server(xpub);
    ASSERT_TRUE(xpub.bind(endpoint));
    if (i == 0) {
      Texts notes = recv_many(xpub, 2);
      std::sort(notes.begin(), notes.end());
      EXPECT_EQ(notes, (Texts{"\1a", "\1gone"}));
      ASSERT_TRUE(sub.unsubscribe("gone"));
      EXPECT_EQ(recv_text(xpub), std::string("\0gone", 5));
    } else {
      EXPECT_EQ(recv_text(xpub), "\1a");
      EXPECT_EQ(xpub.try_recv().error(), Errc::would_block);
    }
    send(xpub, "a" + std::to_string(i));
    EXPECT_EQ(recv_text(sub), "a" + std::to_string(i));
  }
}

TEST_P(LifeOverStreams, MessagesForAnAbsentPeerWaitForItsReturn) {
  const std::string endpoint = free_endpoint();
  Socket push = make(SocketType::push);
  ASSERT_TRUE(push.watch_events());
  connect(push, endpoint);
  {
    Socket pull = make(SocketType::pull);
    secure_server(pull);
    ASSERT_TRUE(pull.bind(endpoint));
    send(push, "to the first");
    EXPECT_EQ(recv_text(pull), "to the first");
  }
  wait_for_event(push, EventKind::disconnected);
  for (int i = 0; i < 100; ++i) {
    send(push, {std::to_string(i), "end"});
  }
  Socket pull = make(SocketType::pull);
  secure_server(pull);
  ASSERT_TRUE(pull.bind(endpoint));
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(recv(pull), (Texts{std::to_string(i), "end"}));
  }
}

TEST_P(LifeOverStreams, ImmediateQueuesOnlyForPeersThatAreThere) {
  const std::string endpoint = free_endpoint();
  Socket push = make(SocketType::push);
  ASSERT_TRUE(push.set(option::immediate, true));
  ASSERT_TRUE(push.watch_events());
  connect(push, endpoint);
  EXPECT_EQ(push.try_send(as_bytes("nobody")).error(), Errc::would_block);
  for (int i = 0; i < 3; ++i) {
    Socket pull = make(SocketType::pull);
    secure_server(pull);
    ASSERT_TRUE(pull.bind(endpoint));
    send(push, std::to_string(i));
    EXPECT_EQ(recv_text(pull), std::to_string(i));
    pull.close();
    wait_for_event(push, EventKind::disconnected);
    EXPECT_EQ(push.try_send(as_bytes("nobody")).error(), Errc::would_block);
  }
}

TEST_P(LifeOverStreams, ARouterThatConnectsWithImmediateFindsItsPeerAgain) {
  const std::string endpoint = free_endpoint();
  Socket router = make(SocketType::router);
  ASSERT_TRUE(router.set(option::immediate, true));
  ASSERT_TRUE(router.set(option::router_mandatory, true));
  connect(router, endpoint);
  for (int i = 0; i < 3; ++i) {
    Socket dealer = make(SocketType::dealer);
    secure_server(dealer);
    ASSERT_TRUE(dealer.bind(endpoint));
    send(dealer, "hello");
    const Texts got = recv(router);
    send(router, {got[0], "back"});
    EXPECT_EQ(recv_text(dealer), "back");
  }
}

TEST_P(Life, MessagesSentJustBeforeClosingArrive) {
  Socket pull = make(SocketType::pull);
  const std::string endpoint = bind(pull);
  const std::string big(500'000, 'b');
  for (int round = 0; round < 5; ++round) {
    Socket push = make(SocketType::push);
    connect(push, endpoint);
    for (int i = 0; i < 100; ++i) {
      send(push, std::to_string(i));
    }
    send(push, {big, "end"});
    push.close();
    EXPECT_EQ(recv_many(pull, 100), numbered("", 0, 100));
    EXPECT_TRUE(recv(pull) == (Texts{big, "end"}));
  }
}

TEST_P(LifeOverStreams, ClosingTheContextWaitsUntilWhatWasSentIsDelivered) {
  Socket pull = make(SocketType::pull);
  const std::string endpoint = bind(pull);
  std::thread elsewhere([&] {
    Context context;
    Socket push = make_in(context, SocketType::push);
    EXPECT_TRUE(push.set(option::linger, kLong));  // a busy machine may need that long
    connect(push, endpoint);
    for (int i = 0; i < 5000; ++i) {
      send(push, std::to_string(i));
    }
  });
  EXPECT_EQ(recv_many(pull, 5000), numbered("", 0, 5000));
  elsewhere.join();
}

// libzmq loses the end over ipc (libzmq#4660).
TEST_P(LifeOverStreams, ASenderThatEndsWhileItsReceiverIsFullLosesNothing) {
  constexpr int kMessages = 5000;
  constexpr int kRounds = kSanitized ? 10 : 50;
  Socket pull = make(SocketType::pull);
  ASSERT_TRUE(pull.set(option::receive_high_water_mark, 10));
  const std::string endpoint = bind(pull);
  for (int round = 0; round < kRounds && !HasFailure(); ++round) {
    std::atomic<int> sent{0};
    std::thread sender([&] {
      Context context;
      Socket push = make_in(context, SocketType::push);
      EXPECT_TRUE(push.set(option::linger, Duration(-1)));
      connect(push, endpoint);
      for (int i = 0; i < kMessages; ++i) {
        send(push, std::to_string(i) + std::string(60, '.'));
        sent.fetch_add(1, std::memory_order_relaxed);
      }
    });
    while (sent.load(std::memory_order_relaxed) < 1000) {  // the receiver does not read yet
      std::this_thread::yield();
    }
    for (int i = 0; i < kMessages && !HasFailure(); ++i) {
      EXPECT_EQ(recv_text(pull).substr(0, 5), (std::to_string(i) + std::string(60, '.')).substr(0, 5));
    }
    sender.join();
  }
}

TEST_P(Life, MessagesSentBeforeThePeerListensLinger) {
  const std::string endpoint = free_endpoint();
  Socket push = make(SocketType::push);
  connect(push, endpoint);
  send(push, "1");
  send(push, {"2", "3"});
  push.close();
  Socket pull = make(SocketType::pull);
  secure_server(pull);
  ASSERT_TRUE(pull.bind(endpoint));
  EXPECT_EQ(recv_text(pull), "1");
  EXPECT_EQ(recv(pull), (Texts{"2", "3"}));
}

// Once the attempt has failed, the socket has no peer and takes no message. Then the test begins anew.
TEST_P(LifeOverStreams, WithoutReconnectingALostConnectionDoesNotKeepTheContextOpen) {
  const std::string endpoint = free_endpoint();
  const Instant end = sys::now() + kLong;
  for (const bool close_at_once : {true, false}) {
    bool queued = false;
    while (!queued && sys::now() < end) {
      Context context;
      Socket push = make_in(context, SocketType::push);
      ASSERT_TRUE(push.set(option::linger, Duration(-1)));
      ASSERT_TRUE(push.set(option::reconnect_interval, Duration(-1)));
      ASSERT_TRUE(push.watch_events());
      connect(push, endpoint);
      queued = static_cast<bool>(push.try_send(as_bytes("for nobody")));
      if (!close_at_once) {
        wait_for_event(push, EventKind::connect_failed);
      }
    }  // closing the context waits for lingering messages
    EXPECT_TRUE(queued);
  }
}

TEST_P(Life, WithoutLingerClosingDropsQueuedMessages) {
  const std::string endpoint = free_endpoint();
  Socket push = make(SocketType::push);
  ASSERT_TRUE(push.set(option::linger, 0ms));
  connect(push, endpoint);
  for (int i = 0; i < 100; ++i) {
    send(push, "lost");
  }
  push.close();
  Socket pull = make(SocketType::pull);
  secure_server(pull);
  ASSERT_TRUE(pull.bind(endpoint));
  Socket another = make(SocketType::push);
  connect(another, endpoint);
  send(another, "found");
  EXPECT_EQ(recv_text(pull), "found");
}

TEST_P(Life, WithoutLingerTheContextDoesNotWait) {
  Context context;
  Socket push = make_in(context, SocketType::push);
  ASSERT_TRUE(push.set(option::linger, -1ms));
  connect(push, free_endpoint());
  send(push, "lost");
  ASSERT_TRUE(push.set(option::linger, 0ms));
  context.close();  // would wait for ever otherwise
}

TEST_P(Life, ReceivedMessagesAreThereStillWhenTheSenderIsGone) {
  Socket pull = make(SocketType::pull);
  ASSERT_TRUE(pull.watch_events());
  const std::string endpoint = bind(pull);
  Socket push = make(SocketType::push);
  connect(push, endpoint);
  for (int i = 0; i < 500; ++i) {
    send(push, {std::to_string(i), std::string(100, 'x')});
  }
  push.close();
  if (GetParam().streams) {
    wait_for_event(pull, EventKind::disconnected);
  }
  for (int i = 0; i < 500; ++i) {
    EXPECT_EQ(recv(pull)[0], std::to_string(i));
  }
  EXPECT_EQ(pull.try_recv().error(), Errc::would_block);
}

TEST_P(Life, AClosedSocketAnswersClosedToEverything) {
  Socket socket = make(SocketType::dealer);
  const std::string endpoint = bind(socket);
  socket.close();
  socket.close();
  EXPECT_EQ(socket.send("x").error(), Errc::closed);
  EXPECT_EQ(socket.try_send(as_bytes("x")).error(), Errc::closed);
  EXPECT_EQ(socket.recv().error(), Errc::closed);
  EXPECT_EQ(socket.try_recv().error(), Errc::closed);
  EXPECT_EQ(socket.recv_all().error(), Errc::closed);
  EXPECT_EQ(socket.bind(endpoint).error(), Errc::closed);
  EXPECT_EQ(socket.connect(endpoint).error(), Errc::closed);
  EXPECT_EQ(socket.unbind(endpoint).error(), Errc::closed);
  EXPECT_EQ(socket.disconnect(endpoint).error(), Errc::closed);
  EXPECT_EQ(socket.set(option::linger, 1s).error(), Errc::closed);
  EXPECT_EQ(socket.subscribe("x").error(), Errc::closed);
  PollItem item{.socket = &socket, .want_input = true};
  const auto ready = poll({&item, 1}, kLong);
  ASSERT_TRUE(ready);
  EXPECT_EQ(*ready, 1u);
  EXPECT_TRUE(item.input);
}

TEST_P(Life, AMovedFromSocketIsClosedAndTheOtherWorks) {
  Socket pull = make(SocketType::pull);
  Socket push = make(SocketType::push);
  connect(push, bind(pull));
  Socket moved = std::move(push);
  EXPECT_EQ(push.send("x").error(), Errc::closed);  // NOLINT(bugprone-use-after-move): sends on a moved-from socket
  send(moved, "x");
  EXPECT_EQ(recv_text(pull), "x");
}

TEST_P(Life, ASocketMayOutliveItsContext) {
  Context context;
  Socket socket = make_in(context, SocketType::dealer);
  (void)bind(socket);
  context.close();
  EXPECT_EQ(socket.send("x").error(), Errc::closed);
  EXPECT_EQ(socket.recv().error(), Errc::closed);
  EXPECT_EQ(socket.bind(new_endpoint()).error(), Errc::closed);
  EXPECT_EQ(socket.unbind("inproc://x").error(), Errc::closed);
  PollItem item{.socket = &socket, .want_input = true, .want_output = true};
  EXPECT_TRUE(poll({&item, 1}, kLong));
  EXPECT_FALSE(context.socket(SocketType::pull));
}

}  // namespace
}  // namespace weft::conformance
