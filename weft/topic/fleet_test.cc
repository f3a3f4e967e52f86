// SPDX-License-Identifier: MIT
// The same cases on every kind of fleet, with handles of two contexts where the fleet leaves the process: those meet
// over ipc or tcp, as handles of two processes do.
#include "weft/topic/fleet/fleet.h"

#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/sanitized.h"
#include "weft/sys/address.h"
#include "weft/sys/clock.h"
#include "weft/sys/fd.h"
#include "weft/sys/socket.h"
#include "weft/topic/fleet/local_directory.h"
#include "weft/topic/test_fleets.h"
#include "weft/topic/topics.h"
#include <gtest/gtest.h>

namespace weft::topic {
namespace {

class EachFleet : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (fleet_.missing() != nullptr) {
      GTEST_SKIP() << fleet_.missing();
    }
  }
  [[nodiscard]] Context& other_context() { return GetParam() == "inproc" ? context_ : second_; }

  TestFleet fleet_{GetParam()};
  Context context_;
  Context second_;
};
class FleetOfPeers : public EachFleet {};
WEFT_ON_FLEETS(EachFleet, kFleets);
WEFT_ON_PEERS(FleetOfPeers);

TEST_P(EachFleet, AMessageReachesAnotherHandle) {
  Topics a = fleet_.open(context_);
  Topics b = fleet_.open(other_context());
  Subscription s = *b.subscribe({"px.*"});
  Publisher px = *a.publisher("px.AAPL");
  const auto ready = px.wait_subscribers(1, soon());
  ASSERT_TRUE(ready) << ready.error().message();
  EXPECT_EQ(*ready, 1u);
  Headers headers;
  ASSERT_TRUE(headers.add("a", "b"));
  ASSERT_TRUE(px.publish("188", headers));
  auto m = s.next_until(soon());
  ASSERT_TRUE(m) << m.error().message();
  EXPECT_EQ(m->topic(), "px.AAPL");
  EXPECT_EQ(m->text(), "188");
  EXPECT_EQ(m->header("a"), "b");
  EXPECT_EQ(m->filter(), "px.*");
}

TEST_P(EachFleet, BothWaysAndInOrder) {
  Topics a = fleet_.open(context_);
  Topics b = fleet_.open(other_context());
  Subscription sa = *a.subscribe("to.a");
  Subscription sb = *b.subscribe("to.b");
  Publisher pa = *a.publisher("to.b");
  Publisher pb = *b.publisher("to.a");
  ASSERT_TRUE(pa.wait_subscribers(1, soon()));
  ASSERT_TRUE(pb.wait_subscribers(1, soon()));
  for (int i = 0; i < 500; ++i) {
    ASSERT_TRUE(pa.publish(std::to_string(i)));
    ASSERT_TRUE(pb.publish(std::to_string(i)));
  }
  for (int i = 0; i < 500; ++i) {
    EXPECT_EQ(sa.next_until(soon())->text(), std::to_string(i));
    EXPECT_EQ(sb.next_until(soon())->text(), std::to_string(i));
  }
}

// Regression: an inproc handle that left took the messages with it that its peers had not read yet.
TEST_P(EachFleet, MessagesOutliveTheHandleThatPublishedThem) {
  Topics b = fleet_.open(other_context());
  Subscription s = *b.subscribe("px.*");
  {
    Topics a = fleet_.open(context_);
    Publisher px = *a.publisher("px.AAPL");
    ASSERT_TRUE(px.wait_subscribers(1, soon()));
    for (int i = 0; i < 500; ++i) {
      ASSERT_TRUE(px.publish(std::to_string(i)));
    }
  }
  for (int i = 0; i < 500; ++i) {
    const auto m = s.next_until(soon());
    ASSERT_TRUE(m) << m.error().message();
    EXPECT_EQ(m->text(), std::to_string(i));
  }
}

