// SPDX-License-Identifier: MIT
// Topics within one process: publishing, subscribing, policies, and that the books balance.
#include "weft/topic/topics.h"

#include <string>
#include <thread>
#include <vector>

#include "weft/topic/test_fleets.h"
#include <gtest/gtest.h>

namespace weft::topic {
namespace {

void expect_balance(const Topics& topics) {
  const TopicsStatistics all = topics.statistics();
  EXPECT_EQ(all.matched, all.delivered + all.dropped() + all.queued);
}

class OneHandle : public testing::Test {
 protected:
  Topics open(TopicsOptions options = {}) {
    options.fleet = "inproc:one";
    auto topics = Topics::open(context_, options);
    EXPECT_TRUE(topics) << topics.error().message();
    return *std::move(topics);
  }
  Context context_;
};

TEST_F(OneHandle, AMessageReachesASubscriptionOfTheSameHandle) {
  Topics topics = open();
  Subscription s = *topics.subscribe({"px.*", "news.>"});
  Publisher px = *topics.publisher("px.AAPL");
  ASSERT_TRUE(px.publish("188.2"));
  auto m = s.try_next();
  ASSERT_TRUE(m) << m.error().message();
  EXPECT_EQ(m->topic(), "px.AAPL");
  EXPECT_EQ(m->text(), "188.2");
  EXPECT_EQ(m->filter(), "px.*");
  EXPECT_EQ(m->missed(), 0u);
  EXPECT_EQ(m->reply_to(), "");
  EXPECT_EQ(s.try_next().error(), Errc::would_block);
  expect_balance(topics);
}

TEST_F(OneHandle, AQueueOfTheNewestKeepsItsBoundOfBytesWhenNewerMessagesAreLarger) {
  Topics topics = open();
  constexpr std::size_t kBound = 100'000;
  Subscription s = *topics.subscribe("t.>", {.full = Full::newest_per_topic, .queue_bytes_max = kBound});
  std::vector<Publisher> all;
  for (int i = 0; i < 100; ++i) {
    all.push_back(*topics.publisher("t." + std::to_string(i)));
    ASSERT_TRUE(all.back().publish("small"));
  }
  const std::string large(10'000, 'x');
  for (Publisher& each : all) {
    ASSERT_TRUE(each.publish(large));
  }
  std::size_t bytes = 0;
  std::uint64_t count = 0;
  std::uint64_t missed = 0;
  for (auto m = s.try_next(); m; m = s.try_next(), ++count) {
    bytes += m->body().size();
    missed += m->missed();
  }
  EXPECT_LE(bytes, kBound + large.size());
  EXPECT_EQ(count + missed, 200u);
  expect_balance(topics);
}

TEST_F(OneHandle, HeadersArrive) {
  Topics topics = open();
  Subscription s = *topics.subscribe("a");
  Headers headers;
  ASSERT_TRUE(headers.add("traceparent", "00-1-2-01"));
  ASSERT_TRUE(topics.publisher("a")->publish("x", headers));
  EXPECT_EQ(s.next_until(soon())->header("traceparent"), "00-1-2-01");
}

// The sockets of other processes would end the connection.
TEST_F(OneHandle, AMessageBeyond64MebibytesIsRefusedToThePublisher) {
  Topics topics = open();
  Subscription s = *topics.subscribe("t");
  Publisher t = *topics.publisher("t");
  const std::uint8_t byte = 0;
  EXPECT_EQ(t.publish(Bytes(&byte, (std::size_t{64} << 20) + 1)).error(), Errc::message_too_large);
  EXPECT_EQ(s.try_next().error(), Errc::would_block);
  ASSERT_TRUE(t.publish("small"));
  EXPECT_EQ(s.try_next()->text(), "small");
  expect_balance(topics);
}

TEST_F(OneHandle, ASubscriptionGetsAMessageOnceHoweverManyFiltersMatch) {
  Topics topics = open();
  Subscription s = *topics.subscribe({"a.b", "a.*", "a.>"});
  ASSERT_TRUE(s.add(Filter::glob("a*")));
  ASSERT_TRUE(topics.publisher("a.b")->publish("1"));
  EXPECT_TRUE(s.try_next());
  EXPECT_EQ(s.try_next().error(), Errc::would_block);
}

TEST_F(OneHandle, EveryFilterCanBeTakenBack) {
  Topics topics = open();
  Subscription s = *topics.subscribe("x");
  ASSERT_TRUE(s.add(Filter::glob("news:*")));
  EXPECT_EQ(topics.pattern_count(), 1u);
  Publisher news = *topics.publisher("news:1");
  ASSERT_TRUE(news.publish("1"));
  ASSERT_TRUE(s.remove(Filter::glob("news:*")));
  EXPECT_EQ(topics.pattern_count(), 0u);
  ASSERT_TRUE(news.publish("2"));
  EXPECT_EQ(s.try_next()->text(), "1");
  EXPECT_EQ(s.try_next().error(), Errc::would_block);
  EXPECT_EQ(s.remove(Filter::glob("news:*")).error(), Errc::invalid_argument);
  EXPECT_EQ(s.remove("y").error(), Errc::invalid_argument);
}

// Regression: publish() was ok when no subscriber could get the message any longer.
TEST(TopicsContext, CallsAfterTheContextEndedSaySo) {
  TestFleet fleet("inproc");
  Context context;
  Topics topics = fleet.open(context);
  Publisher p = *topics.publisher("a");
  Subscription s = *topics.subscribe("a");
  ASSERT_TRUE(p.publish("before"));
  context.shut_down();
  EXPECT_EQ(p.publish("after").error(), Errc::terminated);
  EXPECT_EQ(p.try_publish(as_bytes(std::string_view("after"))).error(), Errc::terminated);
  EXPECT_EQ(topics.subscribe("b").error(), Errc::terminated);
  EXPECT_EQ(p.wait_subscribers(2, sys::now() + 10ms).error(), Errc::terminated);
  EXPECT_EQ(topics.sync(sys::now() + 10ms).error(), Errc::terminated);
  EXPECT_EQ(s.try_next()->text(), "before");  // it came before
}

// Regression: a pattern beside exact topics let every message through.
TEST_F(OneHandle, PatternsBesideExactTopicsLetNothingElseThrough) {
  Topics topics = open();
  Topics other = open();
  Subscription s = *topics.subscribe("x");
  ASSERT_TRUE(s.add(Filter::glob("news:*:de")));
  Publisher last = *other.publisher("x");
  ASSERT_TRUE(last.wait_subscribers(1, soon()));
  for (Topics* const from : {&topics, &other}) {
    for (const char* topic : {"y", "news:1:en", "news:de", "xx", "x"}) {
      ASSERT_TRUE(from->publisher(topic)->publish(topic));
    }
    EXPECT_EQ(s.next_until(soon())->text(), "x");
    EXPECT_EQ(s.try_next().error(), Errc::would_block);
  }
}

TEST_F(OneHandle, DropOldestTellsHowManyWereMissed) {
  Topics topics = open();
  Subscription s = *topics.subscribe("a", {.full = Full::drop_oldest, .queue_messages_max = 4});
  Publisher a = *topics.publisher("a");
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(a.publish(std::to_string(i)));
  }
  auto m = s.try_next();
  EXPECT_EQ(m->text(), "6");
  EXPECT_EQ(m->missed(), 6u);
  EXPECT_EQ(s.try_next()->missed(), 0u);
  EXPECT_EQ(s.missed(), 6u);
  EXPECT_EQ(topics.statistics().dropped_oldest, 6u);
  EXPECT_EQ(topics.statistics().queued, 2u);
  expect_balance(topics);
}

TEST_F(OneHandle, DropNewestTellsItWithTheNextMessage) {
  Topics topics = open();
  Subscription s = *topics.subscribe("a", {.full = Full::drop_newest, .queue_messages_max = 2});
  Publisher a = *topics.publisher("a");
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(a.publish(std::to_string(i)));
  }
  EXPECT_EQ(s.try_next()->text(), "0");
  EXPECT_EQ(s.try_next()->missed(), 0u);
  ASSERT_TRUE(a.publish("5"));
  EXPECT_EQ(s.try_next()->missed(), 3u);
  EXPECT_EQ(topics.statistics().dropped_newest, 3u);
  expect_balance(topics);
}

TEST_F(OneHandle, NewestPerTopicKeepsOneOfEach) {
  Topics topics = open();
  Subscription s = *topics.subscribe("px.*", {.full = Full::newest_per_topic});
  Publisher a = *topics.publisher("px.a");
  Publisher b = *topics.publisher("px.b");
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(a.publish("a" + std::to_string(i)));
    ASSERT_TRUE(b.publish("b" + std::to_string(i)));
  }
  auto m = s.try_next();
  EXPECT_EQ(m->text(), "a2");
  EXPECT_EQ(m->missed(), 2u);
  EXPECT_EQ(s.try_next()->text(), "b2");
  EXPECT_EQ(s.try_next().error(), Errc::would_block);
  EXPECT_EQ(topics.statistics().dropped_conflated, 4u);
  expect_balance(topics);
}

