// SPDX-License-Identifier: MIT
#include <mutex>
#include <optional>

#include "tests/support/model_sites.h"
#include "tests/support/model_wait.h"
#include "weft/sync/parker.h"
#include <gtest/gtest.h>

namespace weft::sync {
namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;
constexpr Duration kNoLimit = Duration(-1);

// The machine's operations, in the model. A futex and a descriptor wake but order nothing.
using ModelWait = model::Wait;

// Messages that sleepers wait for, in relaxed words on purpose: the parker alone must make them visible in time.
struct Place {
  BasicParker<ModelWait> parker;
  Atomic<int> posted{0};
  Atomic<int> taken{0};
  std::optional<ModelWait::Event> list;
  model::Mutex mutex;  // of sleepers that ask for fences

  void post_and_wake(bool heavy) {
    posted.fetch_add(1, kRelaxed);
    heavy ? parker.wake() : parker.wake_with_fence();
  }
  [[nodiscard]] bool try_take() {
    int old = taken.load(kRelaxed);
    while (old < posted.load(kRelaxed)) {
      if (taken.compare_exchange_strong(old, old + 1, kRelaxed, kRelaxed)) {
        return true;
      }
    }
    return false;
  }

  template <typename Look>
  void sleep_on_futex_until(Look look, bool heavy) {
    for (;;) {
      const auto ticket = parker.announce_futex(heavy);
      if (look()) {
        return;
      }
      parker.sleep(ticket, kNoLimit);
      if (look()) {
        return;
      }
    }
  }
  template <typename Look>
  void sleep_in_poll_until(Look look, bool heavy) {
    model::Event event;
    ModelWait::Event::Sleeper sleeper{&event};
    list->add(sleeper);
    for (;;) {
      parker.announce_poll(&*list, heavy);
      if (look()) {
        break;
      }
      event.wait();
      if (look()) {
        break;
      }
    }
    list->remove(sleeper);
    model::require(!list->take_rung(sleeper) || posted.load(kRelaxed) > 0, "rung for nothing");
  }
  template <typename Look>
  void sleep_as_asked_until(Look look, bool fences) {
    for (;;) {
      BasicParker<ModelWait>::Ticket ticket = 0;
      {
        const std::lock_guard lock(mutex);
        ticket = parker.announce_futex(parker.ask_for_fences(fences));
      }
      if (look()) {
        return;
      }
      parker.sleep(ticket, kNoLimit);
      if (look()) {
        return;
      }
    }
  }
  [[nodiscard]] auto seen(int count) {
    return [this, count] { return posted.load(kRelaxed) >= count; };
  }
};

template <bool kHeavy>
void a_futex_sleeper() {
  Place place;
  model::run_threads([&] { place.post_and_wake(kHeavy); }, [&] { place.sleep_on_futex_until(place.seen(1), kHeavy); });
}

template <bool kHeavy>
void a_poll_sleeper() {
  Place place;
  model::run_threads([&] { place.post_and_wake(kHeavy); },
                     [&] {
                       place.list.emplace();
                       place.sleep_in_poll_until(place.seen(1), kHeavy);
                     });
}

// Each sleeper has an event of its own, and both learn of the one message.
template <bool kHeavy>
void two_poll_sleepers() {
  Place place;
  place.list.emplace();
  const auto sleeper = [&] { place.sleep_in_poll_until(place.seen(1), kHeavy); };
  model::run_threads([&] { place.post_and_wake(kHeavy); }, sleeper, sleeper);
}

template <bool kHeavy>
void two_wakers() {
  Place place;
  model::run_threads([&] { place.post_and_wake(kHeavy); }, [&] { place.post_and_wake(kHeavy); },
                     [&] { place.sleep_on_futex_until(place.seen(2), kHeavy); });
}

// Both sleepers must learn of the one message.
template <bool kHeavy>
void a_futex_and_a_poll_sleeper() {
  Place place;
  place.list.emplace();
  model::run_threads([&] { place.post_and_wake(kHeavy); }, [&] { place.sleep_on_futex_until(place.seen(1), kHeavy); },
                     [&] { place.sleep_in_poll_until(place.seen(1), kHeavy); });
}

// Each sleeper takes one of the two messages.
template <bool kHeavy>
void two_sleepers_share_messages() {
  Place place;
  const auto receiver = [&] { place.sleep_on_futex_until([&] { return place.try_take(); }, kHeavy); };
  model::run_threads([&] { place.post_and_wake(kHeavy), place.post_and_wake(kHeavy); }, receiver, receiver);
  model::require(place.taken.load(kRelaxed) == 2, "a message is lost");
}

// A sleeper whose time is up leaves its announcement behind.
template <bool kHeavy>
void a_sleeper_beside_one_that_gives_up() {
  Place place;
  model::run_threads([&] { place.post_and_wake(kHeavy); }, [&] { (void)place.parker.announce_futex(kHeavy); },
                     [&] { place.sleep_on_futex_until(place.seen(1), kHeavy); });
}

// The wakers fence while the sleeper asks for it: not before the first message, and not after the second.
void a_sleeper_that_asks_for_fences_and_no_more() {
  Place place;
  model::run_threads(
      [&] {
        for (int i = 0; i < 3; ++i) {
          place.posted.fetch_add(1, kRelaxed);
          place.parker.wake_as_asked();
        }
      },
      [&] {
        place.sleep_as_asked_until(place.seen(1), true);
        place.sleep_as_asked_until(place.seen(2), true);
        place.sleep_as_asked_until(place.seen(3), false);
      });
}

// The waker that needs no fence for the second sleeper finds the first one, whose fence was a light one.
void a_sleeper_beside_one_that_asks_for_no_more_fences() {
  Place place;
  (void)place.parker.ask_for_fences(true);
  model::run_threads(
      [&] {
        place.posted.fetch_add(1, kRelaxed);
        place.parker.wake_as_asked();
      },
      [&] { place.sleep_as_asked_until(place.seen(1), true); },
      [&] {
        const std::lock_guard lock(place.mutex);
        (void)place.parker.announce_futex(place.parker.ask_for_fences(false));
      });
}

constexpr model::Scenario kScenarios[] = {
    {"a_sleeper_that_asks_for_fences_and_no_more", a_sleeper_that_asks_for_fences_and_no_more, {.preemptions = 2}},
    {"a_sleeper_beside_one_that_asks_for_no_more_fences",
     a_sleeper_beside_one_that_asks_for_no_more_fences,
     {.preemptions = 2}},
    {"a_futex_sleeper heavy", a_futex_sleeper<true>},
    {"a_futex_sleeper", a_futex_sleeper<false>},
    {"a_poll_sleeper heavy", a_poll_sleeper<true>},
    {"a_poll_sleeper", a_poll_sleeper<false>},
    {"a_sleeper_beside_one_that_gives_up heavy", a_sleeper_beside_one_that_gives_up<true>},
    {"a_sleeper_beside_one_that_gives_up", a_sleeper_beside_one_that_gives_up<false>},
    {"a_futex_and_a_poll_sleeper heavy", a_futex_and_a_poll_sleeper<true>, {.preemptions = 2}},
    {"a_futex_and_a_poll_sleeper", a_futex_and_a_poll_sleeper<false>, {.preemptions = 2}},
    {"two_poll_sleepers heavy", two_poll_sleepers<true>, {.preemptions = 2}},
    {"two_poll_sleepers", two_poll_sleepers<false>, {.preemptions = 2}},
    {"two_wakers heavy", two_wakers<true>, {.preemptions = 3}},
    {"two_wakers", two_wakers<false>, {.preemptions = 3}},
    {"two_sleepers_share_messages heavy", two_sleepers_share_messages<true>, {.preemptions = 2}},
    {"two_sleepers_share_messages", two_sleepers_share_messages<false>, {.preemptions = 2}},
};

TEST(ParkerModel, LosesNoWakeUp) {
  for (const model::Scenario& scenario : kScenarios) {
    const model::Outcome outcome = model::explore(scenario.run, scenario.options);
    EXPECT_TRUE(outcome.complete) << scenario.name << ": " << outcome.failure;
  }
}

TEST(ParkerModel, NeedsEveryFenceAndMemoryOrderItHas) {
  const model::Audit audit = model::weaken_every_order("sync/parker.h", kScenarios, {});
  EXPECT_EQ(audit.sites, 17u);
  for (const std::string& complaint : audit.complaints) {
    ADD_FAILURE() << complaint;
  }
}

}  // namespace
}  // namespace weft::sync
