// SPDX-License-Identifier: MIT
#include "tests/support/model_sites.h"
#include "weft/sync/baton.h"
#include "weft/sync/spsc_queue.h"
#include <gtest/gtest.h>

namespace weft::sync {
namespace {

struct Cell {
  int value;

  void write(int to) {
    model::note_write(this);
    value = to;
  }
  [[nodiscard]] int read() const {
    model::note_read(this);
    return value;
  }
};

// A queue of rings so small that a few cells link, leave and reuse them. Cells count up from 1.
struct Line {
  SpscQueue<Cell, 2, 4> queue;
  int pushed = 0;  // producer
  int popped = 0;  // consumer

  // False when memory ran out; the cells that were staged are published nevertheless.
  bool push(int count = 1) {
    bool whole = true;
    for (int i = 0; i < count && whole; ++i) {
      Cell* cell = queue.claim();
      whole = cell != nullptr;
      if (whole) {
        cell->write(++pushed);
        queue.stage();
      }
    }
    queue.publish();
    return whole;
  }
  // Nothing of it stays.
  void push_and_take_back(int count) {
    const auto mark = queue.mark();
    for (int i = 0; i < count; ++i) {
      if (Cell* cell = queue.claim(); cell != nullptr) {
        cell->write(-1);
        queue.stage();
      }
    }
    queue.rewind(mark);
  }
  void push_each(int count) {
    for (int i = 0; i < count; ++i) {
      push();
    }
  }
  bool try_pop() {
    Cell* cell = queue.front();
    if (cell == nullptr) {
      return false;
    }
    ++popped;
    model::require(cell->read() == popped, "a cell is lost, doubled or out of order");
    queue.pop();
    return true;
  }
  void try_pops(int count) {
    for (int i = 0; i < count; ++i) {
      try_pop();
    }
  }
  void drain() {
    while (try_pop()) {
    }
  }
  void check_drained() {
    drain();
    model::require(popped == pushed && queue.empty(), "cells are missing");
  }
  // One thread runs both sides.
  void pass(int cells) {
    push(cells);
    drain();
  }
};

void rings_are_linked() {
  Line line;
  model::run_threads([&] { line.push_each(5); }, [&] { line.try_pops(4); });
  line.check_drained();
}

void a_transaction_across_rings_appears_at_once() {
  Line line;
  line.pass(1);
  model::run_threads([&] { line.push(3); },
                     [&] {
                       if (line.try_pop()) {
                         model::require(line.try_pop() && line.try_pop(), "a part of a transaction is visible");
                       }
                     });
  line.check_drained();
}

void the_slots_of_a_ring_are_used_again() {
  Line line;
  line.push(1);
  model::run_threads([&] { line.push_each(3); }, [&] { line.try_pops(3); });
  line.check_drained();
}

// The consumer is about to leave a ring that the producer may then reuse.
void a_spare_ring_is_used_again() {
  Line line;
  line.push(7);
  line.try_pops(5);
  model::run_threads([&] { line.push_each(4); }, [&] { line.try_pops(3); });
  line.check_drained();
}

// The consumer leaves two rings: the second displaces the first, unless the producer took it.
void a_second_spare_ring_displaces_the_first() {
  Line line;
  line.push(11);
  line.try_pops(5);
  model::run_threads([&] { line.push(4); }, [&] { line.try_pops(7); });
  line.check_drained();
}

void what_is_left_inside_is_freed() {
  Line line;
  model::run_threads([&] { line.push(7); }, [&] { line.try_pops(4); });
}

void not_empty_means_a_cell() {
  Line line;
  model::run_threads([&] { line.push_each(2); },
                     [&] {
                       for (int i = 0; i < 2; ++i) {
                         model::require(line.queue.empty() || line.try_pop(), "not empty, but nothing is there");
                       }
                     });
  line.check_drained();
}

// The consumer is at the end of a ring after which rings come and go.
void a_transaction_is_taken_back() {
  Line line;
  line.push(1);
  model::run_threads(
      [&] {
        line.push_and_take_back(4);
        line.push(2);
        line.push_and_take_back(6);
        line.push(1);
      },
      [&] { line.try_pops(3); });
  line.check_drained();
}

void a_first_transaction_is_taken_back() {
  Line line;
  model::run_threads(
      [&] {
        line.push_and_take_back(3);
        line.push(1);
      },
      [&] { line.try_pops(2); });
  line.check_drained();
}

void memory_runs_out() {
  Line line;
  model::let_allocations_fail(2);
  model::run_threads(
      [&] {
        for (int i = 0; i < 4; ++i) {
          if (!line.push() && !line.push()) {
            (void)line.push();
          }
        }
      },
      [&] { line.try_pops(2); });
  line.check_drained();
}

// Each side moves between threads by a baton, as a connection's sides do.
void the_producing_side_moves_between_threads() {
  Line line;
  Baton baton;
  const auto produce = [&] {
    if (baton.try_take()) {
      line.push(2);
      (void)baton.release();
    }
  };
  model::run_threads(produce, produce, [&] { line.try_pops(2); });
  line.check_drained();
}

void the_consuming_side_moves_and_nothing_is_stranded() {
  Line line;
  Baton baton;
  const auto drain_while_nudged = [&] {
    do {
      line.drain();
    } while (baton.release() && baton.try_take_or_nudge());
  };
  model::run_threads(
      [&] {
        for (const int cells : {2, 1}) {
          line.push(cells);
          if (baton.try_take_or_nudge()) {
            drain_while_nudged();
          }
        }
      },
      [&] {
        if (baton.try_take()) {
          drain_while_nudged();
        }
      });
  model::require(line.popped == 3, "cells are stranded");
}

constexpr model::Scenario kScenarios[] = {
    {"rings_are_linked", rings_are_linked},
    {"a_transaction_across_rings_appears_at_once", a_transaction_across_rings_appears_at_once},
    {"the_slots_of_a_ring_are_used_again", the_slots_of_a_ring_are_used_again},
    {"a_spare_ring_is_used_again", a_spare_ring_is_used_again},
    {"a_second_spare_ring_displaces_the_first", a_second_spare_ring_displaces_the_first},
    {"what_is_left_inside_is_freed", what_is_left_inside_is_freed},
    {"not_empty_means_a_cell", not_empty_means_a_cell},
    {"a_transaction_is_taken_back", a_transaction_is_taken_back},
    {"a_first_transaction_is_taken_back", a_first_transaction_is_taken_back},
    {"memory_runs_out", memory_runs_out},
    {"the_producing_side_moves_between_threads", the_producing_side_moves_between_threads},
    {"the_consuming_side_moves_and_nothing_is_stranded", the_consuming_side_moves_and_nothing_is_stranded},
};

TEST(SpscQueueModel, LosesDoublesAndReordersNothingAndFreesEveryRing) {
  for (const model::Scenario& scenario : kScenarios) {
    const model::Outcome outcome = model::explore(scenario.run, scenario.options);
    EXPECT_TRUE(outcome.complete) << scenario.name << ": " << outcome.failure;
  }
}

constexpr model::Harmless kHarmless[] = {
    {"empty load acquire -> relaxed", "a hint: front() reads the same index again, not an older one, and acquires it"},
};

TEST(SpscQueueModel, NeedsEveryMemoryOrderItHas) {
  const model::Audit audit = model::weaken_every_order("sync/spsc_queue.h", kScenarios, kHarmless);
  EXPECT_EQ(audit.sites, 16u);
  for (const std::string& complaint : audit.complaints) {
    ADD_FAILURE() << complaint;
  }
}

}  // namespace
}  // namespace weft::sync
