// SPDX-License-Identifier: MIT
#include "weft/sync/spin.h"

#include <thread>

#include <gtest/gtest.h>

namespace weft::sync {
namespace {

// Where spinning does not pay, every budget is zero.
std::uint32_t where_it_pays(std::uint32_t us) { return spinning_pays() ? us : 0; }

TEST(SpinBudget, IsFixedByTheModesThatDoNotLearn) {
  SpinBudget budget;
  EXPECT_EQ(budget.budget_us(WaitMode::eco), 0u);
  EXPECT_EQ(budget.budget_us(WaitMode::latency), where_it_pays(200));
  for (int i = 0; i < 100; ++i) {
    budget.record(false);
  }
  EXPECT_EQ(budget.budget_us(WaitMode::latency), where_it_pays(200));
}

TEST(SpinBudget, StartsFullAndFollowsSuccess) {
  SpinBudget budget;
  EXPECT_EQ(budget.budget_us(WaitMode::adaptive), where_it_pays(50));
  for (int i = 0; i < 20; ++i) {
    budget.record(false);
  }
  EXPECT_EQ(budget.budget_us(WaitMode::adaptive), where_it_pays(2));
  for (int i = 0; i < 20; ++i) {
    budget.record(true);
  }
  EXPECT_EQ(budget.budget_us(WaitMode::adaptive), where_it_pays(50));
}

TEST(SpinBudget, IsFullWhileOneWaitInFiveEndsByIt) {
  SpinBudget budget;
  for (int i = 0; i < 200; ++i) {
    budget.record(i % 3 == 0);
    EXPECT_EQ(budget.budget_us(WaitMode::adaptive), where_it_pays(50)) << i;
  }
}

TEST(SpinBudget, IsTriedInFullEverySixtyFourWaits) {
  SpinBudget budget;
  int full = 0;
  for (int i = 0; i < 20; ++i) {
    budget.record(false);
  }
  for (int i = 0; i < 64 * 10; ++i) {
    full += budget.budget_us(WaitMode::adaptive) == 50 ? 1 : 0;
    budget.record(false);
  }
  EXPECT_EQ(full, spinning_pays() ? 10 : 0);
}

TEST(SpinBudget, LearnsAfterTwoThreadsRacedOnIt) {
  SpinBudget budget;
  const auto use = [&] {
    for (int i = 0; i < 50'000; ++i) {
      const std::uint32_t us = budget.budget_us(WaitMode::adaptive);
      EXPECT_TRUE(us == 0 || us == 2 || us == 50);
      budget.record(i % 7 == 0);
    }
  };
  std::thread other(use);
  use();
  other.join();
  for (int i = 0; i < 40; ++i) {
    budget.record(true);
  }
  EXPECT_EQ(budget.budget_us(WaitMode::adaptive), where_it_pays(50));
}

TEST(SpinUntil, DoesNotLookWithoutABudget) {
  EXPECT_FALSE(spin_until(0, [] {
    ADD_FAILURE();
    return true;
  }));
}

TEST(SpinUntil, EndsAtTheFirstSuccess) {
  int looks = 0;
  EXPECT_TRUE(spin_until(1'000'000, [&] { return ++looks == 7; }));
  EXPECT_EQ(looks, 7);
}

TEST(SpinUntil, GivesUpWhenTheBudgetIsSpent) {
  int looks = 0;
  EXPECT_FALSE(spin_until(1, [&] { return ++looks < 0; }));
  EXPECT_GE(looks, 5);
}

}  // namespace
}  // namespace weft::sync
