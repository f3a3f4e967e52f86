// SPDX-License-Identifier: MIT
#include <array>

#include "tests/support/model_sites.h"
#include "weft/sync/baton.h"
#include "weft/sync/mutex.h"
#include <gtest/gtest.h>

namespace weft::sync {
namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;

// The machine's operations, in the model. Threads have the tokens that the scenario gives them.
struct ModelBaton {
  using Where = model::Where;
  static constexpr std::uint32_t kTakesToBias = 1;
  static constexpr std::uint32_t kTakesToBiasMax = 1;
  static constexpr int kTakesUntilBiased = 2;

  static std::uintptr_t self() { return tokens[static_cast<std::size_t>(model::this_thread())]; }
  static void light_fence(Where where = Where::current()) { model::light_fence(where); }
  static void heavy_fence(Where where = Where::current()) { model::heavy_fence(where); }
  static void futex_wait(Atomic<std::uint32_t>& word, std::uint32_t expected) { (void)word.wait_while_equal(expected); }
  static void futex_wake(Atomic<std::uint32_t>& word) { word.wake_all(); }

  static std::array<std::uintptr_t, 4> tokens;
};
std::array<std::uintptr_t, 4> ModelBaton::tokens;

// The scenario itself has the token of thread `owner`, so that its takes bias the lock towards that thread.
// 0: no bias.
template <typename Lock>
void set_up(Lock& lock, int owner) {
  ModelBaton::tokens = {owner == 0 ? 100u : static_cast<std::uintptr_t>(owner), 1, 2, 3};
  for (int i = 0; owner != 0 && i < ModelBaton::kTakesUntilBiased; ++i) {
    lock();
  }
}

// Work that threads leave for the holder. The word is relaxed on purpose: the baton alone must make it
// visible.
struct Work {
  Atomic<int> published{0};
  Plain<int> done = 0;  // holder only

  void publish() { published.store(1, kRelaxed); }
};

// A side of a connection. `inside` is its plain state, which only the holder touches.
template <std::size_t kWorks, int kOwner>
struct Side {
  Side() {
    const auto take_and_release = [&] { (void)(baton.try_take() && baton.release()); };
    set_up(take_and_release, kOwner);
  }