// Regression: probes stood at the peers until the deadlines of waits that had ended; beyond 1,024 a wait was in vain.
TEST_P(EachFleet, WaitsThatEndedLeaveRoomForOthers) {
  Topics a = fleet_.open(context_);
  Topics b = fleet_.open(other_context());
  Subscription s = *b.subscribe("a");
  Publisher p = *a.publisher("a");
  for (int i = 0; i < 1100; ++i) {
    const auto ready = p.wait_subscribers(1, i < 1090 ? sys::now() + 3600s : soon());
    ASSERT_TRUE(ready) << i << ready.error().message();
  }
  EXPECT_EQ(b.statistics().control_refused, 0u);
}

// Regression: a fleet that subscribed by byte prefixes gave "player:10" to a subscriber of "player:1".
TEST_P(EachFleet, SubscribeIsExact) {
  Topics a = fleet_.open(context_);
  Topics b = fleet_.open(other_context());
  Subscription s = *b.subscribe("player:1");
  Publisher ten = *a.publisher("player:10");
  Publisher one = *a.publisher("player:1");
  ASSERT_TRUE(one.wait_subscribers(1, soon()));
  EXPECT_EQ(*ten.wait_subscribers(0, soon()), 0u);
  ASSERT_TRUE(ten.publish("ten"));
  ASSERT_TRUE(one.publish("one"));
  EXPECT_EQ(s.next_until(soon())->text(), "one");
  EXPECT_EQ(s.try_next().error(), Errc::would_block);
}

// Regression: a glob was cut at its first `*`, so that "a:*:b" also received "a:x:c"; and it could not be taken back.
TEST_P(EachFleet, SubscribePatternWithAStarInTheMiddle) {
  Topics a = fleet_.open(context_);
  Topics b = fleet_.open(other_context());
  Subscription s = *b.subscribe(Filter::glob("a:*:b"));
  Publisher b1 = *a.publisher("a:x:b");
  Publisher c1 = *a.publisher("a:x:c");
  ASSERT_TRUE(b1.wait_subscribers(1, soon()));
  ASSERT_TRUE(c1.publish("c"));
  ASSERT_TRUE(b1.publish("b"));
  EXPECT_EQ(s.next_until(soon())->topic(), "a:x:b");
  EXPECT_EQ(s.try_next().error(), Errc::would_block);
  ASSERT_TRUE(s.remove(Filter::glob("a:*:b")));
  ASSERT_TRUE(s.add("end"));
  Publisher end = *a.publisher("end");
  ASSERT_TRUE(end.wait_subscribers(1, soon()));
  ASSERT_TRUE(b1.publish("not any more"));
  ASSERT_TRUE(end.publish("end"));
  EXPECT_EQ(s.next_until(soon())->topic(), "end");
}

// Regression: a message over the mark was dropped, and publish() returned as if it had not been.
TEST_P(EachFleet, PublishOverTheMarkIsCountedOrWaits) {
  TopicsOptions options = fleet_.options();
  options.peer_messages_max = 4;
  Topics a = fleet_.open(context_, options);
  options = fleet_.options();
  options.peer_messages_max = 4;
  options.queue_messages_max = 8;
  Topics b = fleet_.open(other_context(), options);
  Subscription s = *b.subscribe("a", {.full = Full::drop_oldest});
  Publisher p = *a.publisher("a");
  ASSERT_TRUE(p.wait_subscribers(1, soon()));
  constexpr std::uint64_t kMessages = 20'000;
  const std::string body(1000, 'x');
  for (std::uint64_t i = 0; i < kMessages; ++i) {
    ASSERT_TRUE(p.publish(body));
  }
  Publisher last = *a.publisher("a", {.when_full = WhenFull::wait});
  ASSERT_TRUE(last.publish("last"));
  std::uint64_t received = 0;
  std::uint64_t missed = 0;
  while (true) {
    auto m = s.next_until(soon());
    ASSERT_TRUE(m) << m.error().message();
    ++received;
    missed += m->missed();
    if (m->text() == "last") {
      break;
    }
  }
  const TopicsStatistics out = a.statistics();
  const TopicsStatistics in = b.statistics();
  EXPECT_EQ(out.published, kMessages + 1);
  EXPECT_EQ(out.published, received + missed + out.dropped_full + out.fleet_dropped_full);
  EXPECT_EQ(in.matched, in.delivered + in.dropped() + in.queued);
  EXPECT_EQ(in.dropped_oldest, missed);
}

