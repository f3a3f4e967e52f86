// SPDX-License-Identifier: MIT
// A fleet on NATS whose servers and processes die or stand still. The cases of ManyFaultsOnNats run in the nightly
// effort.
#include <algorithm>
#include <atomic>
#include <optional>
#include <string>
#include <thread>

#include "tests/topic/side.h"
#include "weft/topic/test_fleets.h"
#include "weft/topic/topics.h"
#include <gtest/gtest.h>

namespace weft::topic {
namespace {

class FaultsOnNats : public testing::Test {
 protected:
  void SetUp() override {
    if (fleet_.missing() != nullptr) {
      GTEST_SKIP() << fleet_.missing();
    }
    near_.emplace(fleet_.open(near_context_));
    far_.emplace(fleet_.open(far_context_));
  }
  [[nodiscard]] Side side(const std::string& command, const std::string& topic, const std::string& number = {}) const {
    return Side({fleet_.options().fleet, "/nowhere", command, topic, number});
  }
  static void expect_balance(const Topics& topics) {
    const TopicsStatistics all = topics.statistics();
    EXPECT_EQ(all.matched, all.delivered + all.dropped() + all.queued);
    EXPECT_EQ(all.fleet_published, all.fleet_sent + all.fleet_queued + all.fleet_dropped_oldest +
                                       all.fleet_dropped_refused + all.fleet_dropped_closed + all.fleet_dropped_full);
  }
  void kill_the_server(int lives, Duration each);

  TestFleet fleet_{"nats"};
  Context near_context_;
  Context far_context_;
  std::optional<Topics> near_;
  std::optional<Topics> far_;
};

using ManyFaultsOnNats = FaultsOnNats;

// Lateness: of calls that end by their deadline. None ends before it. A busy machine makes some of them late, by any
// time; a wait that is too long makes all of them late.
class Lateness {
 public:
  // The call that has just ended with that error.
  void add(Instant deadline, const Error& why) {
    const Instant now = sys::now();
    if (why == Errc::timed_out) {
      EXPECT_GE(now, deadline);
      least_ = std::min<Duration>(least_, now - deadline);
      ++count_;
    }
  }
  void expect_small() const {
    constexpr int kEnough = 20;
    if (count_ >= kEnough) {
      EXPECT_LT(least_, 10ms) << "the least of " << count_;
    }
  }
  [[nodiscard]] int count() const { return count_; }