TEST_F(OneHandle, EndDeliversTheQueueAndThenSaysSo) {
  Topics topics = open();
  Subscription s = *topics.subscribe("a", {.full = Full::end, .queue_messages_max = 2});
  Publisher a = *topics.publisher("a");
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(a.publish(std::to_string(i)));
  }
  EXPECT_EQ(s.next()->text(), "0");
  EXPECT_EQ(s.next()->text(), "1");
  EXPECT_EQ(s.next().error(), Errc::resource_exhausted);
  EXPECT_EQ(s.missed(), 3u);
  expect_balance(topics);
}

TEST_F(OneHandle, BytesBoundAQueueToo) {
  Topics topics = open();
  Subscription s = *topics.subscribe("a", {.queue_bytes_max = 10'000});
  Publisher a = *topics.publisher("a");
  const std::string body(4000, 'x');
  for (int i = 0; i < 8; ++i) {
    ASSERT_TRUE(a.publish(body));
  }
  EXPECT_EQ(topics.statistics().queued, 2u);
  EXPECT_EQ(topics.statistics().dropped_oldest, 6u);
}

TEST_F(OneHandle, WhatIsQueuedWhenASubscriptionClosesIsCounted) {
  Topics topics = open();
  {
    Subscription s = *topics.subscribe("a");
    ASSERT_TRUE(topics.publisher("a")->publish("1"));
  }
  EXPECT_EQ(topics.statistics().dropped_closed, 1u);
  expect_balance(topics);
}

TEST_F(OneHandle, ADrainedSubscriptionGivesWhatItHasAlsoAfterItsHandle) {
  auto topics = std::make_unique<Topics>(open());
  Subscription kept = *topics->subscribe("a");
  Subscription dropped = *topics->subscribe("a");
  Publisher a = *topics->publisher("a");
  for (const char* const body : {"1", "2"}) {
    ASSERT_TRUE(a.publish(body));
  }
  for (Subscription* const each : {&kept, &dropped, &kept}) {
    each->drain();
  }
  ASSERT_TRUE(a.publish("unseen"));
  EXPECT_EQ(kept.add("b").error(), Errc::closed);
  EXPECT_EQ(kept.remove("a").error(), Errc::invalid_argument);
  EXPECT_EQ(kept.next()->text(), "1");
  dropped.close();
  EXPECT_EQ(dropped.next().error(), Errc::closed);
  EXPECT_EQ(topics->statistics().dropped_closed, 2u);
  expect_balance(*topics);
  topics.reset();
  EXPECT_EQ(kept.try_next()->text(), "2");
  EXPECT_EQ(kept.try_next().error(), Errc::closed);
  EXPECT_EQ(kept.next().error(), Errc::closed);
}

TEST_F(OneHandle, ADrainEndsTheCallsThatWait) {
  Topics topics = open();
  Subscription s = *topics.subscribe("a");
  std::vector<std::thread> threads;
  std::atomic<int> closed{0};
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] { closed += s.next().error() == Errc::closed ? 1 : 0; });
  }
  s.drain();
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(closed, 3);
}

