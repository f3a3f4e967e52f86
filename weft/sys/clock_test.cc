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
  const Instant start = now();
  const std::uint64_t start_ticks = ticks();
  while (now() - start < std::chrono::milliseconds(5)) {
  }
  const std::uint64_t measured_us = (ticks() - start_ticks) / per_us;
  EXPECT_GE(measured_us, 4000u);  // the thread may be preempted at the end, so only the lower bound is sharp
  EXPECT_LT(measured_us, 5'000'000u);
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
