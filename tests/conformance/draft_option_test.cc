// SPDX-License-Identifier: MIT
// Options that libzmq has as drafts.
#include <algorithm>
#include <set>

#include "tests/conformance/conformance.h"

namespace weft::conformance {
namespace {

class DraftOption : public Conformance {
 protected:
  // A ROUTER that reports peers by `notify`.
  Socket make_router(int notify) {
    Socket router = make(SocketType::router);
    EXPECT_TRUE(router.set(option::router_notify, notify));
    return router;
  }
  Socket make_publisher_of_last_values() {
    Socket xpub = make(SocketType::xpub);
    EXPECT_TRUE(xpub.set(option::xpub_manual, true));
    EXPECT_TRUE(xpub.set(option::xpub_manual_last_value, true));
    return xpub;
  }
  Socket make_dealer(const std::string& endpoint, std::string_view id) {
    Socket dealer = make(SocketType::dealer);
    EXPECT_TRUE(dealer.set(option::routing_id, std::string(id)));
    connect(dealer, endpoint);
    return dealer;
  }
  static void expect_nothing(Socket& socket) { EXPECT_EQ(socket.try_recv().error(), Errc::would_block); }
};
WEFT_EVERY_TRANSPORT(DraftOption);

TEST_P(DraftOption, ARouterTellsOfPeersThatComeAndGoAsOfAnEmptyMessage) {
  for (const int notify : {0, 1, 2, 3}) {
    SCOPED_TRACE(notify);
    Socket router = make_router(notify);
    Socket dealer = make_dealer(bind(router), "X");
    send(dealer, "hello");
    if (GetParam().streams && (notify & 1) != 0) {  // inproc has no handshake, and reports nothing
      EXPECT_EQ(recv(router), (Texts{"X", ""}));
    }
    EXPECT_EQ(recv(router), (Texts{"X", "hello"}));
    ASSERT_TRUE(router.watch_events());
    dealer.close();
    if (GetParam().streams) {
      wait_for_event(router, EventKind::disconnected);
      if ((notify & 2) != 0) {
        EXPECT_EQ(recv(router), (Texts{"X", ""}));
      }
    }
    expect_nothing(router);
  }
}

TEST_P(DraftOption, ARouterThatConnectsTellsOfEachConnectionAnew) {
  if (!GetParam().streams) {
    return;
  }
  const std::string endpoint = free_endpoint();
  Socket router = make_router(3);
  connect(router, endpoint);
  for (int round = 0; round < 2; ++round) {
    Socket dealer = make(SocketType::dealer);
    ASSERT_TRUE(dealer.set(option::routing_id, std::string("X")));
    secure_server(dealer);
    ASSERT_TRUE(dealer.bind(endpoint));
    EXPECT_EQ(recv(router), (Texts{"X", ""}));
    dealer.close();
    EXPECT_EQ(recv(router), (Texts{"X", ""}));
  }
}

TEST_P(DraftOption, TheNoticeOfTheEndComesBehindTheLastMessageAndInFrontOfTheDisconnectMessage) {
  if (!GetParam().streams) {
    return;
  }
  Socket router = make_router(2);
  ASSERT_TRUE(router.set(option::disconnect_message, std::string("gone")));
  ASSERT_TRUE(router.set(option::receive_high_water_mark, 2));
  {
    Socket dealer = make_dealer(bind(router), "X");
    for (int i = 0; i < 10; ++i) {
      send(dealer, {"part", std::to_string(i)});
    }
  }
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(recv(router), (Texts{"X", "part", std::to_string(i)}));
  }
  EXPECT_EQ(recv(router), (Texts{"X", ""}));
  EXPECT_EQ(recv(router), (Texts{"X", "gone"}));
  expect_nothing(router);
}

TEST_P(DraftOption, OfAPeerThatIsRefusedARouterTellsNothing) {
  if (!GetParam().streams) {
    return;
  }
  Socket router = make_router(3);
  ASSERT_TRUE(router.watch_events());
  const std::string endpoint = bind(router);
  Socket first = make_dealer(endpoint, "X");
  EXPECT_EQ(recv(router), (Texts{"X", ""}));
  {
    Socket second = make_dealer(endpoint, "X");  // the routing id is in use
    wait_for_event(router, EventKind::handshake_failed);
  }
  send(first, "still here");
  EXPECT_EQ(recv(router), (Texts{"X", "still here"}));
  expect_nothing(router);
}

TEST_P(DraftOption, AManualPublisherGivesTheLastValueToTheLastSubscriberAlone) {
  Socket xpub = make_publisher_of_last_values();
  const std::string endpoint = bind(xpub);
  Socket subs[] = {make(SocketType::sub), make(SocketType::sub)};
  for (Socket& sub : subs) {
    connect(sub, endpoint);
    ASSERT_TRUE(sub.subscribe("t"));
    EXPECT_EQ(recv_text(xpub), note(true, "t"));
    ASSERT_TRUE(xpub.subscribe("t"));
    send(xpub, {"t", "last value"});
    EXPECT_EQ(recv(sub), (Texts{"t", "last value"}));
  }
  send(xpub, {"t", "next"});
  for (Socket& sub : subs) {
    EXPECT_EQ(recv(sub), (Texts{"t", "next"}));  // nothing else in between
  }
  // A topic without a subscriber goes to no peer; a peer that has gone does not delay the others.
  ASSERT_TRUE(subs[1].subscribe("u"));
  EXPECT_EQ(recv_text(xpub), note(true, "u"));
  send(xpub, "u");
  ASSERT_TRUE(subs[1].unsubscribe("u"));
  EXPECT_EQ(recv_text(xpub), note(false, "u"));
  subs[1].close();
  EXPECT_EQ(recv_text(xpub), note(false, "t"));
  ASSERT_TRUE(xpub.subscribe("t"));
  send(xpub, "t for the peer that has gone");
  send(xpub, "t3");
  EXPECT_EQ(recv_text(subs[0]), "t3");
}

TEST_P(DraftOption, AManualPublisherGivesOneMoreValueForEachCallOfSubscribe) {
  Socket xpub = make_publisher_of_last_values();
  const std::string endpoint = bind(xpub);
  Socket subs[] = {make(SocketType::sub), make(SocketType::sub)};
  for (Socket& sub : subs) {
    connect(sub, endpoint);
    ASSERT_TRUE(sub.subscribe("t"));
    EXPECT_EQ(recv_text(xpub), note(true, "t"));
    for (const char* const value : {"t1", "t2", "t3"}) {
      ASSERT_TRUE(xpub.subscribe("t"));
      send(xpub, value);
    }
    send(xpub, "t for all");
    for (const char* const value : {"t1", "t2", "t3", "t for all"}) {
      EXPECT_EQ(recv_text(sub), value);
    }
  }
  EXPECT_EQ(recv_text(subs[0]), "t for all");
  expect_nothing(subs[0]);
}

TEST_P(DraftOption, TheNoticeOfASubscriptionNamesItsPeer) {
  Socket xpub = make(SocketType::xpub);
  ASSERT_TRUE(xpub.set(option::xpub_verboser, true));
  const std::string endpoint = bind(xpub);
  if (!endpoint.starts_with("tcp:")) {
    return;  // the other transports are the same code, and inproc has no properties
  }
  const auto peer_of = [&](const Message& notice) { return notice.origin().peer; };
  Message notices[4];
  {
    Socket subs[] = {make(SocketType::sub), make(SocketType::sub)};
    for (std::size_t i = 0; i < 2; ++i) {
      connect(subs[i], endpoint);
      ASSERT_TRUE(subs[i].subscribe("t"));
      notices[i] = xpub.recv().value();
      const char* const address = notices[i].peer_property("Peer-Address");
      ASSERT_NE(address, nullptr);
      EXPECT_STREQ(address, "127.0.0.1");
    }
  }
  notices[2] = xpub.recv().value();
  notices[3] = xpub.recv().value();
  EXPECT_NE(peer_of(notices[0]), peer_of(notices[1]));
  EXPECT_EQ(std::minmax({peer_of(notices[0]), peer_of(notices[1])}),
            std::minmax({peer_of(notices[2]), peer_of(notices[3])}))
      << "those of peers that went away name them, too";
}

TEST_P(DraftOption, AnXsubThatIsVerbosePassesOnEveryUnsubscription) {
  for (const bool verbose : {false, true}) {
    Socket xpub = make(SocketType::xpub);
    Socket xsub = make(SocketType::xsub);
    ASSERT_TRUE(xpub.set(option::xpub_verboser, true));
    ASSERT_TRUE(xsub.set(option::xsub_verbose_unsubscribe, verbose));
    connect(xsub, bind(xpub));
    for (const char* text : {"\1t", "\1t"}) {
      send(xsub, text);
      EXPECT_EQ(recv_text(xpub), text);
    }
    for (int i = 0; i < 3; ++i) {  // the third has no subscription left
      send(xsub, note(false, "t"));
    }
    send(xsub, "end");
    int passed = 0;
    for (std::string got = recv_text(xpub); got != "end" && !HasFailure(); got = recv_text(xpub)) {
      EXPECT_EQ(got, note(false, "t"));
      ++passed;
    }
    EXPECT_EQ(passed, verbose ? 3 : 1);
  }
}

TEST_P(DraftOption, BothEndsCountTheTopics) {
  Socket xpub = make(SocketType::xpub);
  const std::string endpoint = bind(xpub);
  Socket subs[] = {make(SocketType::sub), make(SocketType::sub)};
  EXPECT_EQ(*xpub.topics(), 0u);
  for (Socket& sub : subs) {
    connect(sub, endpoint);
    for (const char* topic : {"a", "ab", "ab", "abc"}) {
      ASSERT_TRUE(sub.subscribe(topic));
    }
    EXPECT_EQ(*sub.topics(), 3u);
  }
  ASSERT_TRUE(subs[1].subscribe("other"));
  for (std::set<std::string> told; told.size() < 4;) {
    told.insert(recv_text(xpub));
  }
  EXPECT_EQ(*xpub.topics(), 4u);
  subs[1].close();
  EXPECT_EQ(recv_text(xpub), note(false, "other"));
  EXPECT_EQ(*xpub.topics(), 3u);
  EXPECT_EQ(make(SocketType::push).topics().error(), Errc::not_supported);
  EXPECT_EQ(Socket().topics().error(), Errc::closed);
}

TEST_P(DraftOption, EveryPartOfAMessageTellsThePropertiesOfItsSender) {
  if (!GetParam().streams) {
    return;
  }
  Socket router = make(SocketType::router);
  Socket req = make(SocketType::req);
  ASSERT_TRUE(req.set(option::metadata, std::string("X-name:a value\0X-other:b:c\0X-name:ignored", 39)));
  ASSERT_TRUE(router.set("metadata", "X-router:yes"));
  connect(req, bind(router));
  for (const bool looks_first : {false, true}) {
    send(req, "request");
    if (looks_first) {
      PollItem item{.socket = &router, .want_input = true};
      EXPECT_EQ(*poll({&item, 1}, kLong), 1u);
    }
    const auto parts = router.recv_all();
    ASSERT_TRUE(parts);
    ASSERT_EQ(parts->size(), 3u);
    for (const Message& part : *parts) {
      EXPECT_STREQ(part.peer_property("X-name"), "a value");
      EXPECT_STREQ(part.peer_property("X-other"), "b:c");
      EXPECT_STREQ(part.peer_property("Socket-Type"), "REQ");
    }
    send(router, {(*parts)[0].text(), "", "reply"});
    const auto reply = req.recv();
    ASSERT_TRUE(reply);
    EXPECT_STREQ(reply->peer_property("X-router"), "yes");
  }
}

}  // namespace
}  // namespace weft::conformance
