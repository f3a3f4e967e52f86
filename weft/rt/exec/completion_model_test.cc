// SPDX-License-Identifier: MIT
#include "tests/support/model_sites.h"
#include "weft/rt/exec/completion.h"
#include <gtest/gtest.h>

namespace weft::rt {
namespace {

struct ModelCompletion {
  static sys::FutexResult futex_wait(sync::Atomic<std::uint32_t>& word, std::uint32_t expected, Duration /*timeout*/) {
    return word.wait_while_equal(expected) ? sys::FutexResult::woken : sys::FutexResult::changed;
  }
  static void futex_wake(sync::Atomic<std::uint32_t>& word) { word.wake_all(); }
};
using Word = BasicCompletion<ModelCompletion>;

// The block that the two sides share; `value` belongs to the job until it is complete.
struct Shared {
  Word word;
  sync::Plain<int> value = 0;
  sync::Plain<int> continuation = 0;
  sync::Plain<int> freed = 0;
  sync::Atomic<int> resumed{0};

  void complete() {
    value = 7;
    switch (word.complete()) {
      case Word::Next::free: free(); break;
      case Word::Next::resume:
        model::require(continuation == 1, "resumed what was not stored");
        model::require(resumed.fetch_add(1, std::memory_order_relaxed) == 0, "resumed twice");
        break;
      case Word::Next::nothing: break;
    }
  }
  void free() {
    model::require(value == 7, "freed before the result");
    freed = freed + 1;
  }
  void leave() {
    if (word.leave()) {
      free();
    }
  }
};

void a_thread_waits() {
  Shared shared;
  model::run_threads([&] { shared.complete(); },
                     [&] {
                       while (!shared.word.ready()) {
                         (void)shared.word.sleep(Duration(-1));
                       }
                       model::require(shared.value == 7, "ready without the result");
                       shared.leave();
                     });
  model::require(shared.freed == 1, "not freed, or twice");
}

void the_future_leaves() {
  Shared shared;
  model::run_threads([&] { shared.complete(); },
                     [&] {
                       shared.continuation = 1;  // its last use of the block
                       shared.leave();
                     });
  model::require(shared.freed == 1, "not freed, or twice");
  model::require(shared.continuation == 1, "");
}

// The side that frees sees everything that the other side wrote.
void the_future_leaves_what_it_wrote() {
  Shared shared;
  model::run_threads(
      [&] {
        shared.value = 7;
        if (shared.word.complete() == Word::Next::free) {
          model::require(shared.continuation == 1, "freed before the future's last use");
        }
      },
      [&] {
        shared.continuation = 1;
        if (shared.word.leave()) {
          model::require(shared.value == 7, "freed before the result");
        }
      });
}

void a_coroutine_continues() {
  Shared shared;
  bool suspended = false;
  model::run_threads([&] { shared.complete(); },
                     [&] {
                       shared.continuation = 1;
                       suspended = shared.word.try_continue();
                       if (!suspended) {
                         model::require(shared.value == 7, "ready without the result");
                       }
                     });
  model::require(shared.resumed.load(std::memory_order_relaxed) == (suspended ? 1 : 0), "stranded, or resumed twice");
}

void a_thread_gives_up_and_a_coroutine_continues() {
  Shared shared;
  bool suspended = false;
  model::run_threads([&] { shared.complete(); },
                     [&] {
                       (void)shared.word.sleep(Duration(-1));
                       shared.continuation = 1;
                       suspended = shared.word.try_continue();
                     });
  model::require(shared.resumed.load(std::memory_order_relaxed) == (suspended ? 1 : 0), "stranded, or resumed twice");
}

void a_coroutine_gives_up() {
  Shared shared;
  bool withdrawn = false;
  model::run_threads([&] { shared.complete(); },
                     [&] {
                       shared.continuation = 1;
                       if (shared.word.try_continue()) {
                         withdrawn = shared.word.try_withdraw();
                         if (withdrawn) {
                           shared.continuation = 2;  // a race if the job side still reads it
                           shared.leave();
                         }
                       }
                     });
  if (withdrawn) {
    model::require(shared.resumed.load(std::memory_order_relaxed) == 0, "resumed though withdrawn");
    model::require(shared.freed == 1, "not freed, or twice");
  }
}

constexpr model::Scenario kScenarios[] = {
    {"a_thread_waits", a_thread_waits},
    {"the_future_leaves", the_future_leaves},
    {"the_future_leaves_what_it_wrote", the_future_leaves_what_it_wrote},
    {"a_coroutine_continues", a_coroutine_continues},
    {"a_coroutine_gives_up", a_coroutine_gives_up},
    {"a_thread_gives_up_and_a_coroutine_continues", a_thread_gives_up_and_a_coroutine_continues},
};

TEST(CompletionModel, StrandsNobodyAndFreesOnce) {
  for (const model::Scenario& scenario : kScenarios) {
    const model::Outcome outcome = model::explore(scenario.run, scenario.options);
    EXPECT_TRUE(outcome.complete) << scenario.name << ": " << outcome.failure;
  }
}

TEST(CompletionModel, NeedsEveryMemoryOrderItHas) {
  const model::Audit audit = model::weaken_every_order("rt/exec/completion.h", kScenarios, {});
  EXPECT_EQ(audit.sites, 6u);
  for (const std::string& complaint : audit.complaints) {
    ADD_FAILURE() << complaint;
  }
}

}  // namespace
}  // namespace weft::rt
