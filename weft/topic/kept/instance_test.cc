// SPDX-License-Identifier: MIT
// A sequence that a program passes counts one life of a stream.
#include <memory>

#include "weft/topic/test_fleets.h"
#include <gtest/gtest.h>

namespace weft::topic {
namespace {

class KeptInstance : public testing::Test {
 protected:
  TestFleet fleet_{"local"};
  Context context_;
};

TEST_F(KeptInstance, ARevisionOfABucketThatWasRemovedAndMadeAnewIsAConflict) {
  Topics one = fleet_.open(context_);
  Topics two = fleet_.open(context_);
  for (const Survives survives : {Survives::power, Survives::nothing}) {
    KeyValue old = *one.key_value("b", {.survives = survives});
    const std::uint64_t revision = *old.put("k", "old");
    const KeyValueEntry entry = *old.value("k");
    ASSERT_TRUE(
        two.stream({.name = "kv.b", .topics = {"kv.b.>"}, .keep = Keep::latest, .survives = survives})->remove());
    KeyValue anew = *two.key_value("b", {.survives = survives});
    ASSERT_EQ(*anew.put("k", "new"), revision) << "without its life the revision is the same";
    EXPECT_EQ(old.update("k", "lost", revision).error(), Errc::conflict);
    EXPECT_EQ(old.erase("k", revision).error(), Errc::conflict);
    const KeyValueEntry now = *old.value("k");
    EXPECT_EQ(now.text(), "new");
    EXPECT_NE(now.instance(), entry.instance());
    EXPECT_EQ(old.update("k", "lost", entry).error(), Errc::conflict);
    EXPECT_EQ(old.erase("k", entry).error(), Errc::conflict);
    EXPECT_EQ(*old.update("k", "newer", now.revision()), revision + 1);
    EXPECT_EQ(*old.update("k", "newest", *old.value("k")), revision + 2);
    EXPECT_TRUE(old.erase("k", *old.value("k")));
    ASSERT_TRUE(
        two.stream({.name = "kv.b", .topics = {"kv.b.>"}, .keep = Keep::latest, .survives = survives})->remove());
  }
}

TEST_F(KeptInstance, ASequenceOfAStreamThatWasRemovedAndMadeAnewIsNoExpectationAndNoPurge) {
  Topics one = fleet_.open(context_);
  Topics two = fleet_.open(context_);
  Stream stream = *one.stream({.name = "s"});
  const auto make_anew = [&two] {
    ASSERT_TRUE(two.stream({.name = "s"})->remove());
    ASSERT_TRUE(two.stream({.name = "s"})->publish("a", "new"));
  };
  ASSERT_TRUE(stream.publish("a", "old"));
  make_anew();
  EXPECT_EQ(stream.publish("a", "lost", {.expect_last = 1}).error(), Errc::conflict);
  EXPECT_EQ(stream.purge(2).error(), Errc::conflict);
  EXPECT_TRUE(stream.publish("b", "the first one of its topic", {.expect_last = 0}));
  // Each way that a sequence of this life comes to the program.
  EXPECT_TRUE(stream.publish("a", "after an answer", {.expect_last = 1}));
  make_anew();
  EXPECT_EQ(stream.newest("a")->sequence(), 1u);
  EXPECT_TRUE(stream.publish("a", "after a message", {.expect_last = 1}));
  make_anew();
  EXPECT_EQ(stream.info()->next, 2u);
  EXPECT_TRUE(stream.publish("a", "after a description", {.expect_last = 1}));
  make_anew();
  EXPECT_EQ(stream.read()->next_until(soon())->text(), "new");
  EXPECT_TRUE(stream.publish("a", "after a delivery", {.expect_last = 1}));
}

TEST_F(KeptInstance, AStrictOrderDoesNotGoOnInAnotherLifeOfTheStream) {
  Topics one = fleet_.open(context_);
  Topics two = fleet_.open(context_);
  Stream stream = *one.stream({.name = "s"});
  ASSERT_TRUE(stream.publish("a", "1", {.order = Order::strict}));
  ASSERT_TRUE(two.stream({.name = "s"})->remove());
  ASSERT_TRUE(two.stream({.name = "s"})->publish("a", "new"));
  EXPECT_EQ(stream.publish("a", "2", {.order = Order::strict}).error(), Errc::conflict);
  EXPECT_EQ(stream.publish("a", "3", {.order = Order::strict})->sequence, 2u);
}

TEST_F(KeptInstance, ARevisionOfAHubsMemoryIsAConflictAfterTheHub) {
  auto host = std::make_unique<Topics>(fleet_.open(context_));
  ASSERT_TRUE(host->key_value("b", {.survives = Survives::nothing}));
  Topics other = fleet_.open(context_);
  KeyValue bucket = *other.key_value("b", {.survives = Survives::nothing});
  const std::uint64_t revision = *bucket.put("k", "old");
  host.reset();
  ASSERT_EQ(*other.key_value("b", {.survives = Survives::nothing})->put("k", "new"), revision);
  EXPECT_EQ(bucket.update("k", "lost", revision).error(), Errc::conflict);
}

}  // namespace
}  // namespace weft::topic
