// SPDX-License-Identifier: MIT
#include "weft/sync/baton.h"

#include <array>
#include <thread>

#include <gtest/gtest.h>

namespace weft::sync {
namespace {

TEST(Baton, HasOneHolder) {
  Baton baton;
  EXPECT_FALSE(baton.held());
  EXPECT_TRUE(baton.try_take());
  EXPECT_TRUE(baton.held());
  EXPECT_FALSE(baton.try_take());
  EXPECT_FALSE(baton.release());
  EXPECT_FALSE(baton.held());
  EXPECT_TRUE(baton.try_take_or_nudge());
  EXPECT_FALSE(baton.try_take());
  EXPECT_FALSE(baton.release());
}

TEST(Baton, ReportsANudgeOnceAndTheTakersOwnNever) {
  Baton baton;
  ASSERT_TRUE(baton.try_take_or_nudge());
  EXPECT_FALSE(baton.try_take_or_nudge());
  EXPECT_FALSE(baton.try_take_or_nudge());
  EXPECT_TRUE(baton.release());
  ASSERT_TRUE(baton.try_take());
  EXPECT_FALSE(baton.release());
}

TEST(Baton, AFailedTryTakeLeavesNoNudge) {
  Baton baton;
  ASSERT_TRUE(baton.try_take());
  EXPECT_FALSE(baton.try_take());
  EXPECT_FALSE(baton.release());
}

// Two threads publish work and do all work that they find. No work is stranded, and one thread at a time
// touches `inside`.
TEST(Baton, StrandsNoWorkUnderStress) {
  constexpr std::uint64_t kWorks = 100'000;
  struct Side {
    Baton baton;
    std::uint64_t inside = 0;
    std::array<std::uint64_t, 2> done{};
    std::array<std::atomic<std::uint64_t>, 2> published{};

    void run() {
      ++inside;
      for (std::size_t i = 0; i < 2; ++i) {
        done[i] = published[i].load(std::memory_order_relaxed);
      }
    }
    void leave_work(std::size_t index) {
      for (std::uint64_t work = 1; work <= kWorks; ++work) {
        published[index].store(work, std::memory_order_relaxed);
        if (!baton.try_take_or_nudge()) {
          continue;
        }
        do {
          run();
        } while (baton.release() && baton.try_take_or_nudge());
      }
    }
  } side;

  std::thread other([&] { side.leave_work(1); });
  side.leave_work(0);
  other.join();
  EXPECT_EQ(side.done[0], kWorks);
  EXPECT_EQ(side.done[1], kWorks);
  EXPECT_FALSE(side.baton.held());
}

// The thread that nearly always takes the baton has the bias, and loses it whenever the other thread comes.
TEST(Baton, StrandsNoWorkWhileTheBiasComesAndGoes) {
  constexpr int kTakes = 2'000'000;
  Baton baton;
  std::uint64_t inside = 0;
  std::uint64_t done = 0;  // the other thread's work that is done
  std::atomic<std::uint64_t> published{0};
  std::atomic<bool> ended{false};
  const auto run_while_nudged = [&] {
    do {
      ++inside;
      done = published.load(std::memory_order_relaxed);
    } while (baton.release() && baton.try_take_or_nudge());
  };
  std::uint64_t works = 0;
  std::thread other([&] {
    while (!ended.load() || works < 100) {
      published.store(++works, std::memory_order_relaxed);
      if (baton.try_take_or_nudge()) {
        run_while_nudged();
      }
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  });
  std::uint64_t taken = 0;
  for (int i = 0; i < kTakes; ++i) {
    if (!baton.try_take()) {
      continue;
    }
    ++taken;
    ++inside;
    if (baton.release() && baton.try_take_or_nudge()) {
      run_while_nudged();
    }
  }
  ended.store(true);
  other.join();
  EXPECT_EQ(done, works);
  EXPECT_FALSE(baton.held());
  EXPECT_GT(taken, 0u);
}

}  // namespace
}  // namespace weft::sync
