// SPDX-License-Identifier: MIT
#include "weft/sync/mutex.h"

#include <mutex>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace weft::sync {
namespace {

TEST(Mutex, LetsOneIn) {
  Mutex mutex;
  for (int i = 0; i < 1000; ++i) {  // later rounds lock by the bias
    mutex.lock();
    EXPECT_FALSE(mutex.try_lock());
    mutex.unlock();
    ASSERT_TRUE(mutex.try_lock());
    mutex.unlock();
  }
}

TEST(Mutex, WorksWithTheLocksOfTheStandardLibrary) {
  Mutex one;
  Mutex two;
  const std::scoped_lock lock(one, two);
  std::unique_lock third(one, std::try_to_lock);
  EXPECT_FALSE(third.owns_lock());
}

TEST(Mutex, TheHolderSeesThatAnotherThreadWaits) {
  for (int takes : {1, 1000}) {  // without the bias, and with it
    Mutex mutex;
    for (int i = 1; i < takes; ++i) {
      const std::lock_guard lock(mutex);
    }
    mutex.lock();
    EXPECT_FALSE(mutex.wanted());
    std::thread other([&] { const std::lock_guard lock(mutex); });
    while (!mutex.wanted()) {
      std::this_thread::yield();
    }
    mutex.unlock();
    other.join();
    const std::lock_guard lock(mutex);
    EXPECT_FALSE(mutex.wanted());
  }
}

// One thread locks nearly always and so gets the bias again and again; the other threads interrupt it.
TEST(Mutex, KeepsCountsExactWhileTheBiasComesAndGoes) {
  constexpr std::uint64_t kOften = 2'000'000;
  constexpr std::uint64_t kSeldom = 300;
  Mutex mutex;
  std::uint64_t count = 0;
  std::atomic<bool> done{false};
  std::vector<std::thread> others;
  others.reserve(2);
  std::atomic<std::uint64_t> added{0};
  for (int i = 0; i < 2; ++i) {
    others.emplace_back([&] {
      for (std::uint64_t turn = 0; turn < kSeldom || !done.load(); ++turn) {
        {
          const std::lock_guard lock(mutex);
          ++count;
        }
        added.fetch_add(1, std::memory_order_relaxed);
        std::this_thread::sleep_for(std::chrono::microseconds(50));
      }
    });
  }
  for (std::uint64_t turn = 0; turn < kOften; ++turn) {
    const std::lock_guard lock(mutex);
    ++count;
  }
  done.store(true);
  for (std::thread& other : others) {
    other.join();
  }
  EXPECT_EQ(count, kOften + added.load());
}

TEST(Mutex, KeepsCountsExactAmongEquals) {
  constexpr std::uint64_t kTurns = 100'000;
  Mutex mutex;
  std::uint64_t count = 0;
  const auto add = [&] {
    for (std::uint64_t turn = 0; turn < kTurns; ++turn) {
      const std::lock_guard lock(mutex);
      ++count;
    }
  };
  std::thread one(add);
  std::thread two(add);
  add();
  one.join();
  two.join();
  EXPECT_EQ(count, 3 * kTurns);
}

}  // namespace
}  // namespace weft::sync