TEST_P(EachFleet, WaitSubscribersCountsEveryHandle) {
  std::vector<Topics> handles;
  std::vector<Subscription> subscriptions;
  for (int i = 0; i < 4; ++i) {
    handles.push_back(fleet_.open(i % 2 == 0 ? context_ : other_context()));
  }
  Publisher p = *handles[0].publisher("a.b");
  EXPECT_EQ(*p.wait_subscribers(0, soon()), 0u);
  std::thread later([&] {
    for (Topics& each : handles) {
      subscriptions.push_back(*each.subscribe("a.*"));
    }
  });
  EXPECT_EQ(*p.wait_subscribers(4, soon()), 4u);
  later.join();
  ASSERT_TRUE(p.publish("now"));
  for (Subscription& s : subscriptions) {
    EXPECT_EQ(s.next_until(soon())->text(), "now");
  }
  EXPECT_EQ(p.wait_subscribers(5, sys::now() + 10ms).error(), Errc::timed_out);
}

// Regression: waiting for the cluster returned at once, whatever had come.
TEST_P(FleetOfPeers, SyncWaitsForEveryRoster) {
  TopicsOptions options = fleet_.options();
  options.node = "first";
  Topics a = fleet_.open(context_, options);
  options = fleet_.options();
  options.node = "second";
  Topics b = fleet_.open(other_context(), options);
  const auto nodes = b.sync(soon());
  ASSERT_TRUE(nodes) << nodes.error().message();
  ASSERT_EQ(nodes->size(), 1u);
  EXPECT_EQ(nodes->front().node, "first");
  EXPECT_EQ(nodes->front().instance, a.instance());
}

// Regression: a handle that was open before another one was unknown to it until its roster came, and sync() returned
// before.
TEST(LocalFleet, SyncKnowsEveryHandleThatIsOpen) {
  for (const bool one_context : {false, true}) {
    SCOPED_TRACE(one_context ? "one context" : "as many processes");
    constexpr std::size_t kHandles = kSanitized ? 12 : 32;
    TestFleet fleet("local");
    std::vector<Context> contexts(one_context ? 1 : kHandles);
    std::vector<Topics> handles;
    for (std::size_t i = 0; i < kHandles; ++i) {
      handles.push_back(fleet.open(contexts[one_context ? 0 : i]));
      const auto first = handles.front().sync(soon());
      ASSERT_TRUE(first) << first.error().message();
      EXPECT_EQ(first->size(), i);
    }
    for (Topics& each : handles) {
      const auto nodes = each.sync(soon());
      ASSERT_TRUE(nodes) << nodes.error().message();
      EXPECT_EQ(nodes->size(), kHandles - 1);
    }
  }
}

// Listeners that take no connection stand for the other handles.
TEST(LocalFleet, TheHandleBeyondTheLastPlaceIsRefused) {
  TestFleet fleet("local");
  Context context;
  const auto directory = LocalDirectory::open(fleet.options().runtime_directory, fleet.options().fleet.substr(6));
  ASSERT_TRUE(directory) << directory.error().message();
  std::vector<sys::Fd> listeners;
  for (std::uint64_t i = 1; i <= Fleet::kLocalHandlesMax; ++i) {
    const auto at = sys::SocketAddress::from_path(directory->endpoint(i).substr(6));
    ASSERT_TRUE(at);
    auto listener = sys::open_unix_listener(*at, {});
    ASSERT_TRUE(listener) << listener.error().message();
    listeners.push_back(*std::move(listener));
  }
  const auto refused = Topics::open(context, fleet.options());
  EXPECT_EQ(refused.error(), Errc::resource_exhausted);
  listeners.pop_back();  // its handle ended, and left the file
  EXPECT_TRUE(Topics::open(context, fleet.options()));
}

