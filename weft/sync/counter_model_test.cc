// SPDX-License-Identifier: MIT
#include "tests/support/model_sites.h"
#include "weft/sync/counter.h"
#include <gtest/gtest.h>

namespace weft::sync {
namespace {

void a_reader_sees_numbers_that_were_there_in_their_order() {
  Counter counter;
  model::run_threads([&] { counter.add(), counter.add(2); },
                     [&] {
                       const std::uint64_t first = counter.value();
                       const std::uint64_t second = counter.value();
                       model::require(first <= second, "a counter went back");
                       model::require((first == 0 || first == 1 || first == 3) && second <= 3, "a number from nowhere");
                     });
  model::require(counter.value() == 3, "a count is lost");
}

constexpr model::Scenario kScenarios[] = {
    {"a_reader_sees_numbers_that_were_there_in_their_order", a_reader_sees_numbers_that_were_there_in_their_order},
};

TEST(CounterModel, ReadersSeeItGrow) {
  for (const model::Scenario& scenario : kScenarios) {
    const model::Outcome outcome = model::explore(scenario.run, scenario.options);
    EXPECT_TRUE(outcome.complete) << scenario.name << ": " << outcome.failure;
  }
}

TEST(CounterModel, NeedsEveryMemoryOrderItHas) {
  const model::Audit audit = model::weaken_every_order("sync/counter.h", kScenarios, {});
  EXPECT_EQ(audit.sites, 2u);
  for (const std::string& complaint : audit.complaints) {
    ADD_FAILURE() << complaint;
  }
}

}  // namespace
}  // namespace weft::sync
