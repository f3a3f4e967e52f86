// SPDX-License-Identifier: MIT
#include "tests/support/model_sites.h"
#include "tests/support/model_wait.h"
#include "weft/rt/exec/drop_count.h"
#include <gtest/gtest.h>

namespace weft::rt {
namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;

using ModelWait = model::Wait;

// A queue of jobs whose head orders nothing, as that of a pool.
struct Queue {
  static constexpr int kJobs = 2;
  BasicDropCount<ModelWait> drops;
  sync::Atomic<int> head{0};
  sync::Plain<int> destroyed[kJobs] = {0, 0};

  void drop_all() {
    drops.begin();
    int first = head.load(kRelaxed);
    while (first < kJobs) {
      if (head.compare_exchange_strong(first, first + 1, kRelaxed, kRelaxed)) {
        destroyed[first] = 1;
      }
    }
    drops.end();
  }
  void check() {
    for (int i = 0; i < kJobs; ++i) {
      model::require(destroyed[i] == 1, "a job is not destroyed yet");
    }
  }
};

// Another thread finds the queue empty, and reports it; the stopper asks that thread alone.
void a_stop_that_finds_none_sees_every_destruction() {
  Queue queue;
  sync::Atomic<bool> drained{false};
  model::run_threads([&] { queue.drop_all(); },
                     [&] {
                       if (queue.head.load(kRelaxed) == Queue::kJobs) {
                         drained.store(true, std::memory_order_release);
                       }
                     },
                     [&] {
                       if (drained.load(std::memory_order_acquire) && queue.drops.none()) {
                         queue.check();
                       }
                     });
}

void a_stop_waits_for_two_threads_that_drop() {
  Queue queue;
  model::run_threads([&] { queue.drop_all(); }, [&] { queue.drop_all(); },
                     [&] {
                       queue.drop_all();
                       model::require(queue.drops.wait_until_none([] { return Duration(-1); }), "the wait ended early");
                       queue.check();
                     });
}

constexpr model::Scenario kScenarios[] = {
    {"a_stop_that_finds_none_sees_every_destruction",
     a_stop_that_finds_none_sees_every_destruction,
     {.preemptions = 3}},
    {"a_stop_waits_for_two_threads_that_drop", a_stop_waits_for_two_threads_that_drop, {.preemptions = 2}},
};

TEST(DropCountModel, AStopWaitsForEveryDestruction) {
  for (const model::Scenario& scenario : kScenarios) {
    const model::Outcome outcome = model::explore(scenario.run, scenario.options);
    EXPECT_TRUE(outcome.complete) << scenario.name << ": " << outcome.failure;
  }
}

constexpr model::Harmless kHarmless[] = {
    {"begin fetch_add acq_rel -> acquire", "one half is enough within the bound on preemptions; both are free on x86"},
    {"begin fetch_add acq_rel -> release", "the same"},
    {"none fetch_add acq_rel -> acquire", "the same: its release pairs with the acquire of begin()"},
};

TEST(DropCountModel, NeedsEveryMemoryOrderItHas) {
  const model::Audit audit = model::weaken_every_order("rt/exec/drop_count.h", kScenarios, kHarmless);
  EXPECT_EQ(audit.sites, 3u);
  for (const std::string& complaint : audit.complaints) {
    ADD_FAILURE() << complaint;
  }
}

}  // namespace
}  // namespace weft::rt