// Regression: a subscriber never got messages again after the publisher had restarted.
// Handles of one context meet in two ways in a local fleet, and an answer must not get lost between the two.
TEST_P(EachFleet, HandlesThatJustMetAnswerEachOther) {
  Topics first = fleet_.open(context_);
  for (int i = 0; i < 30; ++i) {
    Topics a = fleet_.open(context_);
    Topics b = fleet_.open(context_);
    const auto all = b.sync(soon());
    ASSERT_TRUE(all) << i << ": " << all.error().message();
    Subscription s = *b.subscribe("a");
    Publisher p = *a.publisher("a");
    const auto ready = p.wait_subscribers(1, soon());
    ASSERT_TRUE(ready) << i << ": " << ready.error().message();
    ASSERT_TRUE(p.publish("once"));
    EXPECT_EQ(s.next_until(soon())->text(), "once");
    EXPECT_EQ(s.try_next().error(), Errc::would_block);
  }
}

TEST_P(EachFleet, ARestartedHandleFindsItsSubscribers) {
  Topics keeps = fleet_.open(context_);  // of a tcp fleet: the listed peer
  Topics b = fleet_.open(other_context());
  Subscription s = *b.subscribe("a");
  for (int life = 0; life < 3; ++life) {
    Topics a = fleet_.open(context_);
    Publisher p = *a.publisher("a");
    ASSERT_TRUE(p.wait_subscribers(1, soon())) << life;
    ASSERT_TRUE(p.publish(std::to_string(life)));
    const auto m = s.next_until(soon());
    ASSERT_TRUE(m) << m.error().message() << " in life " << life << ", received " << b.statistics().received
                   << ", unwanted " << b.statistics().unwanted;
    EXPECT_EQ(m->text(), std::to_string(life));
  }
}

// Regression: publishing to a routed topic was refused.
TEST_P(EachFleet, TopicRouteTakesPublishing) {
  Topics a = fleet_.open(context_);
  TopicsOptions options = fleet_.options();
  if (GetParam() != "tcp") {
    EXPECT_EQ(a.route("a.>", "tcp://127.0.0.1:1").error(), Errc::not_supported);
    return;
  }
  options.fleet = "tcp://";  // no listed peer
  Topics b = fleet_.open(second_, options);
  ASSERT_TRUE(b.route("a.>", a.endpoint()));
  EXPECT_FALSE(b.route("a..b", a.endpoint()));
  Subscription s = *a.subscribe("a.b");
  Publisher p = *b.publisher("a.b");
  ASSERT_TRUE(p.wait_subscribers(1, soon()));
  ASSERT_TRUE(p.publish("1"));
  EXPECT_EQ(s.next_until(soon())->text(), "1");
  ASSERT_TRUE(b.remove_peer(a.endpoint()));
  EXPECT_EQ(b.remove_peer(a.endpoint()).error(), Errc::no_such_endpoint);
}

// The filter of a route narrows nothing: docs/design/0014 says why.
TEST_P(EachFleet, TopicRouteConnectsThePeerForAllTopics) {
  if (GetParam() != "tcp") {
    return;
  }
  Topics a = fleet_.open(context_);
  TopicsOptions options = fleet_.options();
  options.fleet = "tcp://";
  Topics b = fleet_.open(second_, options);
  ASSERT_TRUE(b.route("a.>", a.endpoint()));
  Subscription other = *a.subscribe("other");
  Subscription back = *b.subscribe("back");
  Publisher p = *b.publisher("other");
  Publisher q = *a.publisher("back");
  ASSERT_TRUE(p.wait_subscribers(1, soon()));
  ASSERT_TRUE(q.wait_subscribers(1, soon()));
  ASSERT_TRUE(p.publish("1"));
  ASSERT_TRUE(q.publish("2"));
  EXPECT_EQ(other.next_until(soon())->text(), "1");
  EXPECT_EQ(back.next_until(soon())->text(), "2");
}

