// SPDX-License-Identifier: MIT
#include "tests/support/model_sites.h"
#include "weft/sync/baton.h"
#include <gtest/gtest.h>

namespace weft::sync {
namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;

// Work: what threads leave for the holder. The word is relaxed on purpose: the baton alone must make it visible.
struct Work {
  Atomic<int> published{0};
  Plain<int> done = 0;  // holder only

  void publish() { published.store(1, kRelaxed); }
};

// A side of a connection: `inside` is its plain state, touched only by the holder.
template <std::size_t kWorks>
struct Side {
  Baton baton;
  Plain<int> inside = 0;
  Work works[kWorks];

  void run() {
    inside = inside + 1;
    for (Work& work : works) {
      if (work.done == 0 && work.published.load(kRelaxed) == 1) {
        work.done = 1;
      }
    }
  }
  void run_while_nudged() {
    do {
      run();
    } while (baton.release() && baton.try_take_or_nudge());
  }
  void publish_and_run(std::size_t index) {
    works[index].publish();
    if (baton.try_take_or_nudge()) {
      run_while_nudged();
    }
  }
  void run_if_free() {
    if (baton.try_take()) {
      run_while_nudged();
    }
  }
  void check() {
    model::require(!baton.held(), "the baton is left held");
    for (Work& work : works) {
      model::require(work.done == 1, "work is stranded");
    }
  }
};

void two_threads_with_work() {
  Side<2> side;
  model::run_threads([&] { side.publish_and_run(0); }, [&] { side.publish_and_run(1); });
  side.check();
}

void three_threads_with_work() {
  Side<3> side;
  model::run_threads([&] { side.publish_and_run(0); }, [&] { side.publish_and_run(1); },
                     [&] { side.publish_and_run(2); });
  side.check();
}

void a_thread_with_work_twice_and_a_helper() {
  Side<2> side;
  model::run_threads([&] { side.publish_and_run(0), side.publish_and_run(1); },
                     [&] { side.run_if_free(), side.run_if_free(); });
  side.check();
}

// The holder acts on a nudge without taking the baton again: what was published before the nudge is visible to it.
void a_nudge_is_acted_on_after_release() {
  Baton baton;
  Atomic<int> published{0};
  model::run_threads(
      [&] {
        if (baton.try_take() && baton.release()) {
          model::require(published.load(kRelaxed) == 1, "a nudge is seen but not what came before it");
        }
      },
      [&] {
        published.store(1, kRelaxed);
        if (baton.try_take_or_nudge()) {
          (void)baton.release();
        }
      });
}

constexpr model::Scenario kScenarios[] = {
    {"two_threads_with_work", two_threads_with_work},
    {"a_thread_with_work_twice_and_a_helper", a_thread_with_work_twice_and_a_helper},
    {"a_nudge_is_acted_on_after_release", a_nudge_is_acted_on_after_release},
    {"three_threads_with_work", three_threads_with_work},
};

TEST(BatonModel, HasOneHolderAndStrandsNoWork) {
  for (const model::Scenario& scenario : kScenarios) {
    const model::Outcome outcome = model::explore(scenario.run, scenario.options);
    EXPECT_TRUE(outcome.complete) << scenario.name << ": " << outcome.failure;
  }
}

TEST(BatonModel, NeedsEveryMemoryOrderItHas) {
  const model::Audit audit = model::weaken_every_order("sync/baton.h", kScenarios, {});
  EXPECT_EQ(audit.sites, 6u);
  for (const std::string& complaint : audit.complaints) {
    ADD_FAILURE() << complaint;
  }
}

}  // namespace
}  // namespace weft::sync
