// SPDX-License-Identifier: MIT
#include "weft/mem/buffer.h"

#include <malloc.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <future>
#include <limits>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "weft/mem/poison.h"
#include "weft/mem/pool.h"
#include <gtest/gtest.h>

namespace weft::mem {
namespace {

// Tests that compare addresses use a size class of their own, since earlier tests leave buffers in the pools.

std::vector<Buffer*> make_many(std::size_t count, std::size_t size) {
  std::vector<Buffer*> buffers;
  for (std::size_t i = 0; i < count; ++i) {
    buffers.push_back(Buffer::make(size));
  }
  return buffers;
}

void release_all(const std::vector<Buffer*>& buffers) {
  for (Buffer* buffer : buffers) {
    buffer->release();
  }
}

std::set<Buffer*> as_set(const std::vector<Buffer*>& buffers) { return {buffers.begin(), buffers.end()}; }

template <typename Function>
void on_another_thread(Function function) {
  std::thread(function).join();
}

// Bytes that malloc has handed out. Nothing with a sanitizer, whose malloc does not count.
[[maybe_unused]] std::size_t in_use() {
  const struct mallinfo2 info = ::mallinfo2();
  return info.uordblks + info.hblkhd;
}

TEST(Buffer, HasRoomForWhatWasAskedAtEverySizeAroundAClass) {
  for (std::size_t size = 128; size <= Buffer::kPooledMax; size *= 2) {
    for (const std::size_t asked : {size - 1, size, size + 1}) {
      Buffer* buffer = Buffer::make(asked);
      ASSERT_NE(buffer, nullptr);
      EXPECT_GE(buffer->capacity(), asked);
      EXPECT_LE(buffer->capacity(), std::max<std::size_t>(2 * asked, 128)) << "wasteful at " << asked;
      std::memset(buffer->data(), 0xa5, buffer->capacity());
      buffer->release();
    }
  }
}

TEST(Buffer, OfNoBytesIsABufferToo) {
  Buffer* buffer = Buffer::make(0);
  ASSERT_NE(buffer, nullptr);
  EXPECT_TRUE(buffer->sole_owner());
  buffer->release();
}

TEST(Buffer, AboveThePooledMaximumHasExactlyTheSizeAskedFor) {
  Buffer* buffer = Buffer::make(Buffer::kPooledMax + 1);
  ASSERT_NE(buffer, nullptr);
  EXPECT_EQ(buffer->capacity(), Buffer::kPooledMax + 1);
  std::memset(buffer->data(), 1, buffer->capacity());
  buffer->release();
}

TEST(Buffer, AnEnlargedOneHasTheSameBytesAndOneReference) {
  Buffer* buffer = Buffer::make(Buffer::kPooledMax + 1);
  ASSERT_NE(buffer, nullptr);
  for (std::size_t i = 0; i < buffer->capacity(); ++i) {
    buffer->data()[i] = static_cast<std::uint8_t>(i * 7);
  }
  EXPECT_EQ(Buffer::enlarge(buffer, std::numeric_limits<std::size_t>::max() - 1), nullptr);
  for (const std::size_t size : {2 * Buffer::kPooledMax, std::size_t{1} << 20, std::size_t{1} << 25}) {
    buffer = Buffer::enlarge(buffer, size);
    ASSERT_NE(buffer, nullptr);
    EXPECT_EQ(buffer->capacity(), size);
    EXPECT_TRUE(buffer->sole_owner());
    std::memset(buffer->data() + Buffer::kPooledMax + 1, 1, size - Buffer::kPooledMax - 1);
    for (std::size_t i = 0; i <= Buffer::kPooledMax; ++i) {
      ASSERT_EQ(buffer->data()[i], static_cast<std::uint8_t>(i * 7)) << i << " of " << size;
    }
  }
  buffer->release();
}

TEST(Buffer, AnImpossibleSizeIsRefusedAndNotWrappedAround) {
  EXPECT_EQ(Buffer::make(std::numeric_limits<std::size_t>::max()), nullptr);
  EXPECT_EQ(Buffer::make(std::numeric_limits<std::size_t>::max() - sizeof(Buffer) + 1), nullptr);
}

TEST(Buffer, IsAlignedForAnything) {
  for (const std::size_t size : {1u, 200u, 5000u, 300000u}) {
    Buffer* buffer = Buffer::make(size);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer->data()) % alignof(std::max_align_t), 0u) << size;
    buffer->release();
  }
}

