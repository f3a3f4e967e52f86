// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include "weft/base/time.h"

namespace weft::sys {

// CLOCK_MONOTONIC. Any thread, no system call (vDSO), about 25 ns.
[[nodiscard]] Instant now() noexcept;

// The time of day, CLOCK_REALTIME: it jumps if the clock is set.
[[nodiscard]] std::chrono::sys_time<Duration> wall_now() noexcept;
// The time since the system was started, with the time that it slept: CLOCK_BOOTTIME.
[[nodiscard]] Duration since_boot() noexcept;

namespace detail {
[[nodiscard]] std::uint64_t clock_nanoseconds() noexcept;
}

// A counter for the hot path: rdtsc on x86-64, cntvct on arm64, otherwise nanoseconds of the monotonic clock. Not
// serialising: use it for spin budgets and rough ages, never for deadlines.
[[nodiscard]] inline std::uint64_t ticks() noexcept {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
  std::uint64_t value;
  asm volatile("mrs %0, cntvct_el0" : "=r"(value));
  return value;
#else
  return detail::clock_nanoseconds();
#endif
}

// Ticks in a microsecond, at least 1. The first call measures for about 200 us on x86-64; later calls are one load.
[[nodiscard]] std::uint64_t ticks_per_us() noexcept;

// The time between two readings of ticks(), for statistics; zero if the second one is less. Cost: a division.
[[nodiscard]] Duration time_between(std::uint64_t from, std::uint64_t until) noexcept;

}  // namespace weft::sys
