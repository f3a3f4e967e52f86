// SPDX-License-Identifier: MIT
#include "weft/sys/clock.h"

#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace weft::sys {
namespace {

TEST(Clock, NeverGoesBack) {
  Instant previous = now();
  for (int i = 0; i < 10000; ++i) {
    const Instant current = now();
    ASSERT_GE(current, previous);
    previous = current;
  }
}

TEST(Clock, TicksAgreeWithTheClock) {
  const std::uint64_t per_us = ticks_per_us();
  ASSERT_GE(per_us, 1u);
  // The thread may be preempted anywhere: the ticks count more than one duration and less than another.
  const Instant before = now();
  const std::uint64_t start_ticks = ticks();
  const Instant start = now();
  while (now() - start < std::chrono::milliseconds(5)) {
  }
  const Duration measured = std::chrono::microseconds((ticks() - start_ticks) / per_us);
  EXPECT_GE(measured, std::chrono::milliseconds(4));
  EXPECT_LE(measured, 2 * (now() - before));
}

TEST(Clock, TheTimeBetweenTicksIsThatOfTheirCalibrationAndNeverNegative) {
  const std::uint64_t per_us = ticks_per_us();
  EXPECT_EQ(time_between(1000, 1000 + 7 * per_us), std::chrono::microseconds(7));
  EXPECT_EQ(time_between(1000, 999), Duration::zero());
  EXPECT_EQ(time_between(5, 5), Duration::zero());
  EXPECT_GT(time_between(0, ~std::uint64_t{0}), std::chrono::hours(24));
}

TEST(Clock, EveryThreadGetsTheSameCalibration) {
  std::vector<std::uint64_t> values(4);
  std::vector<std::thread> threads;
  for (auto& value : values) {
    threads.emplace_back([&value] { value = ticks_per_us(); });
  }
  for (auto& thread : threads) {
    thread.join();
  }
  for (const auto value : values) {
    EXPECT_EQ(value, ticks_per_us());
  }
}

}  // namespace
}  // namespace weft::sys