TEST(Buffer, LivesUntilTheLastReferenceGoes) {
  Buffer* buffer = Buffer::make(64);
  EXPECT_TRUE(buffer->sole_owner());
  buffer->add_reference();
  EXPECT_FALSE(buffer->sole_owner());
  std::memset(buffer->data(), 7, 64);
  buffer->release();
  EXPECT_TRUE(buffer->sole_owner());
  EXPECT_EQ(buffer->data()[63], 7);
  buffer->release();
}

TEST(Buffer, ComesBackFromTheListOnTheSameThread) {
  Buffer* first = Buffer::make(1000);
  first->release();
  Buffer* second = Buffer::make(900);  // the same class
  EXPECT_EQ(second, first);
  EXPECT_TRUE(second->sole_owner());
  second->release();
}

TEST(Buffer, ClassesDoNotMix) {
  Buffer* small = Buffer::make(100);
  small->release();
  Buffer* large = Buffer::make(5000);
  EXPECT_NE(large, small);
  EXPECT_GE(large->capacity(), 5000u);
  large->release();
}

struct Freed {
  int count = 0;
  void* data = nullptr;
};

TEST(Buffer, OfSomebodyElsesBytesTellsThemOnceWhenTheLastReferenceGoes) {
  std::array<std::uint8_t, 16> bytes{};
  Freed freed;
  Buffer* buffer = Buffer::make_external(
      bytes,
      [](void* data, void* hint) {
        ++static_cast<Freed*>(hint)->count;
        static_cast<Freed*>(hint)->data = data;
      },
      &freed);
  ASSERT_NE(buffer, nullptr);
  buffer->add_reference();
  buffer->release();
  EXPECT_EQ(freed.count, 0);
  on_another_thread([&] { buffer->release(); });
  EXPECT_EQ(freed.count, 1);
  EXPECT_EQ(freed.data, bytes.data());
}

TEST(Buffer, AnExceptionOfTheFunctionThatFreesTheBytesIsDropped) {
  std::array<std::uint8_t, 16> bytes{};
  int calls = 0;
  Buffer* const buffer = Buffer::make_external(
      bytes,
      [](void* /*data*/, void* count) {
        ++*static_cast<int*>(count);
        throw std::runtime_error("freeing");
      },
      &calls);
  ASSERT_NE(buffer, nullptr);
  buffer->release();
  EXPECT_EQ(calls, 1);
}

TEST(Pool, BuffersThatAnotherThreadReleasedComeBackAndAreUsedAgain) {
  constexpr std::size_t kCount = 256;
  const std::vector<Buffer*> first = make_many(kCount, 1000);
  on_another_thread([&] { release_all(first); });
  const std::vector<Buffer*> second = make_many(kCount, 1000);
  EXPECT_EQ(as_set(second), as_set(first));
  release_all(second);
}

TEST(Pool, APipelineFromOneThreadToAnotherStaysWithinABoundedSetOfBuffers) {
  constexpr std::size_t kBatch = 100;
  std::set<Buffer*> seen;
  for (int round = 0; round < 200; ++round) {
    const std::vector<Buffer*> batch = make_many(kBatch, 2000);
    seen.insert(batch.begin(), batch.end());
    on_another_thread([&] { release_all(batch); });
  }
  EXPECT_LE(seen.size(), 2 * kBatch);
}

TEST(Pool, ALivingThreadHoldsBackABoundedNumberOfAnothersBuffers) {
  constexpr std::size_t kCount = 1000;
  constexpr std::size_t kHeldBackMax = 32;
  const std::vector<Buffer*> first = make_many(kCount, 128);
  std::promise<void> released;
  std::promise<void> looked;
  std::thread releaser([&] {
    release_all(first);
    released.set_value();
    looked.get_future().wait();  // stays alive, since the end of the thread would flush its pool
  });
  released.get_future().wait();
  const std::vector<Buffer*> second = make_many(kCount, 128);
  looked.set_value();
  releaser.join();
  const std::set<Buffer*> known = as_set(first);
  const auto missing = std::count_if(second.begin(), second.end(), [&](Buffer* b) { return known.count(b) == 0; });
  EXPECT_LT(static_cast<std::size_t>(missing), kHeldBackMax);
  release_all(second);
}

