// SPDX-License-Identifier: MIT
#include "weft/sync/spsc_ring.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "weft/base/random.h"
#include "weft/sys/cpu.h"
#include <gtest/gtest.h>

namespace weft::sync {
namespace {

template <typename T>
SpscRing<T> ring_of(std::size_t capacity) {
  return SpscRing<T>::make(capacity).value();
}

TEST(SpscRing, RefusesACapacityOfZeroAndOneBeyondMemory) {
  EXPECT_EQ(SpscRing<int>::make(0).error(), Errc::invalid_argument);
  EXPECT_EQ(SpscRing<int>::make(std::numeric_limits<std::size_t>::max()).error(), Errc::invalid_argument);
  EXPECT_EQ(SpscRing<int>::make(std::numeric_limits<std::size_t>::max() / 4).error(), Errc::invalid_argument);
}

TEST(SpscRing, HoldsExactlyItsCapacity) {
  for (const std::size_t capacity : {1u, 2u, 3u, 5u, 8u, 100u}) {
    auto ring = ring_of<std::size_t>(capacity);
    EXPECT_EQ(ring.capacity(), capacity);
    for (std::size_t lap = 0; lap < 3; ++lap) {
      for (std::size_t i = 0; i < capacity; ++i) {
        EXPECT_TRUE(ring.try_push(i));
      }
      EXPECT_FALSE(ring.has_room());
      EXPECT_FALSE(ring.try_push(capacity));
      for (std::size_t i = 0; i < capacity; ++i) {
        std::size_t value = 0;
        ASSERT_TRUE(ring.try_pop(value));
        EXPECT_EQ(value, i);
      }
      std::size_t value = 0;
      EXPECT_FALSE(ring.try_pop(value));
      EXPECT_TRUE(ring.empty());
    }
  }
}

TEST(SpscRing, APopMakesRoomAtOnce) {
  auto ring = ring_of<int>(100);
  while (ring.try_push(1)) {
  }
  int value = 0;
  EXPECT_TRUE(ring.try_pop(value));
  EXPECT_TRUE(ring.try_push(1));
  EXPECT_FALSE(ring.try_push(1));
}

TEST(SpscRing, MovesWhatCannotBeCopied) {
  auto ring = ring_of<std::unique_ptr<int>>(2);
  EXPECT_TRUE(ring.try_push(std::make_unique<int>(7)));
  EXPECT_TRUE(ring.try_push(nullptr));
  auto refused = std::make_unique<int>(9);
  EXPECT_FALSE(ring.try_push(std::move(refused)));
  ASSERT_NE(refused, nullptr) << "a refused value stays with its owner";
  std::unique_ptr<int> value;
  EXPECT_TRUE(ring.try_pop(value));
  EXPECT_EQ(*value, 7);
}

TEST(SpscRing, DestroysWhatIsLeftInside) {
  const auto counted = std::make_shared<int>(1);
  {
    auto ring = ring_of<std::shared_ptr<int>>(8);
    for (int i = 0; i < 6; ++i) {
      EXPECT_TRUE(ring.try_push(counted));
    }
    std::shared_ptr<int> value;
    EXPECT_TRUE(ring.try_pop(value));
    value.reset();
    ring.consume(ring.peek(2).size());
    EXPECT_EQ(counted.use_count(), 1 + 3);
    auto moved = std::move(ring);
    EXPECT_EQ(counted.use_count(), 1 + 3);
  }
  EXPECT_EQ(counted.use_count(), 1);
}

TEST(SpscRing, KeepsAHugeAlignment) {
  struct alignas(4096) Page {
    int value;
  };
  auto ring = ring_of<Page>(3);
  EXPECT_TRUE(ring.try_push(Page{5}));
  ASSERT_NE(ring.front(), nullptr);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(ring.front()) % 4096, 0u);
  EXPECT_EQ(ring.front()->value, 5);
}

template <typename T, typename Values>
void pass_batches(Values values) {
  auto ring = ring_of<T>(5);
  EXPECT_EQ(ring.try_push_batch(values.first(3)), 3u);
  std::vector<T> popped(10);
  EXPECT_EQ(ring.try_pop_batch(std::span(popped).first(2)), 2u);
  EXPECT_EQ(ring.try_push_batch(values.subspan(3)), 4u) << "as many as there is room for";
  EXPECT_EQ(ring.try_push_batch(values), 0u);
  EXPECT_EQ(ring.try_pop_batch(std::span(popped).subspan(2)), 5u);
  EXPECT_EQ(ring.try_pop_batch(popped), 0u);
  EXPECT_EQ(ring.try_push_batch(values.first(0)), 0u);
  EXPECT_EQ(popped, (std::vector<T>{"a", "b", "c", "d", "e", "f", "g", T(), T(), T()}));
}

TEST(SpscRing, BatchesKeepOrder) {
  std::vector<std::string> values = {"a", "b", "c", "d", "e", "f", "g"};
  pass_batches<std::string>(std::span(values));
  const std::vector<std::string_view> views = {"a", "b", "c", "d", "e", "f", "g"};
  pass_batches<std::string_view>(std::span(views));
}

TEST(SpscRing, ClaimsInPlaceAndShowsOnlyWhatIsCommitted) {
  auto ring = ring_of<int>(4);
  std::span<int> cells = ring.claim(3);
  ASSERT_EQ(cells.size(), 3u);
  cells[0] = 1;
  cells[1] = 2;
  EXPECT_TRUE(ring.empty());
  ring.commit(2);
  EXPECT_EQ(ring.readable(10), 2u);
  const std::span<int> seen = ring.peek(10);
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_EQ(seen[1], 2);
  ring.consume(2);
  EXPECT_EQ(ring.claim(10).size(), 2u) << "up to the ring's end";
  ring.commit(0);
  EXPECT_TRUE(ring.empty());
}

// Every way to push beside every way to pop, chosen at random, on two threads.
TEST(SpscRing, KeepsOrderBetweenTwoThreads) {
  for (const std::size_t capacity : {1u, 7u, 64u}) {
    const std::uint64_t values_max = 50 * capacity;  // a machine with one free core changes threads at each full ring
    auto ring = ring_of<std::uint64_t>(capacity);
    std::uint64_t popped = 0;
    std::thread consumer([&] {
      Random random(20261101);
      std::uint64_t values[16];
      while (popped < values_max) {
        std::size_t count = 0;
        const auto check = [&](std::uint64_t value) { ASSERT_EQ(value, popped++); };
        switch (random.below(3)) {
          case 0: count = ring.try_pop(values[0]) ? 1 : 0; break;
          case 1: count = ring.try_pop_batch(std::span(values).first(random.below(17))); break;
          default: {
            const std::span<std::uint64_t> run = ring.peek(1 + random.below(16));
            std::copy(run.begin(), run.end(), values);
            count = run.size();
            ring.consume(count);
          }
        }
        std::for_each(values, values + count, check);
        if (count == 0) {
          sys::yield();
        }
      }
    });
    Random random(20261102);
    std::uint64_t values[16];
    for (std::uint64_t pushed = 0; pushed < values_max;) {
      const std::size_t most = std::min<std::uint64_t>(1 + random.below(16), values_max - pushed);
      std::size_t count = 0;
      switch (random.below(3)) {
        case 0: count = ring.try_push(pushed) ? 1 : 0; break;
        case 1:
          for (std::size_t i = 0; i < most; ++i) {
            values[i] = pushed + i;
          }
          count = ring.try_push_batch(std::span(values).first(most));
          break;
        default: {
          const std::span<std::uint64_t> run = ring.claim(most);
          for (std::size_t i = 0; i < run.size(); ++i) {
            run[i] = pushed + i;
          }
          count = run.size();
          ring.commit(count);
        }
      }
      pushed += count;
      if (count == 0) {
        sys::yield();
      }
    }
    consumer.join();
    EXPECT_EQ(popped, values_max);
    EXPECT_TRUE(ring.empty());
  }
}

}  // namespace
}  // namespace weft::sync
