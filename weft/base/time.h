// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <concepts>
#include <cstdint>

namespace weft {

// Monotonic time. base/ has no clock: sys::now() makes Instants, and all other code takes them as arguments.
// Sums and differences of Instants saturate: a deadline of Instant::min(), which means "at once", and one of kNever
// may be compared, added to and subtracted from like any other.
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

namespace detail {
[[nodiscard]] constexpr Duration saturated_sum(Duration a, Duration b) noexcept {
  Duration::rep sum = 0;
  if (__builtin_add_overflow(a.count(), b.count(), &sum)) [[unlikely]] {
    return b < Duration::zero() ? Duration::min() : Duration::max();
  }
  return Duration(sum);
}
[[nodiscard]] constexpr Duration saturated_difference(Duration a, Duration b) noexcept {
  Duration::rep difference = 0;
  if (__builtin_sub_overflow(a.count(), b.count(), &difference)) [[unlikely]] {
    return b < Duration::zero() ? Duration::max() : Duration::min();
  }
  return Duration(difference);
}
}  // namespace detail

// The compiler prefers these to the operators of std::chrono, in every namespace: MonotonicClock is of this one, and
// the types are more special.
[[nodiscard]] constexpr Duration operator-(Instant a, Instant b) noexcept {
  return detail::saturated_difference(a.time_since_epoch(), b.time_since_epoch());
}
template <typename Rep, typename Period>
  requires std::convertible_to<std::chrono::duration<Rep, Period>, Duration>
[[nodiscard]] constexpr Instant operator+(Instant start, std::chrono::duration<Rep, Period> wait) noexcept {
  return Instant(detail::saturated_sum(start.time_since_epoch(), wait));
}
template <typename Rep, typename Period>
  requires std::convertible_to<std::chrono::duration<Rep, Period>, Duration>
[[nodiscard]] constexpr Instant operator+(std::chrono::duration<Rep, Period> wait, Instant start) noexcept {
  return start + wait;
}
template <typename Rep, typename Period>
  requires std::convertible_to<std::chrono::duration<Rep, Period>, Duration>
[[nodiscard]] constexpr Instant operator-(Instant start, std::chrono::duration<Rep, Period> wait) noexcept {
  return Instant(detail::saturated_difference(start.time_since_epoch(), wait));
}

// `start + wait`; a negative wait means for ever.
[[nodiscard]] constexpr Instant deadline_after(Instant start, Duration wait) noexcept {
  return wait < Duration::zero() ? kNever : start + wait;
}

// The longest duration of a wait until `deadline`: negative (for ever) for kNever, zero if the deadline has passed. The
// waiting calls of sys, sync and rt take such a duration.
[[nodiscard]] constexpr Duration time_left(Instant deadline, Instant now) noexcept {
  if (deadline == kNever) {
    return Duration(-1);
  }
  return deadline > now ? deadline - now : Duration::zero();
}

}  // namespace weft
