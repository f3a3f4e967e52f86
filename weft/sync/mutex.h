// SPDX-License-Identifier: MIT
#pragma once

#include "weft/sync/baton.h"
#include "weft/sync/lock.h"

namespace weft::sync {

// Mutex: a baton that threads can wait for; Lockable, as std::mutex. For data that one thread locks nearly
// always.
// Affinity: any thread. Cost: as the baton: plain loads and stores only, while it is biased towards the
// locking thread. A system call for a thread that must wait, and one to wake it. Not recursive, not fair.
template <typename System>
class WEFT_CAPABILITY("mutex") BasicMutex : private BasicBaton<System> {
  using Base = BasicBaton<System>;

 public:
  void lock() noexcept WEFT_ACQUIRE() {
    if (!Base::try_take()) {
      wait();
    }
  }
  [[nodiscard]] bool try_lock() noexcept WEFT_TRY_ACQUIRE(true) { return Base::try_take(); }
  // Holder only: whether another thread waits for the mutex. May stay true until unlock().
  [[nodiscard]] bool wanted() const noexcept {
    // Relaxed: a hint. unlock() wakes the thread in any case.
    return (Base::state_.load(std::memory_order_relaxed) & Base::kNudged) != 0;
  }
  void unlock() noexcept WEFT_RELEASE() {
    if (Base::release()) [[unlikely]] {
      System::futex_wake(Base::state_);
    }
  }

 private:
  void wait() noexcept {
    // The nudge stays when this thread gets in: other threads may wait, and only an unlock() that finds the
    // nudge wakes them.
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
