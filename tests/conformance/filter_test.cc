// SPDX-License-Identifier: MIT
// Subscriptions by filter: exact topics, tokens and globs, beside prefixes.
#include <algorithm>

#include "tests/conformance/conformance.h"

namespace weft::conformance {
namespace {

Filter tokens(std::string_view text) { return *Filter::parse(text); }
Filter exact(std::string_view text) { return *Filter::exact(text); }
Filter glob(std::string_view text) { return *Filter::glob(text); }

class Subscribe : public Conformance {
 protected:
  // Sends each topic, and returns those that come. The publisher has all filters already.
  static Texts received(Socket& publisher, Socket& subscriber, std::initializer_list<std::string_view> topics) {
    for (const std::string_view topic : topics) {
      send(publisher, topic);
    }
    send(publisher, "~last");
    Texts got;
    do {
      got.push_back(recv_text(subscriber));
    } while (got.back() != "~last" && !HasFailure());
    got.pop_back();
    return got;
  }
  // Cancellations, also those of synchronize(), are under way to the publisher for a while.
  static void wait_for_topics(Socket& publisher, std::size_t topics) {
    const Instant end = sys::now() + kLong;
    while (publisher.topics().value() != topics && sys::now() < end) {
      std::this_thread::yield();
    }
    EXPECT_EQ(publisher.topics().value(), topics);
  }
  // A publisher and a subscriber that are connected.
  void join(Socket& publisher, Socket& subscriber) {
    connect(subscriber, bind(publisher));
    ASSERT_TRUE(subscriber.subscribe("~last"));
  }
};
WEFT_EVERY_TRANSPORT(Subscribe);
class SubscribeOverStreams : public Subscribe {};
WEFT_TRANSPORTS_WHERE(SubscribeOverStreams, over_streams);

TEST_P(Subscribe, AnExactTopicNeverReceivesALongerOne) {
  Socket pub = make(SocketType::pub);
  Socket sub = make(SocketType::sub);
  join(pub, sub);
  ASSERT_TRUE(sub.subscribe(exact("player:1")));
  synchronize(pub, sub);
  EXPECT_EQ(received(pub, sub, {"player:10", "player:1", "player:", "player:1x"}), (Texts{"player:1"}));
}

TEST_P(Subscribe, AGlobWithAStarInTheMiddleMatchesItsEnd) {
  Socket pub = make(SocketType::pub);
  Socket sub = make(SocketType::sub);
  join(pub, sub);
  ASSERT_TRUE(sub.subscribe(glob("a:*:b")));
  synchronize(pub, sub);
  EXPECT_EQ(received(pub, sub, {"a:x:c", "a:x:b", "a:", "a:x:y:b", "b"}), (Texts{"a:x:b", "a:x:y:b"}));
}

TEST_P(Subscribe, TokensMatchOneTokenOrTheRest) {
  Socket pub = make(SocketType::pub);
  Socket sub = make(SocketType::sub);
  join(pub, sub);
  ASSERT_TRUE(sub.subscribe(tokens("px.*")));
  ASSERT_TRUE(sub.subscribe(tokens("*.error.>")));
  synchronize(pub, sub);
  EXPECT_EQ(received(pub, sub, {"px", "px.A", "px.A.B", "app.error", "app.error.disk", "app.error.disk.full"}),
            (Texts{"px.A", "app.error.disk", "app.error.disk.full"}));
}

TEST_P(Subscribe, AMessageThatCameBeforeItsFilterWentIsDroppedAlsoAfterOneOfTheSameTopic) {
  Socket pub = make(SocketType::pub);
  Socket sub = make(SocketType::sub);
  join(pub, sub);
  ASSERT_TRUE(sub.subscribe(exact("a")));
  synchronize(pub, sub);
  for (const std::string_view topic : {"a", "a", "a", "~last"}) {
    send(pub, topic);
  }
  EXPECT_EQ(recv_text(sub), "a");
  EXPECT_EQ(recv_text(sub), "a");
  ASSERT_TRUE(sub.unsubscribe(exact("a")));
  EXPECT_EQ(recv_text(sub), "~last");
}

TEST_P(Subscribe, AFilterBesideAPrefixDoesNotLetEverythingThrough) {
  Socket pub = make(SocketType::pub);
  Socket sub = make(SocketType::sub);
  join(pub, sub);
  ASSERT_TRUE(sub.subscribe(glob("*:hot")));
  ASSERT_TRUE(sub.subscribe("news"));
  synchronize(pub, sub);
  EXPECT_EQ(received(pub, sub, {"a:cold", "a:hot", "news:cold", "x"}), (Texts{"a:hot", "news:cold"}));
}

TEST_P(Subscribe, EveryFilterCanBeTakenBack) {
  Socket pub = make(SocketType::pub);
  Socket sub = make(SocketType::sub);
  join(pub, sub);
  const Filter all[] = {exact("a.b"), tokens("a.*"), glob("a*b"), *Filter::prefix("a.")};
  for (const Filter& filter : all) {
    ASSERT_TRUE(sub.subscribe(filter));
  }
  for (const Filter& filter : all) {
    synchronize(pub, sub);
    EXPECT_EQ(received(pub, sub, {"a.b"}), (Texts{"a.b"})) << filter.text();  // once, however many match
    ASSERT_TRUE(sub.unsubscribe(filter));
    EXPECT_EQ(sub.unsubscribe(filter).error(), Errc::invalid_argument);
  }
  synchronize(pub, sub);
  EXPECT_EQ(received(pub, sub, {"a.b"}), Texts());
  EXPECT_EQ(sub.topics().value(), 1u);
}

TEST_P(Subscribe, AFilterIsThereUntilEachSubscriptionIsTakenBack) {
  Socket pub = make(SocketType::pub);
  Socket sub = make(SocketType::sub);
  join(pub, sub);
  ASSERT_TRUE(sub.subscribe(glob("a*b")));
  ASSERT_TRUE(sub.subscribe(glob("a*b")));
  ASSERT_TRUE(sub.unsubscribe(glob("a*b")));
  synchronize(pub, sub);
  EXPECT_EQ(received(pub, sub, {"a-b"}), (Texts{"a-b"}));
}

TEST_P(Subscribe, AWeftPublisherSendsOnlyWhatMatches) {
  Socket pub = make(SocketType::pub);
  Socket sub = make(SocketType::sub);
  join(pub, sub);
  ASSERT_TRUE(sub.subscribe(glob("*x*")));
  ASSERT_TRUE(sub.subscribe(exact("b")));
  synchronize(pub, sub);
  EXPECT_EQ(received(pub, sub, {"a", "b", "bb", "axa", "c"}), (Texts{"b", "axa"}));
  EXPECT_EQ(sub.statistics().value().dropped_unexpected, 0u);
  wait_for_topics(pub, 3);
}

TEST_P(Subscribe, TheFirstPartIsMatchedAndTheMessageComesWhole) {
  Socket pub = make(SocketType::pub);
  Socket sub = make(SocketType::sub);
  join(pub, sub);
  ASSERT_TRUE(sub.subscribe(glob("yes*!")));
  synchronize(pub, sub);
  const std::string big(100'000, 'x');
  send(pub, {"no", "yes!"});
  send(pub, {"yes!", "no", big});
  EXPECT_EQ(recv(sub), (Texts{"yes!", "no", big}));
}

TEST_P(Subscribe, ManyStarsTakeNoLongerThanFew) {
  Socket pub = make(SocketType::pub);
  Socket sub = make(SocketType::sub);
  join(pub, sub);
  std::string stars;
  while (stars.size() + 3 <= kTopicBytesMax) {
    stars += "*a";
  }
  ASSERT_TRUE(sub.subscribe(glob(stars + "b")));
  synchronize(pub, sub);
  const std::string topic(250, 'a');
  EXPECT_EQ(received(pub, sub, {topic, topic, topic, topic + "b"}), (Texts{topic + "b"}));
}

TEST_P(Subscribe, AnXpubIsToldTheLiteralHead) {
  Socket xpub = make(SocketType::xpub);
  Socket sub = make(SocketType::sub);
  connect(sub, bind(xpub));
  ASSERT_TRUE(sub.subscribe(glob("a:*:b")));
  EXPECT_EQ(recv_text(xpub), "\1a:");
  send(xpub, "a:x:c");
  send(xpub, "a:x:b");
  EXPECT_EQ(recv_text(sub), "a:x:b");
  ASSERT_TRUE(sub.unsubscribe(glob("a:*:b")));
  EXPECT_EQ(recv_text(xpub), std::string("\0a:", 3));
  ASSERT_TRUE(sub.subscribe(exact("e")));
  EXPECT_EQ(recv_text(xpub), "\1e");
  sub.close();
  EXPECT_EQ(recv_text(xpub), std::string("\0e", 2));
}

TEST_P(Subscribe, AnXpubThatSubscribesByHandServesTheHead) {
  Socket xpub = make(SocketType::xpub);
  ASSERT_TRUE(xpub.set(option::xpub_manual, true));
  Socket sub = make(SocketType::sub);
  connect(sub, bind(xpub));
  ASSERT_TRUE(sub.subscribe(glob("a:*:b")));
  EXPECT_EQ(recv_text(xpub), "\1a:");
  ASSERT_TRUE(xpub.subscribe("a:"));
  send(xpub, "a:x:c");
  send(xpub, "a:x:b");
  EXPECT_EQ(recv_text(sub), "a:x:b");
}

TEST_P(Subscribe, AnXsubReceivesWhatItsFilterMatches) {
  Socket pub = make(SocketType::pub);
  Socket xsub = make(SocketType::xsub);
  join(pub, xsub);
  ASSERT_TRUE(xsub.subscribe(glob("a*b")));
  synchronize(pub, xsub);
  EXPECT_EQ(received(pub, xsub, {"a", "ab", "abc", "a-b"}), (Texts{"ab", "a-b"}));
}

TEST_P(Subscribe, InvertedTheOthersCome) {
  Socket pub = make(SocketType::pub);
  Socket sub = make(SocketType::sub);
  ASSERT_TRUE(pub.set(option::invert_matching, true));
  ASSERT_TRUE(sub.set(option::invert_matching, true));
  connect(sub, bind(pub));
  ASSERT_TRUE(sub.subscribe(glob("a*b")));
  while (sub.recv_until(sys::now() + 1ms).error() == Errc::timed_out && !HasFailure()) {
    send(pub, "begin");
  }
  send(pub, "a-b");
  send(pub, "end");
  std::string got;
  do {
    got = recv_text(sub);
    EXPECT_NE(got, "a-b");
  } while (got != "end" && !HasFailure());
}

TEST_P(SubscribeOverStreams, FiltersComeAgainAfterAReconnect) {
  Socket sub = make(SocketType::sub);
  ASSERT_TRUE(sub.subscribe(glob("a:*:b")));
  ASSERT_TRUE(sub.subscribe(tokens("px.*")));
  ASSERT_TRUE(sub.subscribe("~last"));
  std::string endpoint;
  for (int round = 0; round < 3; ++round) {
    Socket pub = make(SocketType::pub);
    if (round == 0) {
      endpoint = bind(pub);
      connect(sub, endpoint);
    } else {
      secure_server(pub);
      ASSERT_TRUE(pub.bind(endpoint));
    }
    synchronize(pub, sub);
    EXPECT_EQ(received(pub, sub, {"a:x:c", "px.1", "a:x:b"}), (Texts{"px.1", "a:x:b"})) << round;
  }
}

TEST_P(Subscribe, APublisherForgetsTheFiltersOfAPeerThatLeaves) {
  Socket pub = make(SocketType::pub);
  Socket stays = make(SocketType::sub);
  const std::string endpoint = bind(pub);
  connect(stays, endpoint);
  ASSERT_TRUE(stays.subscribe(glob("*a")));
  synchronize(pub, stays);
  {
    Socket leaves = make(SocketType::sub);
    connect(leaves, endpoint);
    for (int i = 0; i < 3000; ++i) {
      ASSERT_TRUE(leaves.subscribe(glob(std::to_string(i) + "*a")));
    }
    synchronize(pub, leaves);
    EXPECT_GT(pub.topics().value(), 3000u);
  }
  const Instant end = sys::now() + kLong;
  while (pub.topics().value() > 1) {
    ASSERT_LT(sys::now(), end);
    std::this_thread::yield();
  }
  send(pub, "b");
  send(pub, "ba");
  EXPECT_EQ(recv_text(stays), "ba");
}

TEST_P(Subscribe, SocketsThatDoNotSubscribeRefuseFilters) {
  EXPECT_EQ(make(SocketType::pub).subscribe(glob("a*")).error(), Errc::not_supported);
  EXPECT_EQ(make(SocketType::pull).subscribe(glob("a*")).error(), Errc::not_supported);
  EXPECT_EQ(make(SocketType::dish).subscribe(glob("a*")).error(), Errc::not_supported);
  EXPECT_EQ(make(SocketType::sub).unsubscribe(glob("a*")).error(), Errc::invalid_argument);
}

}  // namespace
}  // namespace weft::conformance