// Regression: a handle that was added anew received nothing.
TEST_P(EachFleet, ClusterAddAndRemove) {
  if (GetParam() != "tcp") {
    return;
  }
  Topics a = fleet_.open(context_);
  TopicsOptions options = fleet_.options();
  options.fleet = "tcp://";
  Topics b = fleet_.open(second_, options);
  Subscription s = *b.subscribe("a");
  Publisher p = *a.publisher("a");
  for (int life = 0; life < 3; ++life) {
    ASSERT_TRUE(b.add_peer(a.endpoint()));
    ASSERT_TRUE(b.add_peer(a.endpoint()));  // which is there
    ASSERT_TRUE(b.sync(soon()));
    ASSERT_TRUE(p.wait_subscribers(1, soon()));
    ASSERT_TRUE(p.publish(std::to_string(life)));
    EXPECT_EQ(s.next_until(soon())->text(), std::to_string(life));
    ASSERT_TRUE(b.remove_peer(a.endpoint()));
    EXPECT_EQ(b.remove_peer(a.endpoint()).error(), Errc::no_such_endpoint);
  }
  EXPECT_FALSE(b.add_peer("nonsense"));
}

// Regression: the second call succeeded when the peer's roster came before it.
TEST_P(EachFleet, APeerThatConnectsAgainAfterItsRemovalIsNotListed) {
  if (GetParam() != "tcp") {
    return;
  }
  Topics a = fleet_.open(context_);
  TopicsOptions options = fleet_.options();
  options.fleet = "tcp://";
  Topics b = fleet_.open(second_, options);
  Subscription s = *a.subscribe("a.b");
  Publisher p = *b.publisher("a.b");
  ASSERT_TRUE(b.add_peer(a.endpoint()));
  ASSERT_TRUE(p.wait_subscribers(1, soon()));
  ASSERT_TRUE(b.remove_peer(a.endpoint()));
  Owned owned = *a.create("world", soon());
  const Instant end = soon();
  while (!b.exists("world") && sys::now() < end) {  // a's roster has it, and the endpoint of a
    std::this_thread::yield();
  }
  ASSERT_TRUE(b.exists("world"));
  EXPECT_EQ(b.remove_peer(a.endpoint()).error(), Errc::no_such_endpoint);
}

TEST_P(EachFleet, ChannelsNumsubAndNumpat) {
  Topics a = fleet_.open(context_);
  Topics b = fleet_.open(other_context());
  Subscription exact = *b.subscribe("px.A");
  Subscription patterns = *b.subscribe({"px.*", "px.>"});
  EXPECT_EQ(b.pattern_count(), 2u);
  EXPECT_EQ(a.pattern_count(), 0u);
  Publisher p = *a.publisher("px.A");
  EXPECT_EQ(*p.wait_subscribers(2, soon()), 2u);  // subscriptions, not filters
  ASSERT_TRUE(patterns.remove("px.>"));
  EXPECT_EQ(b.pattern_count(), 1u);
  if (is_nats(GetParam())) {
    return;  // it has no owned topics
  }
  Owned world = *b.create("world.7", soon());
  ASSERT_TRUE(a.sync(soon()));
  EXPECT_EQ(*a.list("world.*"), std::vector<std::string>{"world.7"});
}

// A handle that is listed under two names, and lists itself, receives each message once.
TEST_P(EachFleet, AMessageComesOnceWhateverTheNamesOfAPeer) {
  if (GetParam() != "tcp") {
    return;
  }
  Topics a = fleet_.open(context_);
  TopicsOptions options = fleet_.options();
  const std::string port = a.endpoint().substr(a.endpoint().rfind(':'));
  options.fleet = "tcp://127.0.0.1" + port + ",localhost" + port;
  Topics b = fleet_.open(second_, options);
  ASSERT_TRUE(b.add_peer(b.endpoint()));
  Subscription s = *b.subscribe("a");
  ASSERT_TRUE(b.sync(soon()));
  Publisher own = *b.publisher("a");
  Publisher other = *a.publisher("a");
  EXPECT_EQ(*other.wait_subscribers(1, soon()), 1u);
  ASSERT_TRUE(own.publish("own"));
  EXPECT_EQ(s.next_until(soon())->text(), "own");
  ASSERT_TRUE(other.publish("1"));
  ASSERT_TRUE(other.publish("2"));
  EXPECT_EQ(s.next_until(soon())->text(), "1");
  EXPECT_EQ(s.next_until(soon())->text(), "2");
  EXPECT_EQ(s.try_next().error(), Errc::would_block);
}