TEST(Pool, ReleasesAlternatingBetweenTwoOwnersReachBoth) {
  constexpr std::size_t kCount = 64;
  std::vector<Buffer*> theirs;
  std::vector<Buffer*> theirs_again;
  const std::vector<Buffer*> mine = make_many(kCount, 7000);
  on_another_thread([&] {
    theirs = make_many(kCount, 7000);
    on_another_thread([&] {
      for (std::size_t i = 0; i < kCount; ++i) {
        mine[i]->release();
        theirs[i]->release();
      }
    });
    theirs_again = make_many(kCount, 7000);
    release_all(theirs_again);
  });
  const std::vector<Buffer*> mine_again = make_many(kCount, 7000);
  EXPECT_EQ(as_set(mine_again), as_set(mine));
  EXPECT_EQ(as_set(theirs_again), as_set(theirs));
  release_all(mine_again);
}

TEST(Pool, TheNextNewThreadTakesOverThePoolOfOneThatEnded) {
  ASSERT_NE(Pool::mine(), nullptr);  // this thread's own: it must not adopt the other's
  Pool* first = nullptr;
  Pool* second = nullptr;
  Buffer* kept = nullptr;
  Buffer* found = nullptr;
  on_another_thread([&] {
    first = Pool::mine();
    kept = Buffer::make(2000);
    kept->release();
  });
  on_another_thread([&] {
    second = Pool::mine();
    found = Buffer::make(2000);
    found->release();
  });
  EXPECT_NE(first, nullptr);
  EXPECT_EQ(second, first);
  EXPECT_EQ(found, kept);
  EXPECT_NE(Pool::mine(), first);
}

TEST(Pool, ABufferMayOutliveItsThreadAndComeHomeToTheNext) {
  ASSERT_NE(Pool::mine(), nullptr);  // this thread's own: it must not adopt the other's
  Buffer* buffer = nullptr;
  on_another_thread([&] {
    buffer = Buffer::make(3000);
    std::memset(buffer->data(), 9, 3000);
  });
  EXPECT_EQ(buffer->data()[2999], 9);
  buffer->release();
  Pool::mine()->flush();
  Buffer* again = nullptr;
  on_another_thread([&] {
    again = Buffer::make(3000);
    again->release();
  });
  EXPECT_EQ(again, buffer);
}

TEST(Pool, AThreadThatEndsGivesBackWhatItCollected) {
  Buffer* buffer = Buffer::make(20000);  // a single buffer, below every threshold of the outgoing list
  on_another_thread([&] { buffer->release(); });
  Buffer* again = Buffer::make(20000);
  EXPECT_EQ(again, buffer);
  again->release();
}

TEST(Pool, ManyThreadsMayReleaseToOneOwnerAtOnce) {
  constexpr std::size_t kThreads = 4;
  constexpr std::size_t kEach = 500;
  const std::vector<Buffer*> first = make_many(kThreads * kEach, 500);
  {
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        for (std::size_t i = 0; i < kEach; ++i) {
          first[t * kEach + i]->release();
        }
      });
    }
    for (std::thread& thread : threads) {
      thread.join();
    }
  }
  const std::vector<Buffer*> second = make_many(kThreads * kEach, 500);
  EXPECT_EQ(as_set(second), as_set(first));
  release_all(second);
}

TEST(Pool, SharedBuffersAreReleasedByManyThreadsExactlyOnce) {
  constexpr std::size_t kThreads = 4;
  constexpr int kRounds = 500;
  for (int round = 0; round < kRounds / 100; ++round) {
    const std::vector<Buffer*> shared = make_many(100, 200);
    for (Buffer* buffer : shared) {
      for (std::size_t t = 1; t < kThreads; ++t) {
        buffer->add_reference();
      }
    }
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < kThreads; ++t) {
      threads.emplace_back([&] { release_all(shared); });
    }
    for (std::thread& thread : threads) {
      thread.join();
    }
    // A buffer that is in a list twice would show up as one address twice.
    const std::vector<Buffer*> again = make_many(100, 200);
    EXPECT_EQ(as_set(again).size(), 100u);
    release_all(again);
  }
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // a sanitizer's malloc does not count
TEST(Pool, KeepsNoMoreThanItsBoundOfBigBuffers) {
  on_another_thread([&] {
    const std::size_t before = in_use();
    release_all(make_many(64, Buffer::kPooledMax));              // 16 MiB
    EXPECT_LE(in_use() - before, std::size_t{5} * 1024 * 1024);  // 4 MiB, plus malloc's overhead
  });
}
#endif

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // a sanitizer's malloc does not count
TEST(Pool, ABurstThatAnotherThreadReleasesGoesBackWhateverItsOwnerDoes) {
  constexpr std::size_t kMiB = 1024 * 1024;
  for (const std::size_t size : {std::size_t{128}, std::size_t{4096}, Buffer::kPooledMax}) {
    for (const bool owner_ends : {false, true}) {
      std::size_t before = 0;
      std::vector<Buffer*> burst;
      std::promise<void> made;
      std::promise<void> looked;
      std::thread owner([&] {
        before = in_use();
        burst = make_many(64 * kMiB / size, size);
        made.set_value();
        if (!owner_ends) {
          release_all(make_many(10, size == 4096 ? 128 : 4096));  // it goes on, in another size class
          looked.get_future().wait();
        }
      });
      made.get_future().wait();
      if (owner_ends) {
        owner.join();
      }
      on_another_thread([&] { release_all(burst); });
      std::vector<Buffer*>().swap(burst);
      EXPECT_LE(in_use(), before + (owner_ends ? 2 : 8) * kMiB) << size << " bytes, owner_ends " << owner_ends;
      if (!owner_ends) {
        looked.set_value();
        owner.join();
      }
    }
  }
}
#endif

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // a sanitizer's malloc does not count
TEST(Pool, AThreadThatEndsKeepsFewOfItsBuffers) {
  const std::size_t before = in_use();
  on_another_thread([] {
    for (std::size_t size = 128; size <= Buffer::kPooledMax; size *= 2) {
      release_all(make_many(1024 * 1024 / size, size));
    }
  });
  EXPECT_LE(in_use(), before + std::size_t{1024} * 1024);
}
#endif

