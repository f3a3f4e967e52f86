// SPDX-License-Identifier: MIT
#include "tests/support/model_sites.h"
#include "weft/rt/exec/worker_gate.h"
#include <gtest/gtest.h>

namespace weft::rt {
namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;

// The system's fence and futex, in the model. A futex wakes but orders nothing; a limit may be over at once.
struct ModelGate {
  using Where = model::Where;
  static void full_fence(Where where = Where::current()) { model::fence(std::memory_order_seq_cst, where); }
  static sys::FutexResult futex_wait(sync::Atomic<std::uint32_t>& word, Duration limit) {
    if (limit >= Duration::zero() && model::choose(2) == 1) {
      return sys::FutexResult::timed_out;
    }
    return word.wait_while_equal(0) ? sys::FutexResult::woken : sys::FutexResult::changed;
  }
  static void futex_wake(sync::Atomic<std::uint32_t>& word, int /*count*/) { word.wake_all(); }
};
using Gate = BasicWorkerGate<ModelGate>;

// Work in relaxed words on purpose: the gate alone must make it seen in time.
struct Pool {
  Gate gate;
  sync::Atomic<int> brought{0};
  sync::Atomic<int> taken{0};
  int wakes = 0;
  unsigned workers_max = 0;

  void bring() {
    brought.fetch_add(1, kRelaxed);
    notify();
  }
  void notify() {
    const auto told = gate.notify(workers_max);
    if (told == Gate::Notified::start) {
      gate.undo_start();  // as if no thread could be started
      (void)gate.notify(0);
    }
  }
  [[nodiscard]] bool ready() { return taken.load(kRelaxed) < brought.load(kRelaxed); }
  [[nodiscard]] bool try_take() {
    int old = taken.load(kRelaxed);
    while (old < brought.load(kRelaxed)) {
      if (taken.compare_exchange_strong(old, old + 1, kRelaxed, kRelaxed)) {
        return true;
      }
    }
    return false;
  }
  // A worker that takes `works` pieces of work and then is busy for good. It starts as a searcher.
  void work(int works) {
    bool searches = true;
    while (works > 0) {
      if (try_take()) {
        if (searches) {
          searches = false;
          gate.stop_searching();
          if (ready()) {
            notify();
          }
        }
        --works;
        continue;
      }
      if (!searches && gate.start_searching()) {
        searches = true;
        continue;
      }
      (void)gate.announce(searches);
      if (ready()) {
        gate.stay_awake();
      } else {
        (void)gate.sleep(Duration(-1), 0);
      }
      searches = true;
    }
  }
  // A worker as a pool has it, which ends once the gate is closed.
  void work_until_closed(Duration limit, unsigned workers_min) {
    for (;;) {
      while (try_take()) {
      }
      if (!gate.announce(true)) {
        gate.stay_awake();
        break;
      }
      if (ready()) {
        gate.stay_awake();
      } else if (gate.sleep(limit, workers_min) == Gate::Slept::left) {
        return;
      }
    }
    while (try_take()) {
    }
    (void)gate.leave(true);
  }
};

void one_worker_and_work_twice() {
  Pool pool;
  pool.gate.add_worker();
  model::run_threads([&] { pool.bring(), pool.bring(); }, [&] { pool.work(2); });
}

void two_bring_to_one_worker() {
  Pool pool;
  pool.gate.add_worker();
  model::run_threads([&] { pool.bring(); }, [&] { pool.bring(); }, [&] { pool.work(2); });
}

// The worker that takes one piece is busy for good: the other piece must not wait for that worker.
void two_workers_share_a_burst() {
  Pool pool;
  pool.gate.add_worker();
  pool.gate.add_worker();
  model::run_threads([&] { pool.bring(), pool.bring(); }, [&] { pool.work(1); }, [&] { pool.work(1); });
}

void a_start_that_fails_strands_nothing() {
  Pool pool;
  pool.workers_max = 2;
  pool.gate.add_worker();
  model::run_threads([&] { pool.bring(); }, [&] { pool.bring(); }, [&] { pool.work(2); });
}

void a_close_ends_every_sleep() {
  Pool pool;
  pool.gate.add_worker();
  pool.gate.add_worker();
  model::run_threads([&] { pool.gate.close(); }, [&] { pool.work_until_closed(Duration(-1), 0); },
                     [&] { pool.work_until_closed(Duration(-1), 0); });
  model::require(pool.gate.workers() == 0, "a worker is left");
}

// Work comes at the moment in which one sleeper may leave.
void a_sleeper_leaves_while_work_comes() {
  Pool pool;
  pool.gate.add_worker();
  pool.gate.add_worker();
  model::run_threads(
      [&] {
        pool.bring();
        pool.gate.close();
      },
      [&] { pool.work_until_closed(Duration(1), 1); }, [&] { pool.work_until_closed(Duration(1), 1); });
  model::require(pool.gate.workers() == 0, "a worker is left");
  model::require(!pool.ready(), "work is stranded");
}

// A thread that reads workers() == 0 sees the writes of the workers, and so does the last worker.
template <bool kAsleep>
void the_end_of_workers_publishes_what_they_did() {
  Gate gate;
  gate.add_worker();
  gate.add_worker();
  sync::Plain<int> done[2] = {0, 0};
  sync::Plain<int> seen = 0;
  const auto worker = [&](int index) {
    done[index] = 1;
    if constexpr (kAsleep) {
      if (!gate.announce(true)) {
        gate.stay_awake();
      } else if (gate.sleep(Duration(1), 0) == Gate::Slept::left) {
        return;
      }
    }
    if (gate.leave(true)) {
      seen = done[0] + done[1];
    }
  };
  model::run_threads([&] { worker(0); }, [&] { worker(1); },
                     [&] {
                       if (kAsleep) {
                         gate.close();
                       }
                       if (gate.workers() == 0) {
                         model::require(done[0] + done[1] == 2, "a worker's last deed is not seen");
                       }
                     });
}

constexpr model::Scenario kScenarios[] = {
    {"one_worker_and_work_twice", one_worker_and_work_twice, {.preemptions = 2}},
    {"two_bring_to_one_worker", two_bring_to_one_worker, {.preemptions = 1}},
    {"two_workers_share_a_burst", two_workers_share_a_burst, {.preemptions = 1}},
    {"a_start_that_fails_strands_nothing", a_start_that_fails_strands_nothing, {.preemptions = 1}},
    {"a_close_ends_every_sleep", a_close_ends_every_sleep, {.preemptions = 2}},
    {"a_sleeper_leaves_while_work_comes", a_sleeper_leaves_while_work_comes, {.preemptions = 1}},
    {"the_end_of_workers_publishes_what_they_did",
     the_end_of_workers_publishes_what_they_did<false>,
     {.preemptions = 2}},
    {"the_end_of_workers_publishes_what_they_did asleep",
     the_end_of_workers_publishes_what_they_did<true>,
     {.preemptions = 2}},
};

TEST(WorkerGateModel, StrandsNoWork) {
  for (const model::Scenario& scenario : kScenarios) {
    const model::Outcome outcome = model::explore(scenario.run, scenario.options);
    EXPECT_TRUE(outcome.complete) << scenario.name << ": " << outcome.failure;
  }
}

constexpr model::Harmless kHarmless[] = {
    {"leave_asleep compare_exchange release -> relaxed",
     "behind announce()'s fence a relaxed store publishes as much; the sanitizer does not follow fences"},
};

TEST(WorkerGateModel, NeedsEveryFenceAndMemoryOrderItHas) {
  const model::Audit audit = model::weaken_every_order("rt/exec/worker_gate.h", kScenarios, kHarmless);
  EXPECT_EQ(audit.sites, 23u);
  for (const std::string& complaint : audit.complaints) {
    ADD_FAILURE() << complaint;
  }
}

}  // namespace
}  // namespace weft::rt