// Prints the cost of a message; bench/ has the figure.
TEST(QuietTopics, PublishThenNextTakesEachMessageOnce) {
  Context context;
  TopicsOptions options;
  options.fleet = "inproc:quiet";
  Topics topics = *Topics::open(context, options);
  Subscription s = *topics.subscribe("a");
  Publisher a = *topics.publisher("a");
  constexpr int kRounds = 200'000;
  const Instant begin = sys::now();
  for (int i = 0; i < kRounds; ++i) {
    (void)a.publish("12345678");
    (void)s.try_next();
  }
  const double each = static_cast<double>((sys::now() - begin).count()) / kRounds;
  RecordProperty("nanoseconds", std::to_string(each));
  std::printf("publish and next: %.0f ns\n", each);
  EXPECT_EQ(topics.statistics().delivered, static_cast<std::uint64_t>(kRounds));
}

TEST_F(OneHandle, NamesThatAreNoTopicsAreRefused) {
  Topics topics = open();
  for (const char* name : {"", "a..b", ".a", "a.", "a b", "a.*", ">", "a\tb"}) {
    EXPECT_EQ(topics.publisher(name).error(), Errc::invalid_argument) << name;
  }
  EXPECT_FALSE(topics.publisher(std::string(256, 'x')));
  EXPECT_EQ(topics.subscribe("a..b").error(), Errc::invalid_argument);
}