// Runs when its thread's pool is gone or being destroyed.
struct LateUser {
  ~LateUser() {
    if (buffer != nullptr) {
      buffer->release();
      Buffer* fresh = Buffer::make(100);
      made_one = fresh != nullptr;
      fresh->release();
    }
  }
  Buffer* buffer = nullptr;
  static inline bool made_one = false;
};

TEST(Pool, BuffersWorkInDestructorsThatRunAfterTheThreadsPoolIsGone) {
  on_another_thread([] {
    static thread_local LateUser late;
    late.buffer = nullptr;  // constructed before the pool's holder, so destroyed after it
    late.buffer = Buffer::make(100);
  });
  EXPECT_TRUE(LateUser::made_one);
}

TEST(Pool, PlainMemoryIsFreedByAnyThreadAndUsedAgain) {
  std::set<void*> first;
  for (int i = 0; i < 100; ++i) {
    void* const block = pool_allocate(30'000);
    ASSERT_NE(block, nullptr);
    std::memset(block, i, 30'000);
    first.insert(block);
  }
  on_another_thread([&] {
    for (void* block : first) {
      pool_deallocate(block);
    }
    pool_deallocate(nullptr);
  });
  // The pool kept kKeptBytes of them.
  std::set<void*> second;
  std::size_t known = 0;
  for (int i = 0; i < 32; ++i) {
    void* const block = pool_allocate(30'000);
    known += first.count(block);
    EXPECT_TRUE(second.insert(block).second);
  }
  EXPECT_EQ(known, 32u);
  for (void* block : second) {
    pool_deallocate(block);
  }
}

TEST(Pool, PlainMemoryOfAnySizeIsAlignedAndAnImpossibleSizeIsRefused) {
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{64}, Buffer::kPooledMax + 1}) {
    void* const block = pool_allocate(size);
    ASSERT_NE(block, nullptr);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % alignof(std::max_align_t), 0u);
    std::memset(block, 1, size);
    pool_deallocate(block);
  }
  EXPECT_EQ(pool_allocate(std::numeric_limits<std::size_t>::max()), nullptr);
}

TEST(Pool, ABufferThatWasSharedHasOneReferenceWhenItIsUsedAgain) {
  Buffer* const buffer = Buffer::make(10'000);
  buffer->add_reference();
  on_another_thread([&] { buffer->release(); });
  buffer->release();
  Buffer* const again = Buffer::make(10'000);
  EXPECT_EQ(again, buffer);
  EXPECT_TRUE(again->sole_owner());
  again->release();
}

#ifdef WEFT_HAVE_POISON
TEST(Pool, FreeBuffersArePoisonedForTheAddressSanitizer) {
  Buffer* const buffer = Buffer::make(10'000);
  EXPECT_EQ(__asan_region_is_poisoned(buffer->data(), buffer->capacity()), nullptr);
  buffer->release();
  EXPECT_NE(__asan_region_is_poisoned(buffer->data(), buffer->capacity()), nullptr);
}
#endif

}  // namespace
}  // namespace weft::mem
