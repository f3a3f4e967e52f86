// SPDX-License-Identifier: MIT
#include "weft/sync/spin.h"

#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace weft::sync {
namespace {

// Where spinning does not pay, every budget is zero.
std::uint32_t where_it_pays(std::uint32_t us) { return spinning_pays() ? us : 0; }

TEST(SpinBudget, IsFixedByTheModesThatDoNotLearn) {
  SpinBudget budget;
  EXPECT_EQ(budget.budget_us(WaitMode::eco), 0u);
  EXPECT_EQ(budget.budget_us(WaitMode::latency), spins_for_latency() ? 200u : 0u);
  for (int i = 0; i < 100; ++i) {
    budget.record(false);
  }
  EXPECT_EQ(budget.budget_us(WaitMode::latency), spins_for_latency() ? 200u : 0u);
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

TEST(SpinBudget, IsNothingButForTrialsWhereSpinningNeverPays) {
  SpinBudget budget;
  for (int i = 0; i < 40; ++i) {
    budget.record(false);
  }
  EXPECT_EQ(budget.budget_us(WaitMode::adaptive), 0u);
  budget.record(true);
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

TEST(SpinBudget, IsFullForTwoMoreWaitsAfterATrialThatPaid) {
  SpinBudget budget;
  for (int i = 0; i < 20; ++i) {
    budget.record(false);
  }
  budget.record(true);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(budget.budget_us(WaitMode::adaptive), where_it_pays(50));
    budget.record(false);
  }
  EXPECT_EQ(budget.budget_us(WaitMode::adaptive), where_it_pays(2));
}

TEST(SpinBudget, CountsWhatCameLateAsAFailureAndLearnsNothingWithoutATrial) {
  SpinBudget budget;
  for (int i = 0; i < 100; ++i) {
    budget.record(Spun::not_tried);
  }
  EXPECT_EQ(budget.budget_us(WaitMode::adaptive), where_it_pays(50));
  for (int i = 0; i < 20; ++i) {
    budget.record(Spun::late);
  }
  EXPECT_EQ(budget.budget_us(WaitMode::adaptive), where_it_pays(2));
}

constexpr std::uint64_t kUs = 1000;  // ticks in a microsecond
constexpr std::uint64_t kMs = 1000 * kUs;

// Of a thread whose process has no others.
struct Contentions : testing::Test {
  Spinners spinners;
  Contention contention{spinners};
};

TEST_F(Contentions, AreNotSeenInAShortYield) {
  EXPECT_FALSE(contention.note_yield(5, 5 + 500 * kUs, kUs));
  EXPECT_FALSE(contention.wanted(5 + 500 * kUs));
}

TEST_F(Contentions, EndSpinningForFourMillisecondsAfterALostSlice) {
  EXPECT_TRUE(contention.note_yield(0, 3 * kMs, kUs));
  EXPECT_TRUE(contention.wanted(3 * kMs));
  EXPECT_TRUE(contention.wanted(7 * kMs - 1));
  EXPECT_FALSE(contention.wanted(7 * kMs));
}

TEST_F(Contentions, AreTriedLessAndLessOftenWhileSlicesAreLost) {
  std::uint64_t now = 0;
  for (const std::uint64_t away : {4, 8, 16, 32, 64, 128, 256, 256}) {
    EXPECT_TRUE(contention.note_yield(now, now + kMs, kUs));
    now += kMs + away * kMs;
    EXPECT_TRUE(contention.wanted(now - 1)) << away;
    EXPECT_FALSE(contention.wanted(now)) << away;
  }
}

TEST_F(Contentions, AreForgottenAsYieldsReturnAtOnce) {
  for (int i = 0; i < 10; ++i) {
    (void)contention.note_yield(0, kMs, kUs);
  }
  for (int i = 0; i < 64 * 6; ++i) {
    EXPECT_FALSE(contention.note_yield(0, kUs, kUs));
  }
  EXPECT_TRUE(contention.note_yield(0, kMs, kUs));
  EXPECT_FALSE(contention.wanted(5 * kMs));
}

// A thread more than processors spins: one of them used the slice. Spins of a slice before count, and no earlier ones.
TEST_F(Contentions, AreNotSeenInASliceOfThreadsThatSpin) {
  constexpr std::uint64_t kBefore = 100 * kMs;
  EXPECT_TRUE(contention.note_yield(kBefore, kBefore + 3 * kMs, kUs));
  std::vector<Contention> others(sys::allowed_cpus(), Contention(spinners));
  for (Contention& other : others) {
    (void)other.note_spin(kBefore - 3 * kMs, kUs);
  }
  EXPECT_TRUE(contention.note_yield(kBefore, kBefore + 3 * kMs, kUs)) << "a thread for each processor";
  (void)contention.note_spin(kBefore - kUs, kUs);
  EXPECT_FALSE(contention.note_yield(kBefore, kBefore + 3 * kMs, kUs));
  EXPECT_TRUE(contention.note_yield(kBefore + kUs, kBefore + 3 * kMs, kUs));
}

TEST_F(Contentions, AreNotTriedByAThreadThatRested) {
  EXPECT_TRUE(contention.note_spin(kMs, kUs)) << "its first spin";
  EXPECT_FALSE(contention.note_spin(kMs + 500 * kUs, kUs));
  EXPECT_FALSE(contention.note_spin(kMs + 510 * kUs, kUs));
  EXPECT_TRUE(contention.note_spin(2 * kMs + 11 * kUs, kUs));
}

// Contention is the thread's own: that of the thread that runs the tests depends on the tests before.
template <typename Body>
void in_a_new_thread(Body body) {
  std::thread(body).join();
}

TEST(SpinUntil, DoesNotLookWithoutABudget) {
  const Spun spun = spin_until(0, [] {
    ADD_FAILURE();
    return true;
  });
  EXPECT_EQ(spun, Spun::not_tried);
}

TEST(SpinUntil, DoesNotLookWhileAnotherProgramWantsTheCore) {
  in_a_new_thread([] {
    const std::uint64_t hour = 3'600'000'000ULL * sys::ticks_per_us();
    const std::uint64_t start = sys::ticks() + hour;  // other threads do not spin then
    for (int i = 0; i < 20; ++i) {                    // the last one ends spinning for 256 ms from then on
      (void)this_threads_contention().note_yield(start, start + sys::ticks_per_us() * 1000, sys::ticks_per_us());
    }
    const Spun spun = spin_until(50, [] {
      ADD_FAILURE();
      return true;
    });
    EXPECT_EQ(spun, Spun::not_tried);
  });
}

TEST(SpinUntil, EndsAtTheFirstSuccess) {
  in_a_new_thread([] {
    int looks = 0;
    EXPECT_EQ(spin_until(1'000'000, [&] { return ++looks == 3; }), Spun::found);
    EXPECT_EQ(looks, 3);
  });
}

TEST(SpinUntil, GivesUpWhenTheBudgetIsSpent) {
  in_a_new_thread([] {
    int looks = 0;
    EXPECT_EQ(spin_until(1, [&] { return ++looks < 0; }), Spun::spent);
    EXPECT_GE(looks, 5);
  });
}

}  // namespace
}  // namespace weft::sync
