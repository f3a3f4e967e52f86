// SPDX-License-Identifier: MIT
// Messages and keys with a time to live, on each engine. Servers before 2.11.3 refuse them.
#include <optional>
#include <string>
#include <vector>

#include "weft/topic/test_fleets.h"
#include <gtest/gtest.h>

namespace weft::topic {
namespace {

class EachExpiry : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (fleet_.missing() != nullptr) {
      GTEST_SKIP() << fleet_.missing();
    }
    topics_ = fleet_.open(context_);
  }
  [[nodiscard]] static bool refuses() { return GetParam() == "nats"; }
  Stream stream(Keep keep = Keep::log) {
    auto made = topics_->stream({.name = "s", .topics = {"s.>"}, .keep = keep, .survives = Survives::process});
    EXPECT_TRUE(made) << made.error().message();
    return *std::move(made);
  }
  KeyValue bucket(std::uint32_t history = 1) {
    auto made = topics_->key_value("b", {.history = history, .survives = Survives::process});
    EXPECT_TRUE(made) << made.error().message();
    return *std::move(made);
  }
  // Waits until the stream does not return the message any more.
  void await_end(Stream& of, std::uint64_t sequence) {
    StreamOptions quiet{.name = "quiet", .topics = {"quiet.>"}, .survives = Survives::process};
    Stream none = *topics_->stream(quiet);
    Reader nothing = *none.read();
    auto found = of.message(sequence);
    for (const Instant end = soon(); found && sys::now() < end; found = of.message(sequence)) {
      EXPECT_EQ(nothing.next_until(sys::now() + 20ms).error(), Errc::timed_out);
    }
    EXPECT_EQ(found.error(), Errc::not_found);
  }
  static std::vector<std::string> read(Stream& of) {
    Reader reader = *of.read();
    std::vector<std::string> all;
    for (auto next = reader.next_stored(); next && *next; next = reader.next_stored()) {
      all.emplace_back((*next)->text());
    }
    return all;
  }

  TestFleet fleet_{GetParam(), true};
  Context context_;
  std::optional<Topics> topics_;
};
WEFT_ON_FLEETS(EachExpiry, kKeptFleets);

TEST_P(EachExpiry, AMessageIsGoneWhenItsTimeIsOver) {
  Stream s = stream();
  const auto first = s.publish("s.a", "short", {.id = "one", .time_to_live = 1s});
  if (refuses()) {
    EXPECT_EQ(first.error(), Errc::not_supported);
    EXPECT_EQ(s.info()->next, 1u) << "nothing is stored";
    EXPECT_TRUE(s.publish("s.a", "for ever", {.id = "one", .time_to_live = 0s}));
    return;
  }
  ASSERT_TRUE(first) << first.error().message();
  ASSERT_TRUE(s.publish("s.b", "for ever"));
  ASSERT_TRUE(s.publish("s.c", "long", {.time_to_live = std::chrono::hours(100 * 365 * 24)}));
  ASSERT_TRUE(s.publish("s.d", "rounded", {.time_to_live = 1001ms}));
  await_end(s, 1);
  await_end(s, 4);
  EXPECT_EQ(read(s), (std::vector<std::string>{"for ever", "long"}));
  EXPECT_EQ(s.newest("s.a").error(), Errc::not_found);
  EXPECT_EQ(s.newest("s.c")->text(), "long");
  EXPECT_EQ(s.newest("s.c")->headers(), "");
  EXPECT_EQ(s.info()->next, 5u);
  const auto same = s.publish("s.a", "again", {.id = "one"});
  ASSERT_TRUE(same) << same.error().message();
  EXPECT_TRUE(same->duplicate) << "the id outlives its message";
  EXPECT_EQ(s.publish("s.a", "x", {.expect_last = 1}).error(), Errc::conflict);
  EXPECT_EQ(s.publish("s.a", "x", {.expect_last = 0})->sequence, 5u);
  EXPECT_EQ(s.publish("s.d", "x", {.order = Order::strict})->sequence, 6u);
}

TEST_P(EachExpiry, TimesToLiveHaveBounds) {
  Stream s = stream();
  KeyValue b = bucket();
  for (const Duration wrong : {Duration::min(), Duration(-1), Duration(1), Duration(1s) - 1ns,
                               Duration(std::chrono::hours(100 * 365 * 24)) + 1ns, Duration::max()}) {
    EXPECT_EQ(s.publish("s.a", "x", {.time_to_live = wrong}).error(), Errc::invalid_argument);
    EXPECT_EQ(s.publish_later("s.a", "x", {.time_to_live = wrong}).error(), Errc::invalid_argument);
    EXPECT_EQ(b.put("k", "x", {.time_to_live = wrong}).error(), Errc::invalid_argument);
  }
  EXPECT_EQ(s.info()->next, 1u);
}