  BasicBaton<ModelBaton> baton;
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
  // Acts like a sender that either does its work itself or leaves it to the holder.
  void do_or_publish(std::size_t index) {
    if (baton.try_take()) {
      inside = inside + 1;
      works[index].done = 1;
      if (baton.release() && baton.try_take_or_nudge()) {
        run_while_nudged();
      }
    } else {
      publish_and_run(index);
    }
  }
  void check() {
    model::require(!baton.held(), "the baton is left held");
    for (Work& work : works) {
      model::require(work.done == 1, "work is stranded");
    }
  }
};

template <int kOwner>
void two_threads_with_work() {
  Side<2, kOwner> side;
  model::run_threads([&] { side.publish_and_run(0); }, [&] { side.publish_and_run(1); });
  side.check();
}

template <int kOwner>
void three_threads_with_work() {
  Side<3, kOwner> side;
  model::run_threads([&] { side.publish_and_run(0); }, [&] { side.publish_and_run(1); },
                     [&] { side.publish_and_run(2); });
  side.check();
}

template <int kOwner>
void a_thread_with_work_twice_and_a_helper() {
  Side<2, kOwner> side;
  model::run_threads([&] { side.publish_and_run(0), side.publish_and_run(1); },
                     [&] { side.run_if_free(), side.run_if_free(); });
  side.check();
}

template <int kOwner>
void a_sender_and_two_helpers() {
  Side<1, kOwner> side;
  model::run_threads([&] { side.do_or_publish(0); }, [&] { side.run_if_free(); }, [&] { side.run_if_free(); });
  side.check();
}

template <int kOwner>
void a_sender_a_helper_and_a_thread_with_work() {
  Side<2, kOwner> side;
  model::run_threads([&] { side.do_or_publish(0); }, [&] { side.run_if_free(); }, [&] { side.publish_and_run(1); });
  side.check();
}

// The holder acts on a nudge without taking the baton again: it sees the work that was published before the
// nudge.
template <int kOwner>
void a_nudge_is_acted_on_after_release() {
  Atomic<int> published{0};
  Side<1, kOwner> side;
  model::run_threads(
      [&] {
        if (side.baton.try_take() && side.baton.release()) {
          model::require(published.load(kRelaxed) == 1, "a nudge is seen but not what came before it");
        }
      },
      [&] {
        published.store(1, kRelaxed);
        if (side.baton.try_take_or_nudge()) {
          (void)side.baton.release();
        }
      });
}

// The same after a third thread has ended the bias.
void a_nudge_behind_the_end_of_a_bias() {
  Atomic<int> published{0};
  Side<1, 1> side;
  model::run_threads(
      [&] {
        if (side.baton.try_take() && side.baton.release()) {
          model::require(published.load(kRelaxed) == 1, "a nudge is seen but not what came before it");
        }
      },
      [&] { (void)(side.baton.try_take() && side.baton.release()); },
      [&] {
        published.store(1, kRelaxed);
        if (side.baton.try_take_or_nudge()) {
          (void)side.baton.release();
        }
      });
}

// A thread that holds the baton by the bias and nudges itself finds the nudge in release().
void a_nudge_to_oneself() {
  Side<1, 1> side;
  model::run_threads(
      [&] {
        if (side.baton.try_take()) {
          side.works[0].publish();
          model::require(!side.baton.try_take_or_nudge(), "a holder is let in again");
          side.run_while_nudged();
        }
      },
      [&] { side.run_if_free(); });
}

// Each thread locks; kOwner chooses the thread that the mutex is biased towards.
template <int kOwner, int kThreads>
void a_mutex() {
  BasicMutex<ModelBaton> mutex;
  Plain<int> inside = 0;
  const auto add = [&] {
    mutex.lock();
    inside = inside + 1;
    mutex.unlock();
  };
  set_up(add, kOwner);
  const int before = inside;
  const auto add_twice = [&] { add(), add(); };
  if constexpr (kThreads == 2) {
    model::run_threads(add_twice, add);
  } else {
    model::run_threads(add, add, add);
  }
  model::require(inside == before + 3, "somebody was not let in");
}

constexpr model::Scenario kScenarios[] = {
    {"two_threads_with_work", two_threads_with_work<0>, {.preemptions = 3}},
    {"two_threads_with_work biased", two_threads_with_work<1>, {.preemptions = 3}},
    {"a_thread_with_work_twice_and_a_helper", a_thread_with_work_twice_and_a_helper<0>, {.preemptions = 3}},
    {"a_thread_with_work_twice_and_a_helper biased", a_thread_with_work_twice_and_a_helper<1>, {.preemptions = 3}},
    {"a_thread_with_work_twice_and_a_helper biased towards it",
     a_thread_with_work_twice_and_a_helper<2>,
     {.preemptions = 3}},
    {"a_nudge_is_acted_on_after_release", a_nudge_is_acted_on_after_release<0>, {.preemptions = 3}},
    {"a_nudge_is_acted_on_after_release biased", a_nudge_is_acted_on_after_release<1>, {.preemptions = 3}},
    {"a_nudge_behind_the_end_of_a_bias", a_nudge_behind_the_end_of_a_bias, {.preemptions = 2}},
    {"a_nudge_to_oneself", a_nudge_to_oneself, {.preemptions = 3}},
    {"a_mutex", a_mutex<0, 2>, {.preemptions = 3}},
    {"a_mutex biased", a_mutex<1, 2>, {.preemptions = 3}},
    {"three_threads_with_work", three_threads_with_work<0>, {.preemptions = 2}},
    {"three_threads_with_work biased", three_threads_with_work<1>, {.preemptions = 2}},
    {"a_sender_and_two_helpers biased", a_sender_and_two_helpers<1>, {.preemptions = 2}},
    {"a_sender_a_helper_and_a_thread_with_work biased",
     a_sender_a_helper_and_a_thread_with_work<1>,
     {.preemptions = 2}},
    {"a_mutex of three", a_mutex<0, 3>, {.preemptions = 2}},
    {"a_mutex of three biased", a_mutex<1, 3>, {.preemptions = 1}},
};

TEST(BatonModel, HasOneHolderAndStrandsNoWork) {
  for (const model::Scenario& scenario : kScenarios) {
    const model::Outcome outcome = model::explore(scenario.run, scenario.options);
    EXPECT_TRUE(outcome.complete) << scenario.name << ": " << outcome.failure;
  }
}

constexpr model::Harmless kHarmless[] = {
    {"enter load#3 acquire -> relaxed",
     "a seat changes hands only with its thread's token, and that with memory which the system handed over; the "
     "sanitizer does not know"},
};

TEST(BatonModel, NeedsEveryMemoryOrderItHas) {
  const model::Audit audit = model::weaken_every_order("sync/baton.h", kScenarios, kHarmless);
  EXPECT_EQ(audit.sites, 26u);
  for (const std::string& complaint : audit.complaints) {
    ADD_FAILURE() << complaint;
  }
}

}  // namespace
}  // namespace weft::sync
