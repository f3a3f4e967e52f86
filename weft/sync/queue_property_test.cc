// SPDX-License-Identifier: MIT
#include <rapidcheck.h>

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <utility>
#include <vector>

#include "weft/sync/mpsc_queue.h"
#include "weft/sync/spsc_ring.h"
#include <gtest/gtest.h>

namespace weft::sync {
namespace {

[[maybe_unused]] const int kSeeded = setenv("RC_PARAMS", "seed=20261121", 0);  // every run has the same cases

using Steps = std::vector<std::pair<int, std::size_t>>;  // the kind of step, and its count

Steps any_steps(int kinds) {
  return *rc::gen::container<Steps>(rc::gen::pair(rc::gen::inRange(0, kinds), rc::gen::inRange<std::size_t>(0, 12)));
}

// Pops from the model and compares with the values that the queue popped.
void expect_popped(std::deque<int>& model, std::span<const int> values) {
  for (const int value : values) {
    RC_ASSERT(!model.empty());
    RC_ASSERT(value == model.front());
    model.pop_front();
  }
}

TEST(QueueProperty, ARingBehavesAsADequeWithABound) {
  EXPECT_TRUE(rc::check("SpscRing", [] {
    const std::size_t capacity = *rc::gen::inRange<std::size_t>(1, 20);
    auto ring = SpscRing<int>::make(capacity).value();
    std::deque<int> model;
    int next = 0;
    for (const auto& [step, count] : any_steps(6)) {
      std::vector<int> values(count);
      const std::size_t room = std::min(count, capacity - model.size());
      if (step == 0) {
        RC_ASSERT(ring.has_room() == (model.size() < capacity));
        RC_ASSERT(ring.try_push(next) == (model.size() < capacity));
        if (model.size() < capacity) {
          model.push_back(next++);
        }
      } else if (step == 1) {
        std::generate(values.begin(), values.end(), [n = next]() mutable { return n++; });
        RC_ASSERT(ring.try_push_batch(std::span<int>(values)) == room);
        model.insert(model.end(), values.begin(), values.begin() + static_cast<std::ptrdiff_t>(room));
        next += static_cast<int>(room);
      } else if (step == 2) {
        const std::span<int> cells = ring.claim(count);
        RC_ASSERT(cells.size() <= room && (cells.empty() == (room == 0)));
        std::generate(cells.begin(), cells.end(), [&] { return next++; });
        model.insert(model.end(), cells.begin(), cells.end());
        ring.commit(cells.size());
      } else if (step == 3) {
        int value = -1;
        const bool popped = ring.try_pop(value);
        RC_ASSERT(popped == !model.empty());
        expect_popped(model, std::span(&value, popped ? 1 : 0));
      } else if (step == 4) {
        const std::size_t there = std::min(count, model.size());
        RC_ASSERT(ring.try_pop_batch(values) == there);
        expect_popped(model, std::span(values).first(there));
      } else {
        const std::span<int> run = ring.peek(count);
        RC_ASSERT(run.size() <= count && (run.empty() == (count == 0 || model.empty())));
        expect_popped(model, run);
        ring.consume(run.size());
      }
      RC_ASSERT(ring.readable(capacity) == model.size());
      RC_ASSERT(ring.empty() == model.empty());
    }
  }));
}

struct Tagged {
  std::size_t producer;
  int number;
};

TEST(QueueProperty, AQueueOfLanesBehavesAsADequePerProducer) {
  EXPECT_TRUE(rc::check("MpscQueue", [] {
    const std::size_t producers = *rc::gen::inRange<std::size_t>(1, 4);
    const std::size_t capacity = *rc::gen::inRange<std::size_t>(1, 10);
    auto queue = MpscQueue<Tagged>::make(producers, capacity).value();
    std::vector<MpscQueue<Tagged>::Producer> lanes;
    std::vector<std::deque<int>> models(producers);
    for (std::size_t i = 0; i < producers; ++i) {
      lanes.push_back(queue.producer().value());
    }
    const auto expect = [&](const Tagged& value) {
      expect_popped(models[value.producer], std::span(&value.number, 1));
    };
    int next = 0;
    for (const auto& [step, count] : any_steps(static_cast<int>(producers) + 2)) {
      std::size_t total = 0;
      for (const std::deque<int>& model : models) {
        total += model.size();
      }
      const std::size_t there = std::min(count, total);
      if (const auto id = static_cast<std::size_t>(step); id < producers) {
        for (std::size_t i = 0; i < count; ++i) {
          const bool room = models[id].size() < capacity;
          RC_ASSERT(lanes[id].try_push(Tagged{id, next}) == room);
          if (room) {
            models[id].push_back(next++);
          }
        }
      } else if (id == producers) {
        std::vector<Tagged> values(count);
        RC_ASSERT(queue.try_pop_batch(values) == there);
        std::for_each_n(values.begin(), there, expect);
      } else {
        RC_ASSERT(queue.drain(expect, count) == there);
      }
    }
    queue.drain(expect);
    RC_ASSERT(std::all_of(models.begin(), models.end(), [](const std::deque<int>& model) { return model.empty(); }));
  }));
}

}  // namespace
}  // namespace weft::sync
