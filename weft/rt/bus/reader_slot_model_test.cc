// SPDX-License-Identifier: MIT
#include "tests/support/model_sites.h"
#include "tests/support/model_wait.h"
#include "weft/rt/bus/reader_slot.h"
#include "weft/sync/parker.h"
#include <gtest/gtest.h>

namespace weft::rt {
namespace {

struct ModelWait : model::Wait {
  static constexpr std::size_t kLevels = 2;
};
using Slot = BasicReaderSlot<ModelWait>;

struct Thing {
  sync::Plain<int> value = 0;  // 1 while the thing lives, 0 before and after
};

struct Place {
  Place() {
    things[0].value = 1;
    current.store(&things[0], std::memory_order_release);
  }
  // Stores the next thing, and ends the one before unless a slot still reads it.
  void replace(std::size_t with, std::initializer_list<const Slot*> slots) {
    things[with].value = 1;
    Thing* const old = current.exchange(&things[with], std::memory_order_acq_rel);
    model::heavy_fence(model::Where::current());
    bool read = false;
    for (const Slot* slot : slots) {
      read = read || slot->reads(old);
    }
    if (!read) {
      old->value = 0;
    }
  }
  void read(Slot& slot, int levels = 1) {
    if (Thing* const thing = slot.enter(current); thing != nullptr) {
      if (levels > 1) {
        read(slot, levels - 1);
      }
      model::require(thing->value == 1, "read what has ended");
      slot.leave();
    }
  }

  Thing things[3];
  sync::Atomic<Thing*> current{nullptr};
};

void a_reader_and_a_change() {
  Place place;
  Slot slot;
  model::run_threads([&] { place.read(slot), place.read(slot); }, [&] { place.replace(1, {&slot}); });
}

void a_reader_and_two_changes() {
  Place place;
  Slot slot;
  model::run_threads([&] { place.read(slot); }, [&] { place.replace(1, {&slot}), place.replace(2, {&slot}); });
}

void a_nested_reader_and_a_change() {
  Place place;
  Slot slot;
  model::run_threads([&] { place.read(slot, 2); }, [&] { place.replace(1, {&slot}); });
  model::require(slot.depth() == 0 && !slot.full(), "not left");
}

void two_readers_and_a_change() {
  Place place;
  Slot slots[2];
  model::run_threads([&] { place.read(slots[0]); }, [&] { place.read(slots[1]); },
                     [&] { place.replace(1, {&slots[0], &slots[1]}); });
}

void a_reader_and_the_end() {
  Place place;
  Slot slot;
  model::run_threads([&] { place.read(slot), place.read(slot); },
                     [&] {
                       Thing* const old = place.current.exchange(nullptr, std::memory_order_acq_rel);
                       model::heavy_fence(model::Where::current());
                       if (!slot.reads(old)) {
                         old->value = 0;
                       }
                     });
  model::require(slot.enter(place.current) == nullptr && slot.depth() == 0, "entered nothing");
}

// The fences and the futex of a parker, in the model.

// A remover that sleeps until no reader is left is woken, also by a reader that took its announcement back.
void a_change_waits_for_a_reader() {
  Place place;
  Slot slot;
  sync::BasicParker<ModelWait> quiet;
  model::run_threads(
      [&] {
        place.read(slot);
        quiet.wake();
      },
      [&] {
        Thing* const old = place.current.exchange(nullptr, std::memory_order_acq_rel);
        for (;;) {
          const auto ticket = quiet.announce_futex(true);
          if (!slot.reads(old)) {
            break;
          }
          quiet.sleep(ticket, Duration(-1));
        }
        old->value = 0;
      });
}

constexpr model::Scenario kScenarios[] = {
    {"a_reader_and_a_change", a_reader_and_a_change, {.preemptions = 3}},
    {"a_reader_and_two_changes", a_reader_and_two_changes, {.preemptions = 3}},
    {"a_nested_reader_and_a_change", a_nested_reader_and_a_change, {.preemptions = 3}},
    {"two_readers_and_a_change", two_readers_and_a_change, {.preemptions = 2}},
    {"a_reader_and_the_end", a_reader_and_the_end, {.preemptions = 3}},
    {"a_change_waits_for_a_reader", a_change_waits_for_a_reader, {.preemptions = 3}},
};

TEST(ReaderSlotModel, NothingEndsWhileItIsRead) {
  for (const model::Scenario& scenario : kScenarios) {
    const model::Outcome outcome = model::explore(scenario.run, scenario.options);
    EXPECT_TRUE(outcome.complete) << scenario.name << ": " << outcome.failure;
  }
}

TEST(ReaderSlotModel, NeedsEveryFenceAndMemoryOrderItHas) {
  const model::Audit audit = model::weaken_every_order("rt/bus/reader_slot.h", kScenarios, {});
  EXPECT_EQ(audit.sites, 7u);
  for (const std::string& complaint : audit.complaints) {
    ADD_FAILURE() << complaint;
  }
}

}  // namespace
}  // namespace weft::rt
