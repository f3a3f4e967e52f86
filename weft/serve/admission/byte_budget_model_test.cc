// SPDX-License-Identifier: MIT
#include "tests/support/model_sites.h"
#include "weft/serve/admission/byte_budget.h"
#include "weft/serve/admission/session_count.h"
#include <gtest/gtest.h>

namespace weft::serve {
namespace {

void two_shares_never_hold_more_than_there_is() {
  ByteBudget budget(3);
  ByteBudget::Share a(budget, 3);
  ByteBudget::Share b(budget, 3);
  bool both[2] = {false, false};
  model::run_threads([&] { both[0] = a.take(2); }, [&] { both[1] = b.take(2); });
  model::require(!(both[0] && both[1]), "more was granted than there is");
  model::require(both[0] || both[1], "nobody got what was there");
  model::require(budget.granted() <= 3, "the count exceeds the limit");
}

void what_is_given_back_is_there_again() {
  ByteBudget budget(2);
  model::run_threads(
      [&] {
        ByteBudget::Share share(budget, 2);
        model::require(!share.take(3), "more than the limit");
        (void)share.take(1);
      },
      [&] {
        ByteBudget::Share share(budget, 2);
        (void)share.take(2);
      });
  model::require(budget.granted() == 0, "something was kept");
}

void two_sessions_do_not_take_one_place() {
  SessionCount count(1);
  bool both[2] = {false, false};
  model::run_threads([&] { both[0] = count.take(); }, [&] { both[1] = count.take(); });
  model::require(both[0] != both[1], "one place, one session");
  count.give_back();
  model::require(count.value() == 0, "the place is free");
}

constexpr model::Scenario kScenarios[] = {
    {"two_shares_never_hold_more_than_there_is", two_shares_never_hold_more_than_there_is},
    {"what_is_given_back_is_there_again", what_is_given_back_is_there_again},
    {"two_sessions_do_not_take_one_place", two_sessions_do_not_take_one_place},
};

TEST(ByteBudgetModel, SharesNeverHoldMoreThanTheLimit) {
  for (const model::Scenario& scenario : kScenarios) {
    const model::Outcome outcome = model::explore(scenario.run, scenario.options);
    EXPECT_TRUE(outcome.complete) << scenario.name << ": " << outcome.failure;
  }
}

TEST(ByteBudgetModel, NeedsEveryMemoryOrderItHas) {
  for (const char* file : {"serve/admission/byte_budget.h", "serve/admission/session_count.h"}) {
    for (const std::string& complaint : model::weaken_every_order(file, kScenarios, {}).complaints) {
      ADD_FAILURE() << complaint;
    }
  }
}

}  // namespace
}  // namespace weft::serve
