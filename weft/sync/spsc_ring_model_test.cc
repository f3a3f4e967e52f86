// SPDX-License-Identifier: MIT
#include <utility>

#include "tests/support/model_sites.h"
#include "weft/sync/spsc_ring.h"
#include <gtest/gtest.h>

namespace weft::sync {
namespace {

// A move-only value. The checker watches every access to it.
class Value {
 public:
  explicit Value(int number) noexcept : number_(number) { model::note_write(this); }
  Value(Value&& other) noexcept : number_(other.number()) { model::note_write(this); }
  Value& operator=(Value&& other) noexcept {
    const int number = other.number();
    model::note_write(this);
    number_ = number;
    return *this;
  }
  ~Value() { model::note_write(this); }
  [[nodiscard]] int number() const noexcept {
    model::note_read(this);
    return number_;
  }

 private:
  int number_;
};

// Values count up from 1.
struct Line {
  explicit Line(std::size_t capacity) : ring(SpscRing<Value>::make(capacity).value()) {}
  SpscRing<Value> ring;
  int pushed = 0;  // producer
  int popped = 0;  // consumer

  void check(const Value& value) {
    ++popped;
    model::require(value.number() == popped, "a value is lost, doubled or out of order");
  }
  void push(int times) {
    for (int i = 0; i < times; ++i) {
      pushed += ring.try_push(Value(pushed + 1)) ? 1 : 0;
    }
  }
  void push_batch() {
    Value values[] = {Value(pushed + 1), Value(pushed + 2)};
    pushed += static_cast<int>(ring.try_push_batch(std::span<Value>(values)));
  }
  void push_in_place() {
    const std::span<Value> cells = ring.claim(2);
    for (Value& cell : cells) {
      std::construct_at(&cell, ++pushed);
    }
    ring.commit(cells.size());
  }
  void append(int times) {
    for (int i = 0; i < times; ++i) {
      if (Value* const cell = ring.claim_one(); cell != nullptr) {
        std::construct_at(cell, ++pushed);
        ring.append_one();
      }
    }
    ring.show_appended();
  }
  void pop(int times) {
    for (int i = 0; i < times; ++i) {
      Value value(0);
      if (ring.try_pop(value)) {
        check(value);
      }
    }
  }
  void pop_batch() {
    Value values[] = {Value(0), Value(0)};
    const std::size_t count = ring.try_pop_batch(values);
    for (std::size_t i = 0; i < count; ++i) {
      check(values[i]);
    }
  }
  void pop_in_place() {
    const std::span<Value> values = ring.peek(2);
    for (const Value& value : values) {
      check(value);
    }
    ring.consume(values.size());
  }
  void check_drained() {
    pop(pushed - popped);
    model::require(popped == pushed && ring.empty(), "values are missing");
  }
};

template <int kCapacity>
void one_at_a_time() {
  Line line(kCapacity);
  model::run_threads([&] { line.push(3); }, [&] { line.pop(3); });
  line.check_drained();
}

void in_batches() {
  Line line(3);
  model::run_threads([&] { line.push_batch(), line.push_batch(), line.push_batch(); },
                     [&] { line.pop_batch(), line.pop_batch(); });
  line.check_drained();
}

void a_batch_appears_at_once() {
  Line line(3);
  model::run_threads([&] { line.push_batch(); },
                     [&] {
                       const std::size_t seen = line.ring.readable(2);
                       model::require(seen == 0 || seen == 2, "a part of a batch is visible");
                     });
  line.check_drained();
}

void appended_ones_appear_at_once() {
  Line line(3);
  model::run_threads([&] { line.append(2); },
                     [&] {
                       const std::size_t seen = line.ring.readable(2);
                       model::require(seen == 0 || seen == 2, "a value is visible that was not shown");
                     });
  line.check_drained();
}

void appended_and_popped() {
  Line line(2);
  model::run_threads([&] { line.append(2), line.append(2); }, [&] { line.pop(3); });
  line.check_drained();
}

void in_place() {
  Line line(2);
  model::run_threads([&] { line.push_in_place(), line.push_in_place(); }, [&] { line.pop_in_place(), line.pop(1); });
  line.check_drained();
}

void a_pop_makes_room() {
  Line line(1);
  line.push(1);
  Atomic<int> done{0};
  model::run_threads(
      [&] {
        const bool after = done.load(std::memory_order_acquire) != 0;
        model::require(line.ring.has_room() || !after, "a pop made no room");
      },
      [&] { line.pop(1), done.store(1, std::memory_order_release); });
}

void what_is_left_inside_is_freed() {
  Line line(2);
  model::run_threads([&] { line.push(2); }, [&] { line.pop(1); });
}

void memory_runs_out() {
  model::let_allocations_fail(1);
  const auto ring = SpscRing<Value>::make(2);
  model::require(ring || ring.error() == Errc::resource_exhausted, "another error");
}

constexpr model::Scenario kScenarios[] = {
    {"one_at_a_time 1", one_at_a_time<1>},
    {"one_at_a_time 2", one_at_a_time<2>},
    {"in_batches", in_batches},
    {"a_batch_appears_at_once", a_batch_appears_at_once},
    {"appended_ones_appear_at_once", appended_ones_appear_at_once},
    {"appended_and_popped", appended_and_popped},
    {"in_place", in_place},
    {"a_pop_makes_room", a_pop_makes_room},
    {"what_is_left_inside_is_freed", what_is_left_inside_is_freed},
    {"memory_runs_out", memory_runs_out},
};

TEST(SpscRingModel, LosesDoublesAndReordersNothing) {
  for (const model::Scenario& scenario : kScenarios) {
    const model::Outcome outcome = model::explore(scenario.run, scenario.options);
    EXPECT_TRUE(outcome.complete) << scenario.name << ": " << outcome.failure;
  }
}

TEST(SpscRingModel, NeedsEveryMemoryOrderItHas) {
  const model::Audit audit = model::weaken_every_order("sync/spsc_ring.h", kScenarios, {});
  EXPECT_EQ(audit.sites, 5u);
  for (const std::string& complaint : audit.complaints) {
    ADD_FAILURE() << complaint;
  }
}

}  // namespace
}  // namespace weft::sync
