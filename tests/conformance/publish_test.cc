// SPDX-License-Identifier: MIT
// PUB, SUB, XPUB and XSUB: the subscribers that get a message, and the notifications of subscriptions.
#include <algorithm>

#include "tests/conformance/conformance.h"

namespace weft::conformance {
namespace {

class PublishSubscribe : public Conformance {};
WEFT_EVERY_TRANSPORT(PublishSubscribe);
class PublishSubscribeInProcess : public PublishSubscribe {};
WEFT_TRANSPORTS_WHERE(PublishSubscribeInProcess, in_process);

TEST_P(PublishSubscribe, ASubscriberGetsOnlyMessagesThatBeginWithItsPrefixes) {
  Socket pub = make(SocketType::pub);
  Socket sub = make(SocketType::sub);
  connect(sub, bind(pub));
  ASSERT_TRUE(sub.subscribe("a"));
  ASSERT_TRUE(sub.subscribe("bc"));
  synchronize(pub, sub);
  for (const std::string_view text : {"a", "", "abc", "b", "bc", "bcd", "bd", "c", "A", "xa"}) {
    send(pub, text);
  }
  send(pub, "a.end");
  Texts got;
  do {
    got.push_back(recv_text(sub));
  } while (got.back() != "a.end" && !HasFailure());
  EXPECT_EQ(got, (Texts{"a", "abc", "bc", "bcd", "a.end"}));
}

TEST_P(PublishSubscribe, TheEmptyPrefixMatchesEverything) {
  Socket pub = make(SocketType::pub);
  Socket sub = make(SocketType::sub);
  connect(sub, bind(pub));
  ASSERT_TRUE(sub.subscribe(""));
  synchronize(pub, sub);
  send(pub, "");
  send(pub, "x");
  send(pub, {"", "second part"});
  EXPECT_EQ(recv(sub), (Texts{""}));
  EXPECT_EQ(recv(sub), (Texts{"x"}));
  EXPECT_EQ(recv(sub), (Texts{"", "second part"}));
}

TEST_P(PublishSubscribe, OnlyTheFirstPartIsMatchedAndTheMessageComesWhole) {
  Socket pub = make(SocketType::pub);
  Socket sub = make(SocketType::sub);
  connect(sub, bind(pub));
  ASSERT_TRUE(sub.subscribe("yes"));
  synchronize(pub, sub);
  const std::string big(100'000, 'x');
  send(pub, {"no", "yes"});
  send(pub, {"yes", "no", big});
  EXPECT_EQ(recv(sub), (Texts{"yes", "no", big}));
}

TEST_P(PublishSubscribe, AMessageThatMatchesTwiceComesOnce) {
  Socket pub = make(SocketType::pub);
  Socket sub = make(SocketType::sub);
  connect(sub, bind(pub));
  for (const std::string_view prefix : {"", "t", "to", "topic"}) {
    ASSERT_TRUE(sub.subscribe(prefix));
  }
  synchronize(pub, sub);
  send(pub, "topic");
  send(pub, "end");
  EXPECT_EQ(recv_text(sub), "topic");
  EXPECT_EQ(recv_text(sub), "end");
}

TEST_P(PublishSubscribe, ATopicGoesToItsPresentSubscribers) {
  Socket pub = make(SocketType::xpub);
  ASSERT_TRUE(pub.set(option::xpub_verboser, true));
  const std::string endpoint = bind(pub);
  Socket first = make(SocketType::sub);
  Socket second = make(SocketType::sub);
  connect(first, endpoint);
  connect(second, endpoint);
  const auto change = [&](Socket& sub, bool on, std::string_view topic) {
    ASSERT_TRUE(on ? sub.subscribe(topic) : sub.unsubscribe(topic));
    EXPECT_EQ(recv_text(pub), note(on, topic));
  };
  change(first, true, "t");
  send(pub, "t1");
  send(pub, "t1");
  change(second, true, "t1");
  send(pub, "t1");
  send(pub, "t2");
  EXPECT_EQ(recv_many(first, 4), (Texts{"t1", "t1", "t1", "t2"}));
  change(first, false, "t");
  send(pub, "t1");
  change(first, true, "");
  send(pub, "end");
  change(second, true, "");
  send(pub, "end");
  EXPECT_EQ(recv_many(first, 2), (Texts{"end", "end"}));
  EXPECT_EQ(recv_many(second, 3), (Texts{"t1", "t1", "end"}));
}

TEST_P(PublishSubscribe, TwoSubscribesNeedTwoUnsubscribes) {
  Socket pub = make(SocketType::pub);
  Socket sub = make(SocketType::sub);
  connect(sub, bind(pub));
  ASSERT_TRUE(sub.subscribe("t"));
  ASSERT_TRUE(sub.subscribe("t"));
  ASSERT_TRUE(sub.unsubscribe("t"));
  synchronize(pub, sub);
  send(pub, "t1");
  EXPECT_EQ(recv_text(sub), "t1");
  ASSERT_TRUE(sub.unsubscribe("t"));
  ASSERT_TRUE(sub.subscribe("end"));
  synchronize(pub, sub);
  send(pub, "t2");
  send(pub, "end");
  EXPECT_EQ(recv_text(sub), "end");
  EXPECT_EQ(sub.unsubscribe("t").error(), Errc::invalid_argument);
}

TEST_P(PublishSubscribe, AnUnsubscribedTopicDoesNotComeAlthoughItIsOnItsWay) {
  Socket pub = make(SocketType::pub);
  Socket sub = make(SocketType::sub);
  connect(sub, bind(pub));
  ASSERT_TRUE(sub.subscribe("a"));
  ASSERT_TRUE(sub.subscribe("b"));
  synchronize(pub, sub);
  send(pub, {"a", "was subscribed when it was sent"});
  send(pub, "b");
  ASSERT_TRUE(sub.unsubscribe("a"));
  EXPECT_EQ(recv_text(sub), "b");
}

TEST_P(PublishSubscribe, EverySubscriberGetsWhatItAskedFor) {
  Socket pub = make(SocketType::pub);
  const std::string endpoint = bind(pub);
  std::vector<Socket> subs;
  for (int i = 0; i < 8; ++i) {
    subs.push_back(make(SocketType::sub));
    connect(subs.back(), endpoint);
    ASSERT_TRUE(subs.back().subscribe("all"));
    ASSERT_TRUE(subs.back().subscribe("only " + std::to_string(i)));
    synchronize(pub, subs.back());
  }
  const std::string big = "all" + std::string(70'000, 'b');
  send(pub, "all");
  send(pub, big);
  for (int i = 0; i < 8; ++i) {
    send(pub, {"only " + std::to_string(i), "x"});
  }
  for (std::size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(recv_text(subs[i]), "all");
    EXPECT_TRUE(recv_text(subs[i]) == big);
    EXPECT_EQ(recv(subs[i]), (Texts{"only " + std::to_string(i), "x"}));
  }
}

TEST_P(PublishSubscribe, ASubscriberTakesFromSeveralPublishers) {
  Socket one = make(SocketType::pub);
  Socket two = make(SocketType::pub);
  Socket sub = make(SocketType::sub);
  connect(sub, bind(one));
  connect(sub, bind(two));
  ASSERT_TRUE(sub.subscribe("t"));
  synchronize(one, sub);
  synchronize(two, sub);
  send(one, "t1");
  EXPECT_EQ(recv_text(sub), "t1");
  send(two, "t2");
  EXPECT_EQ(recv_text(sub), "t2");
}

TEST_P(PublishSubscribe, ABoundSubscriberHearsPublishersThatConnect) {
  Socket sub = make(SocketType::sub);
  ASSERT_TRUE(sub.subscribe("t"));
  const std::string endpoint = bind(sub);
  Socket pub = make(SocketType::pub);
  connect(pub, endpoint);
  synchronize(pub, sub);
  send(pub, "t");
  EXPECT_EQ(recv_text(sub), "t");
}

TEST_P(PublishSubscribe, WithoutSubscribersMessagesGoNowhereAndThePublisherDoesNotWait) {
  Socket pub = make(SocketType::pub);
  (void)bind(pub);
  for (int i = 0; i < 5000; ++i) {
    ASSERT_TRUE(pub.send("x"));
  }
  EXPECT_EQ(pub.statistics()->dropped, 0u);  // messages without a subscriber do not count as dropped
}

TEST_P(PublishSubscribe, SendingAndReceivingTheWrongWayIsRefused) {
  Socket pub = make(SocketType::pub);
  Socket sub = make(SocketType::sub);
  connect(sub, bind(pub));
  EXPECT_EQ(pub.try_recv().error(), Errc::not_supported);
  EXPECT_EQ(pub.subscribe("x").error(), Errc::not_supported);
  EXPECT_EQ(sub.send("x").error(), Errc::not_supported);
}

TEST_P(PublishSubscribe, ASlowSubscriberIsBoundedAndItsDropsAreCountedWhileOthersGetEverything) {
  Socket pub = make(SocketType::pub);
  ASSERT_TRUE(pub.set(option::send_high_water_mark, 10));
  ASSERT_TRUE(pub.set(option::send_buffer, 4096));
  const std::string endpoint = bind(pub);
  Socket slow = make(SocketType::sub);
  ASSERT_TRUE(slow.set(option::receive_high_water_mark, 10));
  ASSERT_TRUE(slow.set(option::receive_buffer, 4096));
  connect(slow, endpoint);
  ASSERT_TRUE(slow.subscribe("t"));
  synchronize(pub, slow);
  Socket quick = make(SocketType::sub);
  connect(quick, endpoint);
  ASSERT_TRUE(quick.subscribe("t"));
  synchronize(pub, quick);
  const std::string payload(20'000, 'p');
  const std::uint64_t before = pub.statistics()->dropped;  // synchronize() may fill a queue, too
  constexpr int kCount = 2000;                             // 40 MB
  for (int i = 0; i < kCount; ++i) {
    send(pub, {"t", std::to_string(i), payload});
    const Texts got = recv(quick);
    ASSERT_EQ(got.size(), 3u);
    ASSERT_EQ(got[1], std::to_string(i));
  }
  const std::uint64_t dropped = pub.statistics()->dropped - before;
  EXPECT_GT(dropped, 0u);
  // The slow subscriber gets the messages that were not dropped, in order.
  int last = -1;
  for (std::uint64_t i = dropped; i < kCount; ++i) {
    const Texts got = recv(slow);
    ASSERT_EQ(got.size(), 3u);
    ASSERT_GT(std::stoi(got[1]), last);
    last = std::stoi(got[1]);
  }
  EXPECT_EQ(slow.try_recv().error(), Errc::would_block);
}

TEST_P(PublishSubscribeInProcess, ADropIsCountedOncePerMessageAndSubscriber) {
  Socket pub = make(SocketType::pub);
  ASSERT_TRUE(pub.set(option::send_high_water_mark, 2));
  const std::string endpoint = bind(pub);
  std::vector<Socket> subs;
  for (int i = 0; i < 2; ++i) {
    subs.push_back(make(SocketType::sub));
    ASSERT_TRUE(subs.back().set(option::receive_high_water_mark, 3));
    connect(subs.back(), endpoint);
    ASSERT_TRUE(subs.back().subscribe("t"));
  }
  for (int i = 0; i < 7; ++i) {
    send(pub, i % 2 == 0 ? Texts{"t"}[0] : "t" + std::string(200, 'l'));
  }
  EXPECT_EQ(pub.statistics()->dropped, 4u);  // of 7, each has room for 5
  for (Socket& sub : subs) {
    (void)recv_many(sub, 5);
    EXPECT_EQ(sub.try_recv().error(), Errc::would_block);
  }
}

class XPublish : public Conformance {};
WEFT_EVERY_TRANSPORT(XPublish);

TEST_P(XPublish, IsToldOfTheFirstSubscriptionAndTheLastUnsubscription) {
  Socket xpub = make(SocketType::xpub);
  const std::string endpoint = bind(xpub);
  Socket one = make(SocketType::sub);
  Socket two = make(SocketType::sub);
  connect(one, endpoint);
  connect(two, endpoint);
  ASSERT_TRUE(one.subscribe("t"));
  EXPECT_EQ(recv_text(xpub), note(true, "t"));
  ASSERT_TRUE(two.subscribe("t"));  // known already
  ASSERT_TRUE(two.subscribe("u"));
  EXPECT_EQ(recv_text(xpub), note(true, "u"));
  ASSERT_TRUE(one.unsubscribe("t"));  // `two` is still subscribed
  ASSERT_TRUE(one.subscribe("v"));
  EXPECT_EQ(recv_text(xpub), note(true, "v"));
  ASSERT_TRUE(two.unsubscribe("t"));
  EXPECT_EQ(recv_text(xpub), note(false, "t"));
}

TEST_P(XPublish, ASubscriberOfMoreTopicsThanItsMarkGetsEach) {
  constexpr int kTopics = 500;
  Socket xpub = make(SocketType::xpub);
  Socket sub = make(SocketType::sub);
  ASSERT_TRUE(sub.set(option::send_high_water_mark, 10));
  ASSERT_TRUE(xpub.set(option::receive_high_water_mark, 10));
  const Texts topics = numbered("topic ", 0, 2 * kTopics);
  for (int i = 0; i < kTopics; ++i) {
    ASSERT_TRUE(sub.subscribe(topics[static_cast<std::size_t>(i)]));
  }
  connect(sub, bind(xpub));
  for (int i = kTopics; i < 2 * kTopics; ++i) {
    ASSERT_TRUE(sub.subscribe(topics[static_cast<std::size_t>(i)]));
  }
  for (const std::string& topic : topics) {
    EXPECT_EQ(recv_text(xpub), note(true, topic));
  }
}

TEST_P(XPublish, WhenVerboseIsToldOfASubscriptionThatIsSaidAgain) {
  Socket xpub = make(SocketType::xpub);
  ASSERT_TRUE(xpub.set(option::xpub_verbose, true));
  Socket sub = make(SocketType::sub);
  connect(sub, bind(xpub));
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(sub.subscribe("a"));
    EXPECT_EQ(recv_text(xpub), "\1a");
  }
  ASSERT_TRUE(sub.unsubscribe("a"));
  send(xpub, "a");  // still subscribed to once
  EXPECT_EQ(recv_text(sub), "a");
  ASSERT_TRUE(sub.unsubscribe("a"));
  EXPECT_EQ(recv_text(xpub), std::string("\0a", 2));
}

TEST_P(XPublish, WhenVerboseIsToldOfEverySubscriber) {
  Socket xpub = make(SocketType::xpub);
  ASSERT_TRUE(xpub.set(option::xpub_verbose, true));
  const std::string endpoint = bind(xpub);
  Socket one = make(SocketType::sub);
  Socket two = make(SocketType::sub);
  connect(one, endpoint);
  connect(two, endpoint);
  ASSERT_TRUE(one.subscribe("t"));
  EXPECT_EQ(recv_text(xpub), note(true, "t"));
  ASSERT_TRUE(two.subscribe("t"));
  EXPECT_EQ(recv_text(xpub), note(true, "t"));
  ASSERT_TRUE(one.unsubscribe("t"));
  ASSERT_TRUE(two.unsubscribe("t"));
  EXPECT_EQ(recv_text(xpub), note(false, "t"));
}

TEST_P(XPublish, ASubscriberThatLeavesIsUnsubscribedFromEverything) {
  Socket xpub = make(SocketType::xpub);
  const std::string endpoint = bind(xpub);
  Socket sub = make(SocketType::sub);
  connect(sub, endpoint);
  ASSERT_TRUE(sub.subscribe("a"));
  ASSERT_TRUE(sub.subscribe("b"));
  Texts notes = recv_many(xpub, 2);  // subscriptions from before the connection come in any order
  std::sort(notes.begin(), notes.end());
  EXPECT_EQ(notes, (Texts{note(true, "a"), note(true, "b")}));
  sub.close();
  notes = recv_many(xpub, 2);
  std::sort(notes.begin(), notes.end());
  EXPECT_EQ(notes, (Texts{note(false, "a"), note(false, "b")}));
}

TEST_P(XPublish, SendsWhatSubscribersAskedFor) {
  Socket xpub = make(SocketType::xpub);
  Socket sub = make(SocketType::sub);
  connect(sub, bind(xpub));
  ASSERT_TRUE(sub.subscribe(""));
  EXPECT_EQ(recv_text(xpub), note(true, ""));
  send(xpub, {"a", "b"});
  EXPECT_EQ(recv(sub), (Texts{"a", "b"}));
}

TEST_P(XPublish, XsubSubscribesByMessageOrByCallAndUnsubscribes) {
  Socket xpub = make(SocketType::xpub);
  Socket xsub = make(SocketType::xsub);
  connect(xsub, bind(xpub));
  send(xsub, note(true, "by message"));
  EXPECT_EQ(recv_text(xpub), note(true, "by message"));
  ASSERT_TRUE(xsub.subscribe("by call"));
  EXPECT_EQ(recv_text(xpub), note(true, "by call"));
  send(xpub, "by message: x");
  EXPECT_EQ(recv_text(xsub), "by message: x");
  send(xsub, note(false, "by message"));
  EXPECT_EQ(recv_text(xpub), note(false, "by message"));
  send(xsub, note(false, "never subscribed"));
  send(xpub, "by message: y");
  send(xpub, "by call: z");
  EXPECT_EQ(recv_text(xsub), "by call: z");
}

TEST_P(XPublish, LongAndBinaryTopicsAreTopicsToo) {
  Socket xpub = make(SocketType::xpub);
  Socket xsub = make(SocketType::xsub);
  connect(xsub, bind(xpub));
  const std::string topic = std::string("\0\1\xff", 3).append(1000, 'l');
  send(xsub, note(true, topic));
  EXPECT_EQ(recv_text(xpub), note(true, topic));
  send(xpub, topic + "x");
  EXPECT_EQ(recv_text(xsub), topic + "x");
}

TEST_P(XPublish, OtherMessagesOfAnXsubGoUpstream) {
  Socket xpub = make(SocketType::xpub);
  Socket xsub = make(SocketType::xsub);
  connect(xsub, bind(xpub));
  send(xsub, note(true, "t"));
  EXPECT_EQ(recv_text(xpub), note(true, "t"));
  send(xsub, "upstream");
  send(xsub, {"up", "stream"});
  send(xsub, {"up", note(true, "not a subscription")});
  send(xsub, "");
  EXPECT_EQ(recv(xpub), (Texts{"upstream"}));
  EXPECT_EQ(recv(xpub), (Texts{"up", "stream"}));
  EXPECT_EQ(recv(xpub), (Texts{"up", note(true, "not a subscription")}));
  EXPECT_EQ(recv(xpub), (Texts{""}));
  send(xpub, "not a subscription");
  send(xpub, "t");
  EXPECT_EQ(recv_text(xsub), "t");
}

TEST_P(XPublish, TheFirstPartsOfAMessageMayBeSubscriptions) {
  Socket xpub = make(SocketType::xpub);
  Socket xsub = make(SocketType::xsub);
  connect(xsub, bind(xpub));
  send(xsub, note(true, "c"));
  EXPECT_EQ(recv_text(xpub), note(true, "c"));
  send(xsub, {note(true, "a"), note(true, "b"), note(false, "a"), "up", "stream"});
  EXPECT_EQ(recv(xpub), (Texts{note(true, "a")}));
  EXPECT_EQ(recv(xpub), (Texts{note(true, "b")}));
  EXPECT_EQ(recv(xpub), (Texts{note(false, "a")}));
  EXPECT_EQ(recv(xpub), (Texts{"up", "stream"}));
  send(xpub, "a");
  send(xpub, "b");
  EXPECT_EQ(recv_text(xsub), "b");
}

TEST_P(XPublish, AFloodOfUpstreamMessagesDoesNotKeepAPublisherFromSeeingSubscriptions) {
  Socket pub = make(SocketType::pub);
  Socket xsub = make(SocketType::xsub);
  connect(xsub, bind(pub));
  send(xsub, note(true, "first"));
  synchronize(pub, xsub);
  for (int i = 0; i < 5000; ++i) {
    send(xsub, "nobody receives this");
  }
  send(xsub, note(true, "second"));
  synchronize(pub, xsub);
  send(pub, "second");
  EXPECT_EQ(recv_text(xsub), "second");
}

TEST_P(XPublish, AChainOfXsubAndXpubForwardsSubscriptionsAndMessages) {
  Socket pub = make(SocketType::xpub);
  Socket upstream = make(SocketType::xsub);
  Socket downstream = make(SocketType::xpub);
  Socket sub = make(SocketType::sub);
  connect(upstream, bind(pub));
  connect(sub, bind(downstream));
  ASSERT_TRUE(sub.subscribe("t"));
  send(upstream, recv_text(downstream));
  EXPECT_EQ(recv_text(pub), note(true, "t"));
  send(pub, {"t", "1"});
  const Texts passed = recv(upstream);
  send(downstream, {passed[0], passed[1]});
  EXPECT_EQ(recv(sub), (Texts{"t", "1"}));
}

}  // namespace
}  // namespace weft::conformance
