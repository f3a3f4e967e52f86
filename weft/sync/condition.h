// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>

#include "weft/base/time.h"
#include "weft/sys/clock.h"

namespace weft::sync {

// Sleeps once on the condition variable, for an hour at most; the caller checks its condition again. Returns false if
// the deadline has passed, and the call did not sleep.
// The standard library's wait_for() adds the time to its clock's: a long one overflows there, and does not wait.
[[nodiscard]] inline bool sleep_until(std::condition_variable& changed, std::unique_lock<std::mutex>& lock,
                                      Instant deadline) {
  constexpr Duration kLongest = std::chrono::hours(1);
  if (deadline == kNever) {
    changed.wait(lock);
    return true;
  }
  const Duration left = time_left(deadline, sys::now());
  if (left == Duration::zero()) {
    return false;
  }
  changed.wait_for(lock, std::min(left, kLongest));
  return true;
}

}  // namespace weft::sync
