// SPDX-License-Identifier: MIT
#include "tests/support/model_sites.h"
#include "weft/sync/call_list.h"
#include <gtest/gtest.h>

namespace weft::sync {
namespace {

using List = CallList<int>;

struct Called {
  List list;
  struct Caller {
    List::Entry entry;
    Plain<int> wish = 0;  // written before add(), read by the visit
    int seen = 0;
    int visits = 0;
  };
  Caller callers[2];

  void call(int index, int wish) {
    callers[index].wish = wish;
    (void)list.add(callers[index].entry, index);
  }
  void visit() {
    list.take_all([&](int index) {
      callers[index].seen = callers[index].wish;
      ++callers[index].visits;
    });
  }
};

void two_callers_and_the_called() {
  Called called;
  model::run_threads([&] { called.call(0, 1); }, [&] { called.call(1, 2); }, [&] { called.visit(); });
  called.visit();
  for (int i = 0; i < 2; ++i) {
    model::require(called.callers[i].seen == i + 1, "a wish is missed");
    model::require(called.callers[i].visits == 1, "an entry is lost or comes twice");
  }
}

// Two threads make wishes with one entry, and one of them finds it in the list. A visit sees both threads'
// writes.
void one_entry_two_callers() {
  List list;
  List::Entry entry;
  Atomic<int> wishes[2] = {0, 0};
  bool seen[2] = {false, false};
  const auto visit = [&](int) {
    for (int i = 0; i < 2; ++i) {
      // Relaxed: the test checks that the list alone orders it.
      seen[i] = seen[i] || wishes[i].load(std::memory_order_relaxed) != 0;
    }
  };
  const auto call = [&](int index) {
    wishes[index].store(1, std::memory_order_relaxed);
    (void)list.add(entry, 0);
  };
  model::run_threads([&] { call(0); }, [&] { call(1); }, [&] { list.take_all(visit); });
  list.take_all(visit);
  model::require(seen[0] && seen[1], "a wish is missed");
}

// An entry is added again while the visit of the same entry runs.
void an_entry_comes_again() {
  Called called;
  model::run_threads(
      [&] {
        (void)called.list.add(called.callers[0].entry, 0);
        (void)called.list.add(called.callers[0].entry, 0);
      },
      [&] { called.list.take_all([&](int index) { ++called.callers[index].visits; }); });
  called.list.take_all([&](int index) { ++called.callers[index].visits; });
  model::require(called.callers[0].visits == 1 || called.callers[0].visits == 2, "an entry is lost");
}

constexpr model::Scenario kScenarios[] = {
    {"two_callers_and_the_called", two_callers_and_the_called},
    {"one_entry_two_callers", one_entry_two_callers},
    {"an_entry_comes_again", an_entry_comes_again},
};

TEST(CallListModel, LosesNoWishAndListsAnEntryOnce) {
  for (const model::Scenario& scenario : kScenarios) {
    const model::Outcome outcome = model::explore(scenario.run, scenario.options);
    EXPECT_TRUE(outcome.complete) << scenario.name << ": " << outcome.failure;
  }
}

TEST(CallListModel, NeedsEveryMemoryOrderItHas) {
  const model::Audit audit = model::weaken_every_order("sync/call_list.h", kScenarios, {});
  EXPECT_EQ(audit.sites, 6u);
  for (const std::string& complaint : audit.complaints) {
    ADD_FAILURE() << complaint;
  }
}

}  // namespace
}  // namespace weft::sync
