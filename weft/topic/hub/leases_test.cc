// SPDX-License-Identifier: MIT
#include "weft/topic/hub/leases.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace weft::topic {
namespace {

using namespace std::chrono_literals;

constexpr Instant kStart(1h);

TEST(LeaseTable, ANameHasOneHolderAndEpochsGrow) {
  LeaseTable table(100, kStart);
  EXPECT_EQ(*table.take("a", "m1", 0, 0s, "", kStart), 100U);
  EXPECT_EQ(table.take("a", "m2", 0, 0s, "", kStart).error(), Errc::conflict);
  EXPECT_EQ(*table.take("a", "m1", 0, 0s, "new", kStart), 100U);
  EXPECT_EQ(table.find("a")->data, "new");
  EXPECT_EQ(table.take("a", "m1", 7, 0s, "", kStart).error(), Errc::conflict);
  EXPECT_FALSE(table.release("a", "m2"));
  EXPECT_TRUE(table.release("a", "m1"));
  EXPECT_EQ(*table.take("a", "m2", 0, 0s, "", kStart), 101U);
  EXPECT_EQ(*table.take("b", "m2", 0, 0s, "", kStart), 102U);
}

TEST(LeaseTable, ALeaseOfAConnectionEndsWithItAndOneWithATimeAfterIt) {
  LeaseTable table(1, kStart);
  ASSERT_TRUE(table.take("connection", "m", 0, 0s, "", kStart));
  ASSERT_TRUE(table.take("time", "m", 0, 10s, "", kStart));
  ASSERT_TRUE(table.take("other", "n", 0, 0s, "", kStart));
  EXPECT_EQ(table.next_expiry(), kStart + 10s);
  table.drop_holder("m");
  EXPECT_EQ(table.find("connection"), nullptr);
  ASSERT_NE(table.find("time"), nullptr);
  ASSERT_NE(table.find("other"), nullptr);
  // The same member over a new connection: its epoch proves it.
  EXPECT_EQ(*table.take("time", "m-again", table.find("time")->epoch, 10s, "", kStart + 5s), 2U);
  table.expire(kStart + 15s - 1ns);
  EXPECT_NE(table.find("time"), nullptr);
  table.expire(kStart + 15s);
  EXPECT_EQ(table.find("time"), nullptr);
  EXPECT_EQ(table.next_expiry(), kNever);
}

TEST(LeaseTable, ANewHubGivesALeaseToItsFormerHolderFirst) {
  LeaseTable table(1000, kStart + 1s);
  EXPECT_EQ(table.take("a", "rival", 0, 0s, "", kStart).error(), Errc::would_block);
  EXPECT_EQ(*table.take("a", "owner", 17, 0s, "", kStart), 17U);
  EXPECT_EQ(table.take("a", "rival", 0, 0s, "", kStart + 2s).error(), Errc::conflict);
  EXPECT_EQ(*table.take("b", "rival", 0, 0s, "", kStart + 1s), 1000U);
  // Too late, or an epoch that no hub gave: a new one.
  EXPECT_EQ(*table.take("c", "owner", 18, 0s, "", kStart + 2s), 1001U);
  LeaseTable other(1000, kStart + 1s);
  EXPECT_EQ(*other.take("d", "liar", 5000, 0s, "", kStart), 1000U);
}

TEST(LeaseTable, TellsItsObserverOfEveryChangeAndOfNothingElse) {
  LeaseTable table(1, kStart);
  std::vector<std::string> told;
  table.set_observer([&told](const std::string& name) { told.push_back(name); });
  ASSERT_TRUE(table.take("a", "m", 0, 1s, "x", kStart));
  ASSERT_TRUE(table.take("a", "m", 0, 1s, "x", kStart));
  EXPECT_EQ(told.size(), 1U);
  ASSERT_TRUE(table.take("a", "m", 0, 1s, "y", kStart));
  EXPECT_EQ(told.size(), 2U);
  table.expire(kStart + 1s);
  EXPECT_EQ(told, (std::vector<std::string>{"a", "a", "a"}));
}

TEST(LeaseTable, HasBounds) {
  LeaseTable table(1, kStart);
  const std::string text(5000, 'x');
  const std::string_view all(text);
  EXPECT_EQ(table.take("", "m", 0, 0s, "", kStart).error(), Errc::invalid_argument);
  EXPECT_EQ(table.take(all.substr(0, 256), "m", 0, 0s, "", kStart).error(), Errc::invalid_argument);
  EXPECT_EQ(table.take("a", "m", 0, 0s, all.substr(0, 4097), kStart).error(), Errc::message_too_large);
  for (std::size_t i = 0; i < LeaseTable::kLeasesMax; ++i) {
    ASSERT_TRUE(table.take(std::to_string(i), "m", 0, 0s, "", kStart));
  }
  EXPECT_EQ(table.take("one more", "m", 0, 0s, "", kStart).error(), Errc::resource_exhausted);
  table.drop_holder("m");
  EXPECT_EQ(*table.take("one more", "n", 0, 0s, "", kStart), LeaseTable::kLeasesMax + 1);
}

// Leases whose holder is gone, or whose time is over, while most of them have not been removed.
TEST(LeaseTable, ManyLeasesEndInPartsAndKeepNoNameMeanwhile) {
  constexpr std::size_t kCount = 3 * LeaseTable::kEndsPerCall;
  for (const bool with_time : {false, true}) {
    LeaseTable table(1, kStart);
    std::size_t ended = 0;
    for (std::size_t i = 0; i < kCount; ++i) {
      ASSERT_TRUE(table.take(std::to_string(i), "m", 0, with_time ? Duration(1s) : Duration(), "", kStart));
    }
    ASSERT_TRUE(table.take("another", "n", 0, 0s, "", kStart));
    table.set_observer([&ended](const std::string&) { ++ended; });
    table.drop_holder("m");
    const Instant later = kStart + 1s;
    if (with_time) {
      EXPECT_EQ(ended, 0U);
      table.expire(later);
    }
    EXPECT_EQ(ended, LeaseTable::kEndsPerCall);
    EXPECT_LE(table.next_expiry(), later) << "at once";
    for (const char* const name : {"0", "700", "767"}) {
      EXPECT_TRUE(table.take(name, "n", 0, 0s, "", later)) << name;
    }
    EXPECT_TRUE(table.take("again", "m", 0, 0s, "", later)) << "the same holder over a new connection";
    for (std::size_t before = 0; table.next_expiry() <= later && before != ended;) {
      before = ended;
      table.expire(later);
      EXPECT_LE(ended - before, LeaseTable::kEndsPerCall);
    }
    EXPECT_EQ(table.next_expiry(), kNever);
    EXPECT_EQ(table.size(), 5U);
    EXPECT_NE(table.find("again"), nullptr);
  }
}

TEST(LeaseTable, ListsTheNamesOfAPrefixInOrder) {
  LeaseTable table(1, kStart);
  for (const char* name : {"n.b", "n.a", "m", "o"}) {
    ASSERT_TRUE(table.take(name, "m", 0, 0s, "", kStart));
  }
  EXPECT_EQ(table.next_name("n.", "", true), "n.a");
  EXPECT_EQ(table.next_name("n.", "n.a", false), "n.b");
  EXPECT_EQ(table.next_name("n.", "n.b", false), std::nullopt);
  EXPECT_EQ(table.next_name("", "", true), "m");
}

}  // namespace
}  // namespace weft::topic
