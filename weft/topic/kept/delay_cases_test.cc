// SPDX-License-Identifier: MIT
// Messages with a delay, on each engine. Servers of NATS refuse them.
#include <optional>
#include <string>
#include <vector>

#include "weft/topic/test_fleets.h"
#include <gtest/gtest.h>

namespace weft::topic {
namespace {

class EachDelay : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (fleet_.missing() != nullptr) {
      GTEST_SKIP() << fleet_.missing();
    }
    topics_ = fleet_.open(context_);
  }
  [[nodiscard]] static bool refuses() { return is_nats(GetParam()); }
  Stream stream(Keep keep = Keep::log) {
    auto made = topics_->stream({.name = "s", .topics = {"s.>"}, .keep = keep, .survives = Survives::process});
    EXPECT_TRUE(made) << made.error().message();
    return *std::move(made);
  }

  TestFleet fleet_{GetParam(), true};
  Context context_;
  std::optional<Topics> topics_;
};
WEFT_ON_FLEETS(EachDelay, kKeptFleets);

TEST_P(EachDelay, AMessageIsReadableAfterItsDelay) {
  Stream s = stream();
  Reader reader = *s.read();
  const Instant before = sys::now();
  const auto later = s.publish("s.a", "later", {.id = "one", .delay = 50ms});
  if (refuses()) {
    EXPECT_EQ(later.error(), Errc::not_supported);
    EXPECT_EQ(s.publish_later("s.a", "later", {.delay = 50ms})->wait().error(), Errc::not_supported);
    EXPECT_EQ(s.info()->next, 1u) << "nothing is stored";
    EXPECT_TRUE(s.publish("s.a", "at once", {.id = "one", .delay = 0s}));
    return;
  }
  ASSERT_TRUE(later) << later.error().message();
  EXPECT_EQ(later->sequence, 0u);
  EXPECT_NE(later->instance, 0u);
  KeptMessage message = *reader.next_until(soon());
  EXPECT_GE(sys::now() - before, 50ms);
  EXPECT_EQ(message.text(), "later");
  EXPECT_EQ(message.topic(), "s.a");
  EXPECT_EQ(message.sequence(), 1u);
  const auto same = s.publish("s.a", "again", {.id = "one"});
  ASSERT_TRUE(same) << same.error().message();
  EXPECT_TRUE(same->duplicate);
  EXPECT_EQ(same->sequence, 0u);
}

TEST_P(EachDelay, OthersDoNotWaitForItAndTheStreamCountsIt) {
  Stream s = stream();
  const auto later = s.publish("s.a", std::string(1000, 'x'), {.delay = 1h});
  if (refuses()) {
    EXPECT_EQ(later.error(), Errc::not_supported);
    return;
  }
  ASSERT_TRUE(later) << later.error().message();
  const auto next = s.publish("s.a", "now");
  ASSERT_TRUE(next);
  EXPECT_EQ(next->sequence, 1u);
  Reader reader = *s.read();
  EXPECT_EQ((*reader.next_stored())->text(), "now");
  EXPECT_FALSE(*reader.next_stored());
  StreamInfo info = *s.info();
  EXPECT_EQ(info.delayed, 1u);
  EXPECT_GT(info.bytes, 1000u);
  ASSERT_TRUE(s.purge(2));
  info = *s.info();
  EXPECT_EQ(info.first, 2u);
  EXPECT_EQ(info.delayed, 1u) << "a purge leaves it";
  ASSERT_TRUE(s.remove());
  EXPECT_EQ(stream().info()->delayed, 0u);
}

TEST_P(EachDelay, ManyUnderWayHaveTheirOwnAnswers) {
  Stream s = stream();
  std::vector<PendingPublish> pending;
  for (int i = 0; i < 200; ++i) {
    pending.push_back(
        *s.publish_later("s.a", std::to_string(i), {.delay = i % 3 == 0 ? Duration(1ms * (i + 1)) : Duration(0)}));
  }
  std::uint64_t last = 0;
  for (int i = 0; i < 200; ++i) {
    const auto published = pending[static_cast<std::size_t>(i)].wait();
    if (i % 3 == 0 && refuses()) {
      EXPECT_EQ(published.error(), Errc::not_supported);
      continue;
    }
    ASSERT_TRUE(published) << published.error().message();
    EXPECT_EQ(published->sequence == 0, i % 3 == 0) << i;
    EXPECT_TRUE(i % 3 == 0 || published->sequence > last);
    last = std::max(last, published->sequence);
  }
  if (refuses()) {
    return;
  }
  Reader reader = *s.read();
  std::vector<int> delayed;
  std::vector<int> others;
  for (int i = 0; i < 200; ++i) {
    const int number = std::stoi(std::string(reader.next_until(soon())->text()));
    (number % 3 == 0 ? delayed : others).push_back(number);
  }
  EXPECT_EQ(delayed.size(), 67u);
  EXPECT_EQ(others.size(), 133u);
  EXPECT_TRUE(std::is_sorted(delayed.begin(), delayed.end()));
  EXPECT_TRUE(std::is_sorted(others.begin(), others.end()));
}

TEST_P(EachDelay, AConsumerGetsAJobAtItsTime) {
  Stream s = stream(Keep::work);
  Consumer c = *s.consumer("c");
  const auto later = s.publish("s.a", "job", {.time_to_live = 1h, .delay = 20ms});
  if (refuses()) {
    EXPECT_EQ(later.error(), Errc::not_supported);
    return;
  }
  ASSERT_TRUE(later);
  Delivery job = *c.next_until(soon());
  EXPECT_EQ(job.text(), "job");
  EXPECT_TRUE(job.ack_confirmed());
}

TEST_P(EachDelay, DelaysHaveBoundsAndNoExpectations) {
  Stream s = stream();
  for (const Duration wrong :
       {Duration::min(), Duration(-1), Duration(std::chrono::hours(100 * 365 * 24)) + 1ns, Duration::max()}) {
    EXPECT_EQ(s.publish("s.a", "x", {.delay = wrong}).error(), Errc::invalid_argument);
    EXPECT_EQ(s.publish_later("s.a", "x", {.delay = wrong}).error(), Errc::invalid_argument);
    EXPECT_EQ(s.publish("s.a", "x", {.delay = wrong, .order = Order::strict}).error(), Errc::invalid_argument);
  }
  EXPECT_EQ(s.publish("s.a", "x", {.expect_last = 0, .delay = 1s}).error(), Errc::invalid_argument);
  EXPECT_EQ(s.publish("s.a", "x", {.delay = 1s, .order = Order::strict}).error(), Errc::invalid_argument);
  EXPECT_EQ(s.info()->next, 1u);
  EXPECT_EQ(s.publish("s.a", "x", {.order = Order::strict})->sequence, 1u) << "the refused one holds no turn";
  const auto longest = s.publish("s.a", "x", {.delay = std::chrono::hours(100 * 365 * 24)});
  EXPECT_EQ(longest.error(), refuses() ? Errc::not_supported : Errc::ok);
}

}  // namespace
}  // namespace weft::topic
