// SPDX-License-Identifier: MIT
#include "weft/sync/mpsc_queue.h"

#include <array>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <thread>
#include <vector>

#include "weft/sys/cpu.h"
#include <gtest/gtest.h>

namespace weft::sync {
namespace {

template <typename T>
MpscQueue<T> queue_of(std::size_t producers, std::size_t capacity) {
  return MpscQueue<T>::make(producers, capacity).value();
}

TEST(MpscQueue, RefusesZerosAndTooMuch) {
  EXPECT_EQ(MpscQueue<int>::make(0, 1).error(), Errc::invalid_argument);
  EXPECT_EQ(MpscQueue<int>::make(1, 0).error(), Errc::invalid_argument);
  EXPECT_EQ(MpscQueue<int>::make(MpscQueue<int>::kProducersMax + 1, 1).error(), Errc::invalid_argument);
  EXPECT_EQ(MpscQueue<int>::make(1, std::numeric_limits<std::size_t>::max()).error(), Errc::invalid_argument);
}

TEST(MpscQueue, ReportsFullPerProducer) {
  auto queue = queue_of<int>(2, 3);
  auto first = queue.producer().value();
  auto second = queue.producer().value();
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(first.try_push(i));
  }
  EXPECT_FALSE(first.try_push(3));
  EXPECT_FALSE(first.has_room());
  EXPECT_TRUE(second.try_push(10));
  int value = -1;
  while (value != 0) {
    ASSERT_TRUE(queue.try_pop(value));
  }
  EXPECT_TRUE(first.try_push(3));
}

TEST(MpscQueue, HasAsManyProducersAsItWasMadeFor) {
  auto queue = queue_of<int>(2, 1);
  std::optional first(queue.producer().value());
  const auto second = queue.producer().value();
  EXPECT_EQ(queue.producer().error(), Errc::resource_exhausted);
  first.reset();
  EXPECT_TRUE(queue.producer());
}

TEST(MpscQueue, ALaneThatWasGivenUpKeepsItsValues) {
  auto queue = queue_of<int>(1, 4);
  EXPECT_TRUE(queue.producer().value().try_push(1));
  EXPECT_TRUE(queue.producer().value().try_push(2));
  std::array<int, 4> values{};
  EXPECT_EQ(queue.try_pop_batch(values), 2u);
  EXPECT_EQ(values[0], 1);
  EXPECT_EQ(values[1], 2);
}

// The published design blocks the consumer here: the value of a later producer stands behind the unfinished
// one.
TEST(MpscQueue, AProducerThatStallsInAPushDelaysNobody) {
  auto queue = queue_of<int>(2, 4);
  auto stalled = queue.producer().value();
  auto other = queue.producer().value();
  const std::span<int> claimed = stalled.claim(1);
  EXPECT_TRUE(other.try_push(2));
  int value = 0;
  EXPECT_TRUE(queue.try_pop(value));
  EXPECT_EQ(value, 2);
  EXPECT_FALSE(queue.try_pop(value));
  claimed[0] = 1;
  stalled.commit(1);
  EXPECT_TRUE(queue.try_pop(value));
  EXPECT_EQ(value, 1);
}

TEST(MpscQueue, ABusyProducerStarvesNobody) {
  auto queue = queue_of<int>(2, 4);
  auto busy = queue.producer().value();
  auto quiet = queue.producer().value();
  while (busy.try_push(1)) {
  }
  EXPECT_TRUE(quiet.try_push(2));
  int value = 0;
  for (int pops = 0; value != 2; ++pops) {
    ASSERT_LT(pops, 8);
    ASSERT_TRUE(queue.try_pop(value));
    if (value == 1) {
      EXPECT_TRUE(busy.try_push(1));
    }
  }
}

TEST(MpscQueue, DrainsAtMostWhatItIsAskedFor) {
  auto queue = queue_of<std::unique_ptr<int>>(2, 4);
  auto first = queue.producer().value();
  auto second = queue.producer().value();
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(first.try_push(std::make_unique<int>(i)));
    EXPECT_TRUE(second.try_push(std::make_unique<int>(i)));
  }
  int sum = 0;
  const auto add = [&](std::unique_ptr<int>&& value) { sum += *value; };
  EXPECT_EQ(queue.drain(add, 0), 0u);
  EXPECT_EQ(queue.drain(add, 5), 5u);
  EXPECT_EQ(queue.drain(add), 1u);
  EXPECT_EQ(sum, 6);
  EXPECT_EQ(queue.drain(add), 0u);
}

TEST(MpscQueue, AVisitorThatThrowsHasTakenItsValueAndTheOthersStay) {
  auto queue = queue_of<std::unique_ptr<int>>(1, 4);
  auto producer = queue.producer().value();
  for (int i = 0; i < 4; ++i) {
    EXPECT_TRUE(producer.try_push(std::make_unique<int>(i)));
  }
  std::vector<int> seen;
  const auto visit = [&](std::unique_ptr<int>&& value) {
    const std::unique_ptr<int> taken = std::move(value);
    seen.push_back(*taken);
    if (*taken == 1) {
      throw std::runtime_error("a visitor");
    }
  };
  EXPECT_THROW(queue.drain(visit), std::runtime_error);
  EXPECT_TRUE(producer.try_push(std::make_unique<int>(4)));
  EXPECT_TRUE(producer.try_push(std::make_unique<int>(5)));
  EXPECT_FALSE(producer.try_push(std::make_unique<int>(6)));
  EXPECT_EQ(queue.drain(visit), 4u);
  EXPECT_EQ(seen, (std::vector<int>{0, 1, 2, 3, 4, 5}));
}

TEST(MpscQueue, DestroysWhatIsLeftInside) {
  const auto counted = std::make_shared<int>(1);
  {
    auto queue = queue_of<std::shared_ptr<int>>(3, 4);
    auto producer = queue.producer().value();
    EXPECT_TRUE(producer.try_push(counted));
    EXPECT_TRUE(producer.try_push(counted));
  }
  EXPECT_EQ(counted.use_count(), 1);
}

struct Tagged {
  std::uint32_t producer;
  std::uint32_t number;
};

TEST(MpscQueue, LosesNothingAndKeepsEachProducersOrder) {
  constexpr std::uint32_t kProducers = 4;
  constexpr std::uint32_t kEach = 10'000;
  auto queue = queue_of<Tagged>(kProducers, 200);
  std::vector<std::thread> threads;
  for (std::uint32_t id = 0; id < kProducers; ++id) {
    threads.emplace_back([&queue, id] {
      auto producer = queue.producer().value();
      for (std::uint32_t i = 0; i < kEach; ++i) {
        while (!producer.try_push(Tagged{id, i})) {
          sys::yield();
        }
      }
    });
  }
  std::array<std::uint32_t, kProducers> seen{};
  std::array<Tagged, 50> values;
  for (std::size_t total = 0; total < std::size_t{kProducers} * kEach;) {
    std::size_t count = 0;
    if (total % 2 == 0) {
      count = queue.try_pop_batch(values);
      for (std::size_t i = 0; i < count; ++i) {
        ASSERT_EQ(values[i].number, seen[values[i].producer]++);
      }
    } else {
      count = queue.drain([&](const Tagged& value) { ASSERT_EQ(value.number, seen[value.producer]++); }, 50);
    }
    total += count;
    if (count == 0) {
      sys::yield();
    }
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_TRUE(queue.empty());
}

}  // namespace
}  // namespace weft::sync
