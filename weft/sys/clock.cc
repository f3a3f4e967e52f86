// SPDX-License-Identifier: MIT
#include "weft/sys/clock.h"

#include <time.h>

#include <algorithm>

namespace weft::sys {
namespace detail {

std::uint64_t clock_nanoseconds() noexcept {
  timespec spec{};
  ::clock_gettime(CLOCK_MONOTONIC, &spec);  // cannot fail: the clock exists and the pointer is good
  return static_cast<std::uint64_t>(spec.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(spec.tv_nsec);
}

}  // namespace detail

namespace {

Duration read_clock(clockid_t clock) noexcept {
  timespec spec{};
  ::clock_gettime(clock, &spec);
  return std::chrono::seconds(spec.tv_sec) + Duration(spec.tv_nsec);
}

#if defined(__x86_64__)
struct Sample {
  std::uint64_t ticks;
  std::uint64_t nanoseconds;
};

// Both clocks at one moment: of eight pairs, the one that was read with the least delay in between.
Sample sample_clocks() noexcept {
  Sample best{};
  std::uint64_t best_gap = ~std::uint64_t{0};
  for (int attempt = 0; attempt < 8; ++attempt) {
    const std::uint64_t before = ticks();
    const std::uint64_t nanoseconds = detail::clock_nanoseconds();
    const std::uint64_t gap = ticks() - before;
    if (gap < best_gap) {
      best_gap = gap;
      best = {before + gap / 2, nanoseconds};
    }
  }
  return best;
}

std::uint64_t measure_ticks_per_us() noexcept {
  constexpr std::uint64_t kMeasuredNanoseconds = 200'000;
  const Sample start = sample_clocks();
  while (detail::clock_nanoseconds() - start.nanoseconds < kMeasuredNanoseconds) {
  }
  const Sample end = sample_clocks();
  return (end.ticks - start.ticks) * 1000 / (end.nanoseconds - start.nanoseconds);
}
#elif defined(__aarch64__)
std::uint64_t measure_ticks_per_us() noexcept {
  std::uint64_t hertz;
  asm volatile("mrs %0, cntfrq_el0" : "=r"(hertz));
  return hertz / 1'000'000;
}
#else
std::uint64_t measure_ticks_per_us() noexcept { return 1000; }
#endif

}  // namespace

Instant now() noexcept { return Instant(Duration(static_cast<Duration::rep>(detail::clock_nanoseconds()))); }

std::chrono::sys_time<Duration> wall_now() noexcept {
  return std::chrono::sys_time<Duration>(read_clock(CLOCK_REALTIME));
}

Duration since_boot() noexcept { return read_clock(CLOCK_BOOTTIME); }

std::uint64_t ticks_per_us() noexcept {
  static const std::uint64_t value = std::max<std::uint64_t>(1, measure_ticks_per_us());
  return value;
}

Duration time_between(std::uint64_t from, std::uint64_t until) noexcept {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 50;  // days; a thousand times as much does not overflow
  const std::uint64_t ticks = until > from ? std::min(until - from, kMost) : 0;
  return Duration(static_cast<Duration::rep>(ticks * 1000 / ticks_per_us()));
}

}  // namespace weft::sys