TEST_F(OneHandle, AnotherSeparatorTakesRedisNames) {
  Topics topics = open({.separator = ':'});
  Subscription s = *topics.subscribe({"player:*", "a.b"});
  ASSERT_TRUE(topics.publisher("player:1")->publish("1"));
  ASSERT_TRUE(topics.publisher("a.b")->publish("2"));
  ASSERT_TRUE(topics.publisher("a:b")->publish("not the same name"));
  EXPECT_EQ(s.try_next()->topic(), "player:1");
  EXPECT_EQ(s.try_next()->topic(), "a.b");
  EXPECT_EQ(s.try_next().error(), Errc::would_block);
}

TEST_F(OneHandle, ASpaceSeparatesPrograms) {
  Topics prod = open({.space = "prod"});
  Topics test = open({.space = "test"});
  Subscription s = *prod.subscribe(">");
  Publisher p = *prod.publisher("a");
  ASSERT_TRUE(p.wait_subscribers(1, soon()));
  Publisher t = *test.publisher("a");
  EXPECT_EQ(t.wait_subscribers(1, sys::now() + 20ms).error(), Errc::timed_out);
  ASSERT_TRUE(t.publish("test"));
  ASSERT_TRUE(p.publish("prod"));
  auto m = s.next_until(soon());
  EXPECT_EQ(m->topic(), "a");
  EXPECT_EQ(m->text(), "prod");
}

TEST_F(OneHandle, ADescriptorTellsAnEventLoop) {
  Topics topics = open();
  Subscription s = *topics.subscribe("a");
  const int fd = *s.descriptor();
  const auto readable = [&] {
    sys::PollFd item{fd, sys::Interest::readable};
    return *sys::poll_fds({&item, 1}, 0ms) == 1;
  };
  EXPECT_TRUE(readable());  // from the start
  EXPECT_FALSE(s.try_next());
  EXPECT_FALSE(readable());
  ASSERT_TRUE(topics.publisher("a")->publish("1"));
  EXPECT_TRUE(readable());
  EXPECT_TRUE(s.try_next());
  EXPECT_FALSE(s.try_next());
  EXPECT_FALSE(readable());
}

TEST_F(OneHandle, AClosedHandleWakesAllThatWait) {
  auto topics = std::make_unique<Topics>(open());
  std::vector<Subscription> subscriptions;
  for (int i = 0; i < 4; ++i) {
    subscriptions.push_back(*topics->subscribe("a"));
  }
  Publisher a = *topics->publisher("a");
  std::atomic<int> closed{0};
  std::vector<std::thread> threads;
  for (Subscription& s : subscriptions) {
    threads.emplace_back([&] { closed += s.next().error() == Errc::closed ? 1 : 0; });
  }
  threads.emplace_back([&] { closed += a.wait_subscribers(100, kNever).error() == Errc::closed ? 1 : 0; });
  topics.reset();
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(closed, 5);
  EXPECT_EQ(a.publish("x").error(), Errc::closed);
}

}  // namespace
}  // namespace weft::topic
