// SPDX-License-Identifier: MIT
#include "weft/rt/loop/poll_budget.h"

#include <random>

#include <gtest/gtest.h>

namespace weft::rt {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Instant kStart = Instant() + std::chrono::hours(1);

PollBudget budget_of(unsigned cpu_percent, Duration poll_for = microseconds(200)) {
  PollBudget budget;
  budget.set({poll_for, cpu_percent});
  return budget;
}

TEST(PollBudget, ARestedThreadMayPollForTheWholeTime) {
  auto budget = budget_of(10);
  EXPECT_EQ(budget.allowed(kStart), microseconds(200));
}

TEST(PollBudget, AThreadThatPollsWithoutAnEndGetsItsShare) {
  for (const unsigned percent : {1u, 10u, 50u, 99u}) {
    auto budget = budget_of(percent);
    Duration polled{};
    Instant now = kStart;
    int parks = 0;
    while (now - kStart < seconds(1)) {
      const Duration allowed = budget.allowed(now);
      polled += allowed;
      budget.spend(allowed);
      parks += allowed == Duration::zero() ? 1 : 0;
      now = now + std::max(allowed, Duration(microseconds(1)));
    }
    const Duration share = Duration(seconds(1)) * percent / 100;
    EXPECT_GE(polled, share) << percent;
    EXPECT_LE(polled, share + PollBudget::kSaved + microseconds(200)) << percent;
    EXPECT_GT(parks, 0) << percent;
  }
}

TEST(PollBudget, AThreadThatHasSpentItsShareParksUntilItHasEarnedTwoMicroseconds) {
  auto budget = budget_of(10);
  ASSERT_EQ(budget.allowed(kStart), microseconds(200));
  budget.spend(PollBudget::kSaved);
  EXPECT_EQ(budget.allowed(kStart), Duration::zero());
  EXPECT_EQ(budget.allowed(kStart + microseconds(19)), Duration::zero());
  EXPECT_EQ(budget.allowed(kStart + microseconds(20)), microseconds(2));
  budget.spend(microseconds(2));
  EXPECT_EQ(budget.allowed(kStart + microseconds(1020)), microseconds(100));
}

// The system ran another program meanwhile.
TEST(PollBudget, APollThatTookLongerThanPermittedIsPaidLater) {
  auto budget = budget_of(50);
  (void)budget.allowed(kStart);
  budget.spend(milliseconds(30));
  EXPECT_EQ(budget.allowed(kStart + milliseconds(30)), Duration::zero());
  EXPECT_EQ(budget.allowed(kStart + milliseconds(40)), Duration::zero());
  EXPECT_EQ(budget.allowed(kStart + milliseconds(41)), microseconds(200));
}

TEST(PollBudget, AHundredPercentIsNoBoundAndNoneIsNoPoll) {
  auto all = budget_of(100);
  auto none = budget_of(0);
  auto at_once = budget_of(100, Duration::zero());
  for (int i = 0; i < 1000; ++i) {
    EXPECT_EQ(all.allowed(kStart), microseconds(200));
    all.spend(microseconds(200));
    EXPECT_EQ(none.allowed(kStart + seconds(i)), Duration::zero());
    EXPECT_EQ(at_once.allowed(kStart + seconds(i)), Duration::zero());
  }
}

TEST(PollBudget, KeepsItsInvariantWhateverTheTimes) {
  std::mt19937_64 random(7);  // NOLINT(bugprone-random-generator-seed): the same run each time
  for (int round = 0; round < 200; ++round) {
    const auto percent = static_cast<unsigned>(random() % 100);
    auto budget = budget_of(percent, microseconds(random() % 10'000));
    Instant now = kStart;
    (void)budget.allowed(now);
    Duration polled{};
    Duration beyond{};
    for (int i = 0; i < 500; ++i) {
      const Duration allowed = budget.allowed(now);
      const Duration took = allowed == Duration::zero() ? allowed : allowed + microseconds(random() % 50);
      beyond += took - allowed;
      polled += took;
      budget.spend(took);
      now = now + took + microseconds(random() % 300) - microseconds(random() % 5 == 0 ? 1 : 0);
      ASSERT_LE(polled, PollBudget::kSaved + (now + microseconds(1) - kStart) * percent / 100 + beyond) << percent;
    }
  }
}

TEST(PollBudget, ItsOptionsHaveBounds) {
  EXPECT_TRUE(LatencyOptions().valid());
  EXPECT_TRUE((LatencyOptions{LatencyOptions::kPollForMax, 100}.valid()));
  EXPECT_FALSE((LatencyOptions{LatencyOptions::kPollForMax + Duration(1), 100}.valid()));
  EXPECT_FALSE((LatencyOptions{Duration(-1), 100}.valid()));
  EXPECT_FALSE((LatencyOptions{Duration(0), 101}.valid()));
}

}  // namespace
}  // namespace weft::rt
