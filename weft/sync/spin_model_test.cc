// SPDX-License-Identifier: MIT
#include "tests/support/model.h"
#include "weft/sync/spin.h"
#include <gtest/gtest.h>

namespace weft::sync {
namespace {

// Updates may be lost, but the estimate never leaves its range: later waits decide.
TEST(SpinBudgetModel, StaysInRangeAndLearnsAfterAnyRace) {
  const model::Outcome outcome = model::explore(
      [] {
        SpinBudget budget;
        const auto use = [&](bool ended) {
          const std::uint32_t us = budget.budget_us(WaitMode::adaptive);
          model::require(us == 0 || us == 2 || us == 50, "no such budget");
          budget.record(ended);
        };
        model::run_threads([&] { use(true), use(false); }, [&] { use(false), use(true); });
        for (int i = 0; i < 32; ++i) {
          budget.record(false);
        }
        model::require(budget.budget_us(WaitMode::adaptive) <= 2, "failure is not learnt");
        for (int i = 0; i < 32; ++i) {
          budget.record(true);
        }
        model::require(budget.budget_us(WaitMode::adaptive) == (spinning_pays() ? 50u : 0u), "success is not learnt");
      },
      {.preemptions = 3});
  EXPECT_TRUE(outcome.complete) << outcome.failure;
}

}  // namespace
}  // namespace weft::sync
