// SPDX-License-Identifier: MIT
#include "tests/support/model_sites.h"
#include "weft/rt/core/claim.h"
#include <gtest/gtest.h>

namespace weft::rt {
namespace {

// `frame` stands for the frame of the calling coroutine: the called function writes into it, unless the coroutine
// resumed.
void one_begins_and_the_other_gives_up() {
  Claim claim;
  sync::Plain<int> frame = 0;
  bool began = false;
  bool went_on = false;
  model::run_threads(
      [&] {
        if (claim.take()) {
          began = true;
          frame = 1;
        }
      },
      [&] {
        if (claim.take()) {
          went_on = true;
          frame = 2;
        }
      });
  model::require(began != went_on, "both, or neither");
  model::require(frame == (began ? 1 : 2), "written by who did not get it");
}

constexpr model::Scenario kScenarios[] = {{"one_begins_and_the_other_gives_up", one_begins_and_the_other_gives_up}};

TEST(ClaimModel, IsTakenByOneOfThem) {
  for (const model::Scenario& scenario : kScenarios) {
    const model::Outcome outcome = model::explore(scenario.run, scenario.options);
    EXPECT_TRUE(outcome.complete) << scenario.name << ": " << outcome.failure;
  }
}

TEST(ClaimModel, NeedsEveryMemoryOrderItHas) {
  const model::Audit audit = model::weaken_every_order("rt/core/claim.h", kScenarios, {});
  EXPECT_EQ(audit.sites, 1u);  // relaxed already
  for (const std::string& complaint : audit.complaints) {
    ADD_FAILURE() << complaint;
  }
}

}  // namespace
}  // namespace weft::rt