 private:
  Duration least_ = std::chrono::hours(1);
  int count_ = 0;
};

// In each life both connections of near_ stand, and messages and requests pass, for at least so long. Messages of the
// life before are still queued at far_: their receipt does not prove a connection.
void FaultsOnNats::kill_the_server(int lives, Duration each) {
  Subscription s = *far_->subscribe("t");
  Publisher t = *near_->publisher("t");
  Service service =
      *far_->serve("svc", {}, [](const TopicMessage& request) { return Message::copy_of(request.body()); });
  ASSERT_TRUE(t.wait_subscribers(1, soon()));
  std::atomic<bool> ended{false};
  std::atomic<int> answered{0};
  Lateness lateness;
  std::thread asking([&] {
    while (!ended) {
      const Instant deadline = sys::now() + 200ms;
      const auto reply = near_->request("svc", "question", deadline);
      lateness.add(deadline, reply ? Error() : reply.error());
      if (reply) {
        EXPECT_EQ(reply->text(), "question");
        ++answered;
      } else {
        EXPECT_TRUE(reply.error() == Errc::timed_out || reply.error() == Errc::connection_closed ||
                    reply.error() == Errc::unreachable)
            << reply.error().message();
      }
    }
  });
  int published = 0;
  int received = 0;
  int last = -1;
  const auto take = [&](const TopicMessage& m) {
    const int number = std::stoi(std::string(m.text()));
    EXPECT_GT(number, last);
    last = number;
    ++received;
  };
  for (int life = 0; life < lives; ++life) {
    const Instant until = deadline_after(sys::now(), each);
    const Instant end = deadline_after(until, 60s);
    const int received_before = received;
    const int answered_before = answered;
    const auto connections = static_cast<std::uint64_t>(2 * (life + 1));
    const auto passed = [&] {
      return received >= received_before + 500 && answered >= answered_before + 5 &&
             near_->statistics().fleet_connected >= connections;
    };
    while ((sys::now() < until || !passed()) && sys::now() < end) {
      for (int i = 0; i < 20; ++i) {
        EXPECT_TRUE(t.publish(std::to_string(published++)));
      }
      for (auto m = s.next_until(sys::now() + 2ms); m; m = s.try_next()) {
        take(*m);
      }
    }
    EXPECT_TRUE(passed()) << "life " << life;
    if (life + 1 < lives) {
      fleet_.server().kill();
      fleet_.server().restart();
    }
  }
  ended = true;
  asking.join();
  lateness.expect_small();
  ASSERT_TRUE(near_->sync(soon()));
  ASSERT_TRUE(far_->sync(soon()));
  ASSERT_TRUE(t.wait_subscribers(1, soon()));
  ASSERT_TRUE(t.publish(std::to_string(published++)));
  while (last != published - 1) {
    const auto m = s.next_until(soon());
    ASSERT_TRUE(m) << m.error().message();
    take(*m);
  }
  EXPECT_LE(received, published);
  EXPECT_EQ(far_->statistics().delivered, static_cast<std::uint64_t>(received));
  service.stop();
  ASSERT_TRUE(near_->sync(soon()));
  ASSERT_TRUE(far_->sync(soon()));
  expect_balance(*near_);
  expect_balance(*far_);
}

TEST_F(FaultsOnNats, MessagesAndRequestsGoOnEachTimeTheServerDies) { kill_the_server(4, 0s); }
TEST_F(ManyFaultsOnNats, TheServerDiesEvery3Seconds) { kill_the_server(40, 3s); }

// Less than the PINGs permit.
TEST_F(ManyFaultsOnNats, TheServerStandsStillFor6Seconds) {
  Subscription s = *far_->subscribe("t");
  Publisher t = *near_->publisher("t");
  Service service =
      *far_->serve("svc", {}, [](const TopicMessage& request) { return Message::copy_of(request.body()); });
  ASSERT_TRUE(t.wait_subscribers(1, soon()));
  int published = 0;
  Lateness lateness;
  for (int pause = 0; pause < 3; ++pause) {
    fleet_.server().pause();
    for (const Instant end = deadline_after(sys::now(), 6s); sys::now() < end;) {
      EXPECT_TRUE(t.publish(std::to_string(published++)));
      const Instant deadline = sys::now() + 10ms;
      const Error why = near_->request("svc", "question", deadline).error();
      EXPECT_EQ(why, Errc::timed_out);
      lateness.add(deadline, why);
    }
    fleet_.server().resume();
    ASSERT_TRUE(near_->sync(soon()));
    EXPECT_TRUE(near_->request("svc", "question", soon()));
  }
  lateness.expect_small();
  for (int i = 0; i < published; ++i) {
    const auto m = s.next_until(soon());
    ASSERT_TRUE(m) << m.error().message();
    ASSERT_EQ(m->text(), std::to_string(i));
  }
  EXPECT_EQ(near_->statistics().fleet_connected, 2u);
  expect_balance(*near_);
}

// Each life publishes a topic of its own: the server still has messages of a killed one.
TEST_F(FaultsOnNats, APublisherThatIsKilledDisturbsNobody) {
  Subscription s = *near_->subscribe("a.*");
  for (int life = 0; life < 3; ++life) {
    const std::string topic = "a." + std::to_string(life);
    Side flooder = side("flood", topic, "1");
    EXPECT_EQ(flooder.line(), "flooding");
    long last = -1;
    for (int of_this_life = 0; of_this_life < 1000;) {
      const auto m = s.next_until(soon());
      ASSERT_TRUE(m) << m.error().message();
      if (m->topic() == topic) {
        const long number = std::stol(std::string(m->text()));
        EXPECT_GT(number, last);
        last = number;
        ++of_this_life;
      }
    }
    flooder.kill();
    flooder.wait();
  }
  Subscription b = *near_->subscribe("b");
  Publisher p = *far_->publisher("b");
  ASSERT_TRUE(p.wait_subscribers(1, soon()));
  ASSERT_TRUE(p.publish("after"));
  EXPECT_EQ(b.next_until(soon())->text(), "after");
  ASSERT_TRUE(near_->sync(soon()));
  expect_balance(*near_);
}

TEST_F(FaultsOnNats, ASubscriberThatIsKilledDisturbsNobody) {
  Publisher p = *near_->publisher("a");
  Subscription s = *far_->subscribe("a");
  {
    Side holder = side("hold", "a");
    EXPECT_TRUE(holder.line().starts_with("ready"));
    ASSERT_TRUE(p.wait_subscribers(2, soon()));
    holder.kill();
    holder.wait();
  }
  Side counter = side("count", "a", "100");
  EXPECT_TRUE(counter.line().starts_with("ready"));
  ASSERT_TRUE(near_->publisher("a")->wait_subscribers(2, soon()));
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(p.publish(std::to_string(i)));
  }
  EXPECT_EQ(counter.line(), "received 100 missed 0");
  for (int i = 0; i < 100; ++i) {
    const auto m = s.next_until(soon());
    ASSERT_TRUE(m) << m.error().message();
    EXPECT_EQ(m->text(), std::to_string(i));
  }
  ASSERT_TRUE(near_->sync(soon()));
  expect_balance(*near_);
  expect_balance(*far_);
}

// No connection shows the requester that the service died: its deadline passes.
TEST_F(FaultsOnNats, RequestsToAServiceThatIsKilledFailAtTheirDeadlineAndLaterOnesAtOnce) {
  {
    Side service = side("serve", "svc");
    EXPECT_EQ(service.line(), "serving");
    ASSERT_EQ(near_->request("svc", "question", soon())->text(), "question");
    EXPECT_EQ(service.line(), "taken");
    service.stop();
    Lateness lateness;
    for (int i = 0; i < 40; ++i) {
      const Instant deadline = sys::now() + 5ms;
      lateness.add(deadline, near_->request("svc", "nobody answers", deadline).error());
    }
    EXPECT_EQ(lateness.count(), 40);
    lateness.expect_small();
    service.go_on();
    for (int i = 0; i < 40; ++i) {
      EXPECT_EQ(service.line(), "taken");
    }
    Error why;
    const Instant deadline = sys::now() + 2s;
    std::thread asking([&] { why = near_->request("svc", "hang", deadline).error(); });
    EXPECT_EQ(service.line(), "taken");
    service.kill();
    service.wait();
    asking.join();
    EXPECT_EQ(why, Errc::timed_out) << why.message();
    EXPECT_GE(sys::now(), deadline);
  }
  Error why;
  for (const Instant end = soon(); why != Errc::unreachable && sys::now() < end;) {
    why = near_->request("svc", "question", soon()).error();  // the server may not have noticed yet
  }
  EXPECT_EQ(why, Errc::unreachable) << why.message();
  Side again = side("serve", "svc");
  EXPECT_EQ(again.line(), "serving");
  EXPECT_EQ(near_->request("svc", "question", soon())->text(), "question");
  ASSERT_TRUE(near_->sync(soon()));
  expect_balance(*near_);
}

TEST(FaultsOnThreeServers, HandlesOfAServerThatDiesMoveToTheOthers) {
  TestFleet fleet("nats3");
  if (fleet.missing() != nullptr) {
    GTEST_SKIP() << fleet.missing();
  }
  Context near_context;
  Context far_context;
  TopicsOptions options = fleet.options();
  options.fleet = fleet.server(0).url() + "," + fleet.server(2).url();
  Topics near = fleet.open(near_context, options);
  options.fleet = fleet.server(1).url();
  Topics far = fleet.open(far_context, options);
  Subscription s = *far.subscribe("t");
  Publisher t = *near.publisher("t");
  ASSERT_TRUE(t.wait_subscribers(1, soon()));
  fleet.server(0).kill();
  fleet.server(1).kill();
  ASSERT_TRUE(near.sync(soon()));
  const auto moved = far.sync(soon());  // to a server that it learnt of
  ASSERT_TRUE(moved) << moved.error().message();
  ASSERT_TRUE(t.wait_subscribers(1, soon()));
  ASSERT_TRUE(t.publish("x"));
  const auto m = s.next_until(soon());
  ASSERT_TRUE(m) << m.error().message();
  EXPECT_EQ(m->text(), "x");
}

}  // namespace
}  // namespace weft::topic
