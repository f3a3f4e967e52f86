// SPDX-License-Identifier: MIT
#include "weft/net/backoff.h"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>

namespace weft::net {
namespace {

using std::chrono::milliseconds;

TEST(Backoff, ConstantModeStaysBetweenOneAndTwoBases) {
  for (const Duration max : {Duration(0), Duration(milliseconds(50)), Duration(milliseconds(100)), Duration(-1)}) {
    Backoff backoff(milliseconds(100), max, 1);
    Duration least = Duration::max();
    Duration most{0};
    for (int i = 0; i < 1000; ++i) {
      const Duration interval = backoff.next();
      least = std::min(least, interval);
      most = std::max(most, interval);
    }
    EXPECT_GE(least, milliseconds(100));
    EXPECT_LT(most, milliseconds(200));
    EXPECT_LT(least, milliseconds(110));  // the jitter uses its whole range
    EXPECT_GT(most, milliseconds(190));
  }
}

TEST(Backoff, GrowsToItsMaximumAndKeepsItsJitterThere) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    Backoff backoff(milliseconds(100), milliseconds(1000), seed);
    for (const int ceiling : {200, 400, 800, 1000, 1000, 1000}) {
      const Duration interval = backoff.next();
      EXPECT_GE(interval, milliseconds(ceiling) / 2);
      EXPECT_LT(interval, milliseconds(ceiling));
    }
  }
  std::set<Duration> distinct;
  Backoff backoff(milliseconds(100), milliseconds(1000), 5);
  for (int i = 0; i < 100; ++i) {
    distinct.insert(backoff.next());
  }
  EXPECT_GT(distinct.size(), 90u);
}

TEST(Backoff, StartsAnewAfterReset) {
  Backoff backoff(milliseconds(1), milliseconds(1000), 3);
  for (int i = 0; i < 20; ++i) {
    (void)backoff.next();
  }
  EXPECT_GE(backoff.next(), milliseconds(500));
  backoff.reset();
  EXPECT_LT(backoff.next(), milliseconds(2));
}

TEST(Backoff, AfterCostlyAttemptsGrowsAlsoInConstantModeAndThenIsConstantAgain) {
  for (const Duration base : {Duration(0), Duration(milliseconds(10))}) {
    Backoff backoff(base, Duration(0), 3);
    for (const int ceiling : {20, 40, 80, 160, 320, 640, 1280, 2560, 5000, 5000}) {
      const Duration interval = backoff.next_costly();
      EXPECT_GE(interval, milliseconds(ceiling) / 2);
      EXPECT_LT(interval, milliseconds(ceiling));
    }
    EXPECT_LE(backoff.next(), 2 * base);
  }
  Backoff patient(std::chrono::minutes(1), Duration(0), 3);
  EXPECT_GE(patient.next_costly(), std::chrono::minutes(1));
}

TEST(Backoff, AfterCutConnectionsGrowsInEveryModeUntilOneLasts) {
  for (const Duration base : {Duration(0), Duration(milliseconds(10))}) {
    Backoff backoff(base, Duration(0), 3);
    for (const int ceiling : {20, 40, 80, 160, 320, 400, 400}) {
      const Duration interval = backoff.next_cut();
      EXPECT_GE(interval, milliseconds(ceiling) / 2);
      EXPECT_LT(interval, milliseconds(ceiling));
      backoff.reset();
      EXPECT_LE(backoff.next(), 2 * base);
    }
    backoff.settle();
    EXPECT_LT(backoff.next_cut(), milliseconds(20));
  }
  Backoff patient(std::chrono::minutes(1), Duration(0), 3);
  EXPECT_GE(patient.next_cut(), std::chrono::minutes(1));
}

TEST(Backoff, DifferentSeedsDoNotReturnInStep) {
  Backoff a(milliseconds(100), Duration(0), 1);
  Backoff b(milliseconds(100), Duration(0), 2);
  int equal = 0;
  for (int i = 0; i < 100; ++i) {
    equal += a.next() == b.next() ? 1 : 0;
  }
  EXPECT_LT(equal, 3);
}

TEST(Backoff, OwnersHaveDifferentSeeds) {
  std::set<std::uint64_t> seeds;
  const int owners[100] = {};
  for (const int& owner : owners) {
    seeds.insert(Backoff::seed_for(&owner));
  }
  EXPECT_GT(seeds.size(), 50u);  // two are equal only where the time happens to undo the difference of the addresses
}

TEST(Backoff, SurvivesTheEdgesOfItsRange) {
  for (const Duration base : {Duration(0), Duration(-5)}) {
    Backoff zero(base, milliseconds(10), 1);
    EXPECT_EQ(zero.next(), Duration(0));
  }
  Backoff least(Duration(1), Duration(0), 1);
  EXPECT_EQ(least.next(), Duration(1));
  Backoff most(Duration::max(), Duration::max(), 1);
  Backoff growing(Duration(1), Duration::max(), 1);
  for (int i = 0; i < 200; ++i) {
    EXPECT_GT(most.next(), Duration(0));
    EXPECT_GT(growing.next(), Duration(0));
  }
}

}  // namespace
}  // namespace weft::net
