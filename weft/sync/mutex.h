// SPDX-License-Identifier: MIT
#pragma once

#include "weft/sync/baton.h"

namespace weft::sync {

// Mutex: a baton that can be waited for; Lockable, as std::mutex. For what one thread locks nearly always.
// Affinity: any thread. Cost: as the baton, so nothing but plain loads and stores while it is biased towards the thread
// that locks it; a system call when somebody has to wait, and one to wake it. Not recursive, not fair.
template <typename System>
class BasicMutex : private BasicBaton<System> {
  using Base = BasicBaton<System>;

 public:
  void lock() noexcept {
    if (!Base::try_take()) {
      wait();
    }
  }
  [[nodiscard]] bool try_lock() noexcept { return Base::try_take(); }
  void unlock() noexcept {
    if (Base::release()) [[unlikely]] {
      System::futex_wake(Base::state_);
    }
  }

 private:
  void wait() noexcept {
    // The nudge stays when we get in: there may be others, and only its finder wakes them.
    while (!Base::take(Base::kHeld | Base::kNudged)) {
      // Relaxed: the kernel compares the word again.
      const std::uint32_t word = Base::state_.load(std::memory_order_relaxed);
      if ((word & Base::kNudged) != 0) {
        System::futex_wait(Base::state_, word);
      }
    }
  }
};

using Mutex = BasicMutex<SystemBaton>;

}  // namespace weft::sync