TEST_P(EachFleet, WhatStaysInsideReachesHandlesOfTheProcessOnly) {
  Topics listed = fleet_.open(second_);  // of a tcp fleet: the listed peer
  TopicsOptions options = fleet_.options();
  options.inside = {"secret.>"};
  Topics a = fleet_.open(context_, options);
  Topics near = fleet_.open(context_);
  Topics far = fleet_.open(other_context());
  Subscription s_near = *near.subscribe({"secret.>", "open"});
  Subscription s_far = *far.subscribe({"secret.>", "open"});
  Publisher open = *a.publisher("open");
  ASSERT_TRUE(open.wait_subscribers(2, soon()));
  ASSERT_TRUE(a.publisher("secret.1")->publish("secret"));
  ASSERT_TRUE(open.publish("open"));
  std::set<std::string> got = {std::string(s_near.next_until(soon())->text()),
                               std::string(s_near.next_until(soon())->text())};
  EXPECT_EQ(got, (std::set<std::string>{"secret", "open"}));
  if (GetParam() != "inproc") {  // whose handles are all of this process
    EXPECT_EQ(s_far.next_until(soon())->text(), "open");
  }
}

TEST_P(EachFleet, ManyThreadsPublishAndNoneIsLostUnseen) {
  Topics a = fleet_.open(context_);
  Topics b = fleet_.open(other_context());
  Subscription s = *b.subscribe("t.>");
  constexpr int kThreads = 4;
  constexpr int kEach = 2000;
  {
    Publisher p = *a.publisher("t.0");
    ASSERT_TRUE(p.wait_subscribers(1, soon()));
  }
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      Publisher p = *a.publisher("t." + std::to_string(t), {.when_full = WhenFull::wait});
      for (int i = 0; i < kEach; ++i) {
        EXPECT_TRUE(p.publish(std::to_string(i)));
      }
    });
  }
  std::vector<int> next(kThreads, 0);
  for (int i = 0; i < kThreads * kEach; ++i) {
    auto m = s.next_until(soon());
    ASSERT_TRUE(m) << m.error().message() << " after " << i;
    int& expected = next[static_cast<std::size_t>(m->topic().back() - '0')];
    EXPECT_EQ(m->text(), std::to_string(expected++));
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(a.statistics().dropped_full, 0u);
}

TEST_P(EachFleet, SubscribersOfOneHandleShareTheWait) {
  Topics a = fleet_.open(context_);
  Topics b = fleet_.open(other_context());
  constexpr int kThreads = 6;
  constexpr int kMessages = 300;
  std::vector<Subscription> subscriptions;
  for (int i = 0; i < kThreads; ++i) {
    subscriptions.push_back(*b.subscribe("t." + std::to_string(i)));
  }
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kMessages; ++i) {
        const auto m = subscriptions[static_cast<std::size_t>(t)].next_until(soon());
        ASSERT_TRUE(m) << m.error().message() << " thread " << t << " message " << i;
        EXPECT_EQ(m->text(), std::to_string(i));
      }
    });
  }
  std::vector<Publisher> publishers;
  for (int i = 0; i < kThreads; ++i) {
    publishers.push_back(*a.publisher("t." + std::to_string(i), {.when_full = WhenFull::wait}));
    EXPECT_TRUE(publishers.back().wait_subscribers(1, soon()));
  }
  for (int i = 0; i < kMessages; ++i) {
    for (Publisher& p : publishers) {
      EXPECT_TRUE(p.publish(std::to_string(i)));
    }
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}

}  // namespace
}  // namespace weft::topic
