// SPDX-License-Identifier: MIT
#include "tests/support/model_sites.h"
#include "weft/sync/atomic_counted.h"
#include <gtest/gtest.h>

namespace weft::sync {
namespace {

struct Object;
struct Disposal {
  static void dispose(Object* object) noexcept;
};

// Lives on the scenario's stack. "Disposal" is a write to the member that the holders wrote.
struct Object : AtomicCounted<Object, Disposal> {
  using AtomicCounted::revive;

  Plain<int> value = 0;
  Plain<int> disposals = 0;
  bool kept = false;  // the disposer keeps the object, as a pool does
};

void Disposal::dispose(Object* object) noexcept {
  object->value = -1;
  object->disposals = object->disposals + 1;
  if (object->kept) {
    object->revive();
  }
}

using Ptr = IntrusivePtr<Object>;

void check(const Object& object) { model::require(object.disposals == 1, "not disposed of once"); }

void each_drops_its_own() {
  Object object;
  Ptr first = Ptr::adopt(&object);
  Ptr second = first;
  Ptr third = first;
  const auto read_and_drop = [](Ptr& mine) {
    model::require(mine->value == 0, "used after its end");
    mine.reset();
  };
  model::run_threads([&] { read_and_drop(first); }, [&] { read_and_drop(second); }, [&] { read_and_drop(third); });
  check(object);
}

void copies_are_made_and_dropped() {
  Object object;
  Ptr first = Ptr::adopt(&object);
  Ptr second = first;
  const auto copy_and_drop = [](Ptr& mine) {
    Ptr copy = mine;
    mine.reset();
    model::require(copy->value == 0, "used after its end");
    copy.reset();
  };
  model::run_threads([&] { copy_and_drop(first); }, [&] { copy_and_drop(second); });
  check(object);
}

void a_sole_owner_may_write() {
  Object object;
  Ptr first = Ptr::adopt(&object);
  Ptr second = first;
  model::run_threads(
      [&] {
        if (first->sole_owner()) {
          first->value = 1;
        }
        first.reset();
      },
      [&] {
        (void)int{second->value};
        second.reset();
      });
  check(object);
}

// Its next user finds one reference.
void a_kept_object_is_used_again() {
  Object object;
  object.kept = true;
  Ptr first = Ptr::adopt(&object);
  Ptr second = first;
  model::run_threads([&] { first.reset(); }, [&] { second.reset(); });
  check(object);
  first = Ptr::adopt(&object);
  model::require(first->sole_owner(), "it has another number of references than one");
  second = first;
  model::run_threads([&] { first.reset(); }, [&] { second.reset(); });
  model::require(object.disposals == 2, "not disposed of once more");
}

constexpr model::Scenario kScenarios[] = {
    {"each_drops_its_own", each_drops_its_own, {}},
    {"copies_are_made_and_dropped", copies_are_made_and_dropped, {}},
    {"a_sole_owner_may_write", a_sole_owner_may_write, {}},
    {"a_kept_object_is_used_again", a_kept_object_is_used_again, {}},
};

TEST(AtomicCountedModel, DisposesOnceAndLast) {
  for (const model::Scenario& scenario : kScenarios) {
    const model::Outcome outcome = model::explore(scenario.run, scenario.options);
    EXPECT_TRUE(outcome.complete) << scenario.name << ": " << outcome.failure;
  }
}

TEST(AtomicCountedModel, NeedsEveryMemoryOrderItHas) {
  const model::Audit audit = model::weaken_every_order("sync/atomic_counted.h", kScenarios, {});
  EXPECT_EQ(audit.sites, 6u);
  for (const std::string& complaint : audit.complaints) {
    ADD_FAILURE() << complaint;
  }
}

}  // namespace
}  // namespace weft::sync
