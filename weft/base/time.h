// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <cstdint>

namespace weft {

// Monotonic time. base/ has no clock: sys::now() makes Instants, and all other code takes them as arguments.
using Duration = std::chrono::nanoseconds;
struct MonotonicClock {
  using duration = Duration;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<MonotonicClock, Duration>;
  static constexpr bool is_steady = true;
};
using Instant = MonotonicClock::time_point;

inline constexpr Instant kNever = Instant::max();  // a deadline that never passes

// `start + wait` that saturates at kNever; a negative wait means for ever.
[[nodiscard]] constexpr Instant deadline_after(Instant start, Duration wait) noexcept {
  if (wait < Duration::zero() || (start > Instant() && wait > kNever - start)) {
    return kNever;
  }
  return start + wait;
}

}  // namespace weft
