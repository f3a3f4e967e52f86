// SPDX-License-Identifier: MIT
// Options that change the behaviour of a pattern.
#include "tests/conformance/conformance.h"

namespace weft::conformance {
namespace {

// More messages than fit between two sockets.
constexpr int kMany = 20'000;
std::string bulky(int i) { return std::to_string(i) + "|" + std::string(1024, 'p'); }
int number_of(const std::string& text) { return std::stoi(text); }

class Conflate : public Conformance {
 protected:
  // Much less than kMany messages, whatever this system's sockets take by themselves.
  static void let_the_kernel_take_little(Socket& push, Socket& pull) {
    EXPECT_TRUE(push.set(option::send_buffer, 64 * 1024));
    EXPECT_TRUE(pull.set(option::receive_buffer, 64 * 1024));
  }
  // Receives until the last of `kMany`: how many came, in order.
  static int receive_to_the_last(Socket& socket) {
    int count = 0;
    int last = -1;
    while (last < kMany - 1 && !HasFailure()) {
      const int got = number_of(recv_text(socket));
      EXPECT_GT(got, last);
      last = got;
      ++count;
    }
    EXPECT_EQ(socket.try_recv().error(), Errc::would_block);
    return count;
  }
};
WEFT_EVERY_TRANSPORT(Conflate);

TEST_P(Conflate, AReceiverThatIsSlowGetsTheNewestMessageAndSkipsTheOthers) {
  Socket pull = make(SocketType::pull);
  Socket push = make(SocketType::push);
  ASSERT_TRUE(pull.set(option::conflate, true));
  ASSERT_TRUE(pull.set(option::receive_high_water_mark, 1));
  let_the_kernel_take_little(push, pull);
  const std::string endpoint = free_endpoint();
  if (GetParam().streams) {
    secure_server(pull);
    ASSERT_TRUE(pull.bind(endpoint));
    connect(push, endpoint);
  } else {
    secure_server(push);
    ASSERT_TRUE(push.bind(endpoint));  // over inproc the connecting side's option counts
    connect(pull, endpoint);
  }
  for (int i = 0; i < kMany; ++i) {
    send(push, bulky(i));
  }
  const int count = receive_to_the_last(pull);
  EXPECT_LT(count, kMany / 2);
  EXPECT_TRUE(GetParam().streams || count == 1);
}

TEST_P(Conflate, ASenderWhosePeerIsSlowNeverWaitsAndItsNewestMessageArrives) {
  Socket pull = make(SocketType::pull);
  Socket push = make(SocketType::push);
  ASSERT_TRUE(push.set(option::conflate, true));
  ASSERT_TRUE(pull.set(option::receive_high_water_mark, 1));
  let_the_kernel_take_little(push, pull);
  connect(push, bind(pull));
  for (int i = 0; i < kMany; ++i) {
    ASSERT_TRUE(push.try_send(as_bytes(bulky(i)))) << i;
  }
  EXPECT_LT(receive_to_the_last(pull), kMany);
}

TEST_P(Conflate, ASenderWithoutAConnectionKeepsTheNewest) {
  Socket push = make(SocketType::push);
  Socket pull = make(SocketType::pull);
  ASSERT_TRUE(push.set(option::conflate, true));
  const std::string endpoint = free_endpoint();
  connect(push, endpoint);
  for (int i = 0; i < 5000; ++i) {
    ASSERT_TRUE(push.try_send(as_bytes(std::to_string(i))));
  }
  secure_server(pull);
  ASSERT_TRUE(pull.bind(endpoint));
  EXPECT_EQ(recv_text(pull), "4999");
  EXPECT_EQ(pull.try_recv().error(), Errc::would_block);
}

TEST_P(Conflate, LookingDoesNotHoldAnOldMessage) {
  Socket pull = make(SocketType::pull);
  Socket push = make(SocketType::push);
  ASSERT_TRUE(pull.set(option::conflate, true));
  const std::string endpoint = free_endpoint();
  secure_server(push);
  ASSERT_TRUE(push.bind(endpoint));
  connect(pull, endpoint);
  send(push, "old");
  PollItem item{.socket = &pull, .want_input = true};
  ASSERT_TRUE(poll({&item, 1}, kLong));
  send(push, "new");
  while (recv_text(pull) != "new" && !HasFailure()) {
    ASSERT_TRUE(GetParam().streams);
  }
}

TEST_P(Conflate, ASubscribersSubscriptionsAllArrive) {
  Socket pub = make(SocketType::pub);
  Socket sub = make(SocketType::sub);
  ASSERT_TRUE(sub.set(option::conflate, true));
  ASSERT_TRUE(sub.subscribe("a"));
  ASSERT_TRUE(sub.subscribe("b"));
  connect(sub, bind(pub));
  ASSERT_TRUE(sub.subscribe("c"));
  synchronize(pub, sub);
  for (const char* topic : {"a", "b", "c"}) {
    send(pub, topic);
    EXPECT_EQ(recv_text(sub), topic);
  }
}

class PublishOption : public Conformance {
 protected:
  [[nodiscard]] Socket make_xpub(const Option<bool>& row) {
    Socket xpub = make(SocketType::xpub);
    EXPECT_TRUE(xpub.set(row, true));
    return xpub;
  }
};
WEFT_EVERY_TRANSPORT(PublishOption);

TEST_P(PublishOption, InvertedMatchingSendsUnsubscribedTopics) {
  Socket pub = make(SocketType::pub);
  Socket sub = make(SocketType::sub);
  Socket other = make(SocketType::xsub);
  ASSERT_TRUE(pub.set(option::invert_matching, true));
  ASSERT_TRUE(sub.set(option::invert_matching, true));
  ASSERT_TRUE(pub.watch_events());
  const std::string endpoint = bind(pub);
  connect(other, endpoint);
  wait_for_peers(pub);
  ASSERT_TRUE(sub.subscribe("a"));
  connect(sub, endpoint);
  // Once the publisher has the subscription, "a" goes only to the subscriber without one.
  const Instant end = sys::now() + kLong;
  Texts seen;
  do {
    ASSERT_LT(sys::now(), end);
    send(pub, "a");
    send(pub, "b");
    EXPECT_EQ(recv_text(other), "a");
    EXPECT_EQ(recv_text(other), "b");
    const auto got = sub.try_recv();
    seen = got ? Texts{std::string(got->text())} : Texts{};
  } while (seen.empty());
  EXPECT_EQ(seen, Texts{"b"});
}

TEST_P(PublishOption, TheVerboseXpubHearsOfEverySubscriptionTheVerboserOfUnsubscriptionsToo) {
  for (const bool both : {false, true}) {
    Socket xpub = make_xpub(both ? option::xpub_verboser : option::xpub_verbose);
    const std::string endpoint = bind(xpub);
    Socket one = make(SocketType::sub);
    Socket two = make(SocketType::sub);
    connect(one, endpoint);
    ASSERT_TRUE(one.subscribe("t"));
    EXPECT_EQ(recv_text(xpub), note(true, "t"));
    connect(two, endpoint);
    ASSERT_TRUE(two.subscribe("t"));
    EXPECT_EQ(recv_text(xpub), note(true, "t"));
    ASSERT_TRUE(one.unsubscribe("t"));
    ASSERT_TRUE(one.subscribe("u"));
    if (both) {
      EXPECT_EQ(recv_text(xpub), note(false, "t"));
    }
    EXPECT_EQ(recv_text(xpub), note(true, "u"));
    two.close();
    EXPECT_EQ(recv_text(xpub), note(false, "t"));
  }
}

TEST_P(PublishOption, WithoutDroppingThePublisherWaitsForAFullSubscriber) {
  Socket pub = make(SocketType::pub);
  Socket sub = make(SocketType::sub);
  ASSERT_TRUE(pub.set(option::xpub_no_drop, true));
  ASSERT_TRUE(pub.set(option::send_high_water_mark, 10));
  ASSERT_TRUE(sub.set(option::receive_high_water_mark, 10));
  connect(sub, bind(pub));
  ASSERT_TRUE(sub.subscribe("t"));
  synchronize(pub, sub);
  int sent = 0;
  Result<void> result;
  while ((result = pub.try_send(as_bytes("t" + bulky(sent))))) {
    ASSERT_LT(++sent, 1'000'000);
  }
  EXPECT_EQ(result.error(), Errc::would_block);
  EXPECT_TRUE(pub.try_send(as_bytes("what nobody wants")));
  std::thread reader([&] {
    for (int i = 0; i <= sent; ++i) {
      const auto got = sub.recv();
      ASSERT_TRUE(got);
      ASSERT_EQ(number_of(std::string(got->text().substr(1))), i);
    }
  });
  send(pub, "t" + bulky(sent));  // waits, and goes
  reader.join();
  EXPECT_EQ(pub.statistics()->dropped, 0u);
}

TEST_P(PublishOption, TheManualXpubSubscribesInThePeersName) {
  Socket xpub = make_xpub(option::xpub_manual);
  const std::string endpoint = bind(xpub);
  Socket sub = make(SocketType::xsub);
  connect(sub, endpoint);
  ASSERT_TRUE(sub.subscribe("A"));
  EXPECT_EQ(recv_text(xpub), note(true, "A"));
  ASSERT_TRUE(xpub.subscribe("XA"));
  send(xpub, "A");
  send(xpub, "XA");
  EXPECT_EQ(recv_text(sub), "XA");
  ASSERT_TRUE(sub.unsubscribe("A"));
  EXPECT_EQ(recv_text(xpub), note(false, "A"));
  ASSERT_TRUE(xpub.unsubscribe("XA"));
  ASSERT_TRUE(sub.subscribe("B"));
  EXPECT_EQ(recv_text(xpub), note(true, "B"));
  ASSERT_TRUE(xpub.subscribe("XB"));
  send(xpub, "XA");
  send(xpub, "XB");
  EXPECT_EQ(recv_text(sub), "XB");
  sub.close();
  EXPECT_EQ(recv_text(xpub), note(false, "B"));
  EXPECT_TRUE(xpub.subscribe("for nobody"));
  send(xpub, "for nobody");
}

TEST_P(PublishOption, OnlyAManualXpubSubscribes) {
  Socket xpub = make(SocketType::xpub);
  EXPECT_EQ(xpub.subscribe("x").error(), Errc::not_supported);
  Socket pub = make(SocketType::pub);
  ASSERT_TRUE(pub.set(option::xpub_manual, true));
  EXPECT_EQ(pub.subscribe("x").error(), Errc::not_supported);
}

TEST_P(PublishOption, EveryNewPeerIsWelcomed) {
  Socket xpub = make(SocketType::xpub);
  ASSERT_TRUE(xpub.set(option::xpub_welcome_message, "Welcome"));
  const std::string endpoint = bind(xpub);
  for (int i = 0; i < 2; ++i) {
    Socket sub = make(SocketType::sub);
    ASSERT_TRUE(sub.subscribe("W"));
    connect(sub, endpoint);
    EXPECT_EQ(recv_text(sub), "Welcome");
    EXPECT_EQ(recv_text(xpub), note(true, "W"));
    sub.close();
    EXPECT_EQ(recv_text(xpub), note(false, "W"));
  }
}

class RequestOption : public Conformance {};
WEFT_EVERY_TRANSPORT(RequestOption);

TEST_P(RequestOption, ACorrelatedRequestIsNumberedAndTakesOnlyItsOwnReply) {
  Socket req = make(SocketType::req);
  Socket router = make(SocketType::router);
  ASSERT_TRUE(req.set(option::req_correlate, true));
  connect(req, bind(router));
  send(req, {"a", "b"});
  const Texts got = recv(router);
  ASSERT_EQ(got.size(), 5u);
  EXPECT_EQ(got[1].size(), 4u);
  EXPECT_EQ((Texts{got[2], got[3], got[4]}), (Texts{"", "a", "b"}));
  send(router, {got[0], "", "no number"});
  send(router, {got[0], "1234", "", "another number"});
  send(router, {got[0], got[1], "no delimiter", "x"});
  send(router, {got[0], got[1]});
  send(router, {got[0], got[1], "", "the", "reply"});
  EXPECT_EQ(recv(req), (Texts{"the", "reply"}));
  send(req, "next");
  const Texts next = recv(router);
  ASSERT_EQ(next.size(), 4u);
  EXPECT_NE(next[1], got[1]);
}

TEST_P(RequestOption, ACorrelatedRequestGoesThroughAReplier) {
  Socket req = make(SocketType::req);
  Socket rep = make(SocketType::rep);
  ASSERT_TRUE(req.set(option::req_correlate, true));
  connect(req, bind(rep));
  for (const char* text : {"1", "2"}) {
    send(req, text);
    EXPECT_EQ(recv_text(rep), text);
    send(rep, "to it");
    EXPECT_EQ(recv_text(req), "to it");
  }
}

TEST_P(RequestOption, ARelaxedRequestTakesThePlaceOfTheLastOne) {
  Socket req = make(SocketType::req);
  Socket router = make(SocketType::router);
  ASSERT_TRUE(req.set(option::req_relaxed, true));
  ASSERT_TRUE(req.set(option::req_correlate, true));
  connect(req, bind(router));
  send(req, "first");
  const Texts first = recv(router);
  send(req, {"second", "part"});
  const Texts second = recv(router);
  ASSERT_EQ(second.size(), 5u);
  send(router, {first[0], first[1], "", "to the first"});
  send(router, {second[0], second[1], "", "to the second"});
  EXPECT_EQ(recv_text(req), "to the second");
  EXPECT_EQ(req.try_recv().error(), Errc::invalid_state);
}

TEST_P(RequestOption, ARelaxedRequestForgetsAReplyThatIsHalfTaken) {
  Socket req = make(SocketType::req);
  Socket rep = make(SocketType::rep);
  ASSERT_TRUE(req.set(option::req_relaxed, true));
  connect(req, bind(rep));
  send(req, "first");
  EXPECT_EQ(recv_text(rep), "first");
  send(rep, {"one", "two", "three"});
  EXPECT_EQ(req.recv()->text(), "one");
  send(req, "second");
  EXPECT_EQ(recv_text(rep), "second");
  send(rep, "four");
  EXPECT_EQ(recv_text(req), "four");
}

class RouterOption : public Conformance {};
WEFT_EVERY_TRANSPORT(RouterOption);

TEST_P(RouterOption, AProbeIsTheFirstMessageOfANewPeer) {
  for (const SocketType type : {SocketType::dealer, SocketType::req, SocketType::router}) {
    Socket router = make(SocketType::router);
    Socket prober = make(type);
    ASSERT_TRUE(prober.set(option::probe_router, true));
    ASSERT_TRUE(prober.set(option::routing_id, "X"));
    connect(prober, bind(router));
    EXPECT_EQ(recv(router), (Texts{"X", ""}));
    if (type == SocketType::dealer) {
      send(router, {"X", "now it is known"});
      EXPECT_EQ(recv_text(prober), "now it is known");
    }
  }
}

TEST_P(RouterOption, AProberThatBindsProbesConnectingPeers) {
  Socket prober = make(SocketType::dealer);
  ASSERT_TRUE(prober.set(option::probe_router, true));
  Socket router = make(SocketType::router);
  connect(router, bind(prober));
  EXPECT_EQ(recv(router).back(), "");
}

TEST_P(RouterOption, TheNextConnectNamesItsPeer) {
  Socket near = make(SocketType::router);
  Socket far = make(SocketType::router);
  Socket dealer = make(SocketType::dealer);
  ASSERT_TRUE(near.set(option::router_mandatory, true));
  ASSERT_TRUE(far.set(option::routing_id, "its own name"));
  ASSERT_TRUE(near.set(option::connect_routing_id, "far"));
  connect(near, bind(far));
  EXPECT_EQ(*near.get(option::connect_routing_id), "");  // used
  ASSERT_TRUE(near.set(option::connect_routing_id, "dealer"));
  connect(near, bind(dealer));
  send(near, {"dealer", "to the dealer"});  // at once, before any peer is connected
  send(near, {"far", "to the far one"});
  EXPECT_EQ(recv_text(dealer), "to the dealer");
  const Texts got = recv(far);
  ASSERT_EQ(got.size(), 2u);
  EXPECT_EQ(got[1], "to the far one");
  send(far, {got[0], "back"});
  EXPECT_EQ(recv(near), (Texts{"far", "back"}));
  EXPECT_EQ(near.send("its own name", More::yes).error(), Errc::unreachable);
}

}  // namespace
}  // namespace weft::conformance
