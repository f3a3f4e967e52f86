// SPDX-License-Identifier: MIT
#include "weft/sync/spsc_queue.h"

#include <cstdint>
#include <thread>

#include "weft/base/random.h"
#include "weft/sys/cpu.h"
#include <gtest/gtest.h>

namespace weft::sync {
namespace {

// Cells count up from 0.
template <typename Queue>
struct Line {
  Queue queue;
  std::uint64_t pushed = 0;
  std::uint64_t popped = 0;

  void stage(std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) {
      std::uint64_t* cell = queue.claim();
      ASSERT_NE(cell, nullptr);
      *cell = pushed++;
      queue.stage();
    }
  }
  // Returns the number of cells popped.
  std::uint64_t pop(std::uint64_t most) {
    std::uint64_t count = 0;
    for (; count < most; ++count) {
      const std::uint64_t* cell = queue.front();
      if (cell == nullptr) {
        break;
      }
      EXPECT_EQ(*cell, popped);
      ++popped;
      queue.pop();
    }
    return count;
  }
};

template <typename Queue>
class SpscQueueTest : public testing::Test {};
using Queues = testing::Types<SpscQueue<std::uint64_t>, SpscQueue<std::uint64_t, 2, 4>, SpscQueue<std::uint64_t, 8, 8>,
                              SpscQueue<std::uint64_t, 1, 2>>;
TYPED_TEST_SUITE(SpscQueueTest, Queues);

TYPED_TEST(SpscQueueTest, IsEmptyAtFirst) {
  Line<TypeParam> line;
  EXPECT_TRUE(line.queue.empty());
  EXPECT_EQ(line.queue.front(), nullptr);
}

TYPED_TEST(SpscQueueTest, ShowsCellsOnlyWhenPublishedAndThenAll) {
  Line<TypeParam> line;
  line.stage(5);
  EXPECT_TRUE(line.queue.empty());
  EXPECT_EQ(line.queue.front(), nullptr);
  line.queue.publish();
  EXPECT_FALSE(line.queue.empty());
  EXPECT_EQ(line.pop(10), 5u);
  EXPECT_TRUE(line.queue.empty());
}

TYPED_TEST(SpscQueueTest, AClaimedCellIsNothingUntilStaged) {
  TypeParam queue;
  *queue.claim() = 1;
  *queue.claim() = 2;
  queue.stage();
  queue.publish();
  ASSERT_NE(queue.front(), nullptr);
  EXPECT_EQ(*queue.front(), 2u);
  queue.pop();
  EXPECT_EQ(queue.front(), nullptr);
}

TYPED_TEST(SpscQueueTest, TheFrontStaysUntilPopped) {
  Line<TypeParam> line;
  line.stage(1);
  line.queue.publish();
  EXPECT_EQ(line.queue.front(), line.queue.front());
}

TYPED_TEST(SpscQueueTest, GrowsAcrossRingsAndForgetsWhatIsLeft) {
  Line<TypeParam> line;
  line.stage(3000);
  line.queue.publish();
  EXPECT_EQ(line.pop(2000), 2000u);
}

TYPED_TEST(SpscQueueTest, KeepsOrderThroughRandomTraffic) {
  Line<TypeParam> line;
  Random random(20260101);
  for (int round = 0; round < 3000; ++round) {
    line.stage(random.below(12));
    line.queue.publish();
    line.pop(random.below(12));
    ASSERT_EQ(line.queue.empty(), line.pushed == line.popped);
  }
  line.pop(line.pushed);
  EXPECT_EQ(line.popped, line.pushed);
}

TYPED_TEST(SpscQueueTest, KeepsOrderBetweenTwoThreads) {
  constexpr std::uint64_t kCells = 100'000;
  constexpr std::uint64_t kLag = 3000;  // bounds the memory
  Line<TypeParam> line;
  std::atomic<std::uint64_t> read{0};
  std::thread consumer([&] {
    while (line.popped < kCells) {
      if (line.pop(50) == 0) {
        sys::yield();
      }
      read.store(line.popped, std::memory_order_relaxed);
    }
  });
  Random random(20260102);
  while (line.pushed < kCells) {
    line.stage(std::min(kCells - line.pushed, 1 + random.below(20)));
    line.queue.publish();
    while (line.pushed - read.load(std::memory_order_relaxed) > kLag) {
      sys::yield();
    }
  }
  consumer.join();
  EXPECT_EQ(line.popped, kCells);
  EXPECT_TRUE(line.queue.empty());
}

}  // namespace
}  // namespace weft::sync