TEST_P(EachExpiry, AConsumerGetsNoMessageThatIsOver) {
  Stream s = stream(Keep::work);
  const auto first = s.publish("s.a", "short", {.time_to_live = 1s});
  if (refuses()) {
    EXPECT_EQ(first.error(), Errc::not_supported);
    return;
  }
  ASSERT_TRUE(s.publish("s.a", "job"));
  await_end(s, 1);
  Consumer c = *s.consumer("c");
  Delivery job = *c.next_until(soon());
  EXPECT_EQ(job.text(), "job");
  EXPECT_TRUE(job.ack_confirmed());
}

TEST_P(EachExpiry, AMessageThatEndsWithItsMemberIsAcknowledgedWithoutHarm) {
  Stream s = stream();
  Consumer c = *s.consumer("c");
  const auto first_kept = s.publish("s.a", "short", {.time_to_live = 3s});
  if (refuses()) {
    EXPECT_EQ(first_kept.error(), Errc::not_supported);
    return;
  }
  ASSERT_TRUE(first_kept) << first_kept.error().message();
  ASSERT_TRUE(s.publish("s.a", "long"));
  Delivery first = *c.next_until(soon());
  await_end(s, 1);
  const Result<void> done = first.ack_confirmed();
  EXPECT_TRUE(done || done.error() == Errc::not_found) << done.error().message();
  Delivery next = first.text() == "long" ? std::move(first) : *c.next_until(soon());
  EXPECT_EQ(next.text(), "long");
}

TEST_P(EachExpiry, AKeyHasNoValueWhenItsTimeIsOverAndWatchesGetTheErasure) {
  KeyValue b = bucket();
  KeyValueWatch watch = *b.watch();
  const auto put = b.put("k", "v", {.time_to_live = 1s});
  if (refuses()) {
    EXPECT_EQ(put.error(), Errc::not_supported);
    EXPECT_EQ(b.create("k", "v", {.time_to_live = 1s}).error(), Errc::not_supported);
    EXPECT_EQ(b.update("k", "v", 0, {.time_to_live = 1s}).error(), Errc::not_supported);
    EXPECT_EQ(b.value("k").error(), Errc::not_found);
    return;
  }
  ASSERT_TRUE(put) << put.error().message();
  KeyValueEntry entry = *watch.next_until(soon());
  if (!entry.erased()) {  // a slow machine may have missed the value
    EXPECT_EQ(entry.text(), "v");
    entry = *watch.next_until(soon());
  }
  EXPECT_TRUE(entry.erased());
  EXPECT_EQ(entry.key(), "k");
  EXPECT_EQ(entry.text(), "");
  EXPECT_EQ(b.value("k").error(), Errc::not_found);
  EXPECT_TRUE(b.keys()->empty());
  EXPECT_EQ(b.update("k", "x", *put).error(), Errc::conflict);
  ASSERT_TRUE(b.create("k", "anew"));
  EXPECT_EQ(b.value("k")->text(), "anew");
  EXPECT_EQ(watch.next_until(soon())->text(), "anew");
}

TEST_P(EachExpiry, AKeyIsCreatedAgainAsSoonAsItsValueIsOver) {
  KeyValue b = bucket();
  const auto first = b.create("lock", "one", {.time_to_live = 1s});
  if (refuses()) {
    EXPECT_EQ(first.error(), Errc::not_supported);
    return;
  }
  ASSERT_TRUE(first) << first.error().message();
  KeyValueWatch watch = *b.watch();
  Result<std::uint64_t> mine = Errc::conflict;
  for (const Instant end = soon(); !mine && sys::now() < end;) {
    mine = b.create("lock", "two", {.time_to_live = std::chrono::hours(1)});
    EXPECT_TRUE(mine || mine.error() == Errc::conflict) << mine.error().message();
    (void)watch.next_until(sys::now() + 20ms);
  }
  ASSERT_TRUE(mine);
  EXPECT_EQ(b.value("lock")->text(), "two");
  // A new value without a time to live stays.
  const auto longer = b.update("lock", "three", *mine);
  ASSERT_TRUE(longer) << longer.error().message();
  EXPECT_EQ(b.value("lock")->text(), "three");
}

TEST_P(EachExpiry, OfABucketWithAHistoryNoOlderValueComesBack) {
  KeyValue b = bucket(3);
  ASSERT_TRUE(b.put("k", "old"));
  KeyValueWatch watch = *b.watch();
  const auto put = b.put("k", "short", {.time_to_live = 1s});
  if (is_nats(GetParam())) {  // there the older value would
    EXPECT_EQ(put.error(), Errc::not_supported);
    EXPECT_EQ(b.value("k")->text(), "old");
    return;
  }
  KeyValueEntry entry = *watch.next_until(soon());
  while (!entry.erased()) {
    entry = *watch.next_until(soon());
  }
  EXPECT_EQ(b.value("k").error(), Errc::not_found);
  KeyValueWatch all = *b.watch(">", true);
  EXPECT_TRUE((*all.next_stored())->erased());
  EXPECT_FALSE(all.next_stored()->has_value());
}

}  // namespace
}  // namespace weft::topic
