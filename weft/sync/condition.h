// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>

#include "weft/base/time.h"
#include "weft/sync/lock.h"
#include "weft/sys/clock.h"

namespace weft::sync {

// Condition: std::condition_variable, for guards that clang checks. A wait has no predicate: the caller loops, so that
// clang sees the guarded members beside their lock.
class Condition {
 public:
  void notify_one() noexcept { changed_.notify_one(); }
  void notify_all() noexcept { changed_.notify_all(); }

  // Sleeps until a notification, or less.
  void wait(UniqueLock<StdMutex>& lock) {
    std::unique_lock inner(lock.mutex().native(), std::adopt_lock);
    changed_.wait(inner);
    (void)inner.release();
  }
  void wait_for(UniqueLock<StdMutex>& lock, Duration longest) {
    std::unique_lock inner(lock.mutex().native(), std::adopt_lock);
    changed_.wait_for(inner, longest);
    (void)inner.release();
  }

 private:
  std::condition_variable changed_;
};

// Sleeps once on the condition, for an hour at most; the caller checks its condition again. Returns false if the
// deadline has passed, and the call did not sleep.
// The standard library's wait_for() adds the time to its clock's: a long one overflows there, and does not wait.
[[nodiscard]] inline bool sleep_until(Condition& changed, UniqueLock<StdMutex>& lock, Instant deadline) {
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
