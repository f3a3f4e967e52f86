// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include "weft/base/time.h"
#include "weft/sync/atomic.h"
#include "weft/sync/parker.h"

namespace weft::rt {

// DropCount: the number of threads that destroy dropped jobs of an executor. Its stop() waits for them.
// Owner: the shared state of the executor's threads; the caller of end() keeps it alive until the call returns.
// Affinity: any thread.
// Cost: a read-modify-write each; a system call when a thread waits.
// Invariants:
//   1. A thread calls begin() before another can find that the jobs wait no more. So one that found it, in whatever
//      way, and then finds none(), sees that the jobs were destroyed.
//   2. The last end() wakes every thread that waits.
template <typename System>
class BasicDropCount {
 public:
  void begin() noexcept {
    // Acquire pairs with the release in none(): if that call came first, everything visible to its caller happened
    // before this. So the thread's next work was invisible to the caller.
    running_.fetch_add(1, std::memory_order_acq_rel);
  }
  void end() noexcept {
    if (running_.fetch_sub(1, std::memory_order_release) == 1) {  // pairs with the acquire in none()
      over_.wake_with_fence();
    }
  }
  // A read-modify-write, so that it comes before a begin(), or sees it.
  [[nodiscard]] bool none() noexcept { return running_.fetch_add(0, std::memory_order_acq_rel) == 0; }

  // Waits until none() or until time_left() returns zero, and returns false in the second case. A negative time is not
  // a bound.
  template <typename Left>
  [[nodiscard]] bool wait_until_none(Left time_left) noexcept {
    for (;;) {
      const auto ticket = over_.announce_futex(false);
      if (none()) {
        return true;
      }
      const Duration left = time_left();
      if (left == Duration::zero()) {
        return false;
      }
      over_.sleep(ticket, left);
    }
  }

 private:
  sync::Atomic<std::uint32_t> running_{0};
  sync::BasicParker<System> over_;
};

using DropCount = BasicDropCount<sync::SystemWait>;

}  // namespace weft::rt
