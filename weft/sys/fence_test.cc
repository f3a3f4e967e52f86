// SPDX-License-Identifier: MIT
#include "weft/sys/fence.h"

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <thread>
#include <vector>

#include "weft/sys/clock.h"
#include <gtest/gtest.h>

namespace weft::sys {
namespace {

// Dekker's pattern, free-running. Two threads each count in a word of their own, fence, and read the other's
// word. Suppose thread A, at count `a`, still read `b` in the other word. Then thread B's read after storing
// `b + 1` must return `a` or more. Returns the number of violations.
template <typename FenceA, typename FenceB>
int count_missed_stores(FenceA fence_a, FenceB fence_b) {
  constexpr std::uint32_t kMaxRounds = 1'000'000;  // a heavy fence takes a microsecond or more: kEnough ends it earlier
  constexpr Duration kEnough = std::chrono::milliseconds(30);
  alignas(64) std::atomic<std::uint32_t> word_a{0};
  alignas(64) std::atomic<std::uint32_t> word_b{0};
  std::atomic<bool> ended{false};
  std::vector<std::uint32_t> latest_a_that_saw(kMaxRounds + 1);             // indexed by b
  std::vector<std::uint32_t> a_seen_by(kMaxRounds + 1, ~std::uint32_t{0});  // indexed by b
  std::thread other([&] {
    while (word_a.load() == 0) {  // until the first thread runs
      std::this_thread::yield();
    }
    const Instant start = now();
    for (std::uint32_t b = 1; b <= kMaxRounds && (b % 64 != 0 || now() - start < kEnough); ++b) {
      word_b.store(b, std::memory_order_relaxed);
      fence_b();
      a_seen_by[b] = word_a.load(std::memory_order_relaxed);
    }
    ended.store(true, std::memory_order_release);
  });
  for (std::uint32_t a = 1; !ended.load(std::memory_order_acquire); ++a) {
    word_a.store(a, std::memory_order_relaxed);
    fence_a();
    latest_a_that_saw[word_b.load(std::memory_order_relaxed)] = a;
  }
  other.join();
  int missed = 0;
  for (std::uint32_t b = 0; b < kMaxRounds; ++b) {
    missed += a_seen_by[b + 1] < latest_a_that_saw[b] ? 1 : 0;
  }
  return missed;
}

// Several starts: the relative timing of the two threads decides how often a missing fence would show.
constexpr int kBursts = 8;

TEST(Fence, LightAndHeavyOrderAStoreBeforeALoad) {
  for (int burst = 0; burst < kBursts; ++burst) {
    EXPECT_EQ(count_missed_stores([] { light_fence(); }, [] { heavy_fence(); }), 0);
  }
}

TEST(Fence, FullFencesOrderAStoreBeforeALoad) {
  for (int burst = 0; burst < kBursts; ++burst) {
    EXPECT_EQ(count_missed_stores([] { full_fence(); }, [] { full_fence(); }), 0);
  }
}

TEST(Fence, TheEnvironmentForcesFullFences) {
  const char* disabled = std::getenv("WEFT_NO_MEMBARRIER");
  if (disabled != nullptr && std::string_view(disabled) == "1") {
    EXPECT_FALSE(asymmetric_fences());
  }
  EXPECT_EQ(asymmetric_fences(), asymmetric_fences());
}

TEST(FenceDeathTest, ForcedFullFencesAreSeenByANewProcess) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";  // a new process: the mode is decided once per process
  ::setenv("WEFT_NO_MEMBARRIER", "1", 1);
  EXPECT_EXIT(
      {
        light_fence();
        heavy_fence();
        std::exit(asymmetric_fences() ? 1 : 0);
      },
      testing::ExitedWithCode(0), "");
  ::unsetenv("WEFT_NO_MEMBARRIER");
}

}  // namespace
}  // namespace weft::sys
