// SPDX-License-Identifier: MIT
#include "weft/sync/atomic_counted.h"

#include <array>
#include <thread>

#include <gtest/gtest.h>

namespace weft::sync {
namespace {

struct Shared : AtomicCounted<Shared> {
  explicit Shared(int& ended) : ends(&ended) {}
  ~Shared() { *ends += 1 + written; }
  int* ends;
  int written = 0;
};

static_assert(sizeof(AtomicCounted<Shared>) == 4);

TEST(AtomicCounted, TheLastReferenceEndsTheObject) {
  int ended = 0;
  auto first = make_intrusive<Shared>(ended);
  EXPECT_TRUE(first->sole_owner());
  auto second = first;
  EXPECT_FALSE(first->sole_owner());
  first.reset();
  EXPECT_TRUE(second->sole_owner());
  EXPECT_EQ(ended, 0);
  second.reset();
  EXPECT_EQ(ended, 1);
}

// The published session's count was plain at first and raced.
TEST(AtomicCounted, ThreadsCopyAndDropTheSameObject) {
  int ended = 0;
  {
    auto shared = make_intrusive<Shared>(ended);
    std::array<std::thread, 2> threads;
    for (auto& thread : threads) {
      thread = std::thread([mine = shared] {
        for (int i = 0; i < 10'000; ++i) {
          const auto copy = mine;
          EXPECT_TRUE(copy);
        }
      });
    }
    for (auto& thread : threads) {
      thread.join();
    }
    EXPECT_TRUE(shared->sole_owner());
    shared->written = 1;
  }
  EXPECT_EQ(ended, 2);
}

}  // namespace
}  // namespace weft::sync
