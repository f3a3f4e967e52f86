// SPDX-License-Identifier: MIT
#include "tests/support/model_sites.h"
#include "weft/sync/mpsc_queue.h"
#include <gtest/gtest.h>

namespace weft::sync {
namespace {

struct Tagged {
  int producer;
  int number;
};

// Each producer's values count up from 1.
struct Inbox {
  Inbox(std::size_t producers, std::size_t capacity) : queue(MpscQueue<Tagged>::make(producers, capacity).value()) {}
  MpscQueue<Tagged> queue;
  int pushed[3] = {};  // by producer
  int popped[3] = {};

  // Takes a lane, pushes, and gives it up.
  void produce(int id, int times) {
    auto producer = queue.producer();
    if (!producer) {
      model::require(queue.lanes() == 1, "there was a lane for everybody");
      return;
    }
    for (int i = 0; i < times; ++i) {
      pushed[id] += producer->try_push(Tagged{id, pushed[id] + 1}) ? 1 : 0;
    }
  }
  void consume(int times) {
    for (int i = 0; i < times; ++i) {
      Tagged value;
      if (queue.try_pop(value)) {
        model::require(value.number == ++popped[value.producer], "a value is lost, doubled or out of order");
      }
    }
  }
  void check_drained() {
    queue.drain([&](const Tagged& value) {
      model::require(value.number == ++popped[value.producer], "a value is lost, doubled or out of order");
    });
    for (int id = 0; id < 3; ++id) {
      model::require(popped[id] == pushed[id], "values are missing");
    }
    model::require(queue.empty(), "drained, and not empty");
  }
};

void two_producers() {
  Inbox inbox(2, 1);
  model::run_threads([&] { inbox.produce(1, 2); }, [&] { inbox.produce(2, 1); }, [&] { inbox.consume(2); });
  inbox.check_drained();
}

void a_lane_changes_hands() {
  Inbox inbox(1, 4);
  model::run_threads([&] { inbox.produce(1, 1); }, [&] { inbox.produce(2, 1), inbox.produce(2, 1); },
                     [&] { inbox.consume(1); });
  inbox.check_drained();
}

void a_stalled_producer_delays_nobody() {
  Inbox inbox(2, 1);
  auto stalled = inbox.queue.producer().value();
  static_cast<void>(stalled.claim(1));
  model::run_threads([&] { inbox.produce(1, 1); }, [&] { inbox.consume(1); });
  inbox.check_drained();
  model::require(inbox.popped[1] == 1, "it was delayed");
}

void memory_runs_out() {
  model::let_allocations_fail(3);
  const auto queue = MpscQueue<Tagged>::make(2, 2);
  model::require(queue || queue.error() == Errc::resource_exhausted, "another error");
}

constexpr model::Scenario kScenarios[] = {
    {"two_producers", two_producers, {.preemptions = 3}},
    {"a_lane_changes_hands", a_lane_changes_hands, {.preemptions = 3}},
    {"a_stalled_producer_delays_nobody", a_stalled_producer_delays_nobody},
    {"memory_runs_out", memory_runs_out},
};

TEST(MpscQueueModel, LosesDoublesAndReordersNothing) {
  for (const model::Scenario& scenario : kScenarios) {
    const model::Outcome outcome = model::explore(scenario.run, scenario.options);
    EXPECT_TRUE(outcome.complete) << scenario.name << ": " << outcome.failure;
  }
}

TEST(MpscQueueModel, NeedsEveryMemoryOrderItHas) {
  const model::Audit audit = model::weaken_every_order("sync/mpsc_queue.h", kScenarios, {});
  EXPECT_EQ(audit.sites, 2u);
  for (const std::string& complaint : audit.complaints) {
    ADD_FAILURE() << complaint;
  }
}

}  // namespace
}  // namespace weft::sync
