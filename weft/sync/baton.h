// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include "weft/sync/atomic.h"

namespace weft::sync {

// Baton: who holds it runs one side of a connection; nobody ever waits for it.
// Affinity: any thread. Cost: one read-modify-write to take (two with a nudge), one to give back.
// Use: a thread with work for the side either takes the baton and does the work, or fails and leaves a nudge. The
// holder learns of nudges when it gives the baton back, and then must look for work again:
//
//   if (!baton.try_take_or_nudge()) return;      // the holder will do it
//   do { work(); } while (baton.release() && baton.try_take_or_nudge());
//
// Invariants:
//   (1) At most one holder.
//   (2) Work published before a failed try_take_or_nudge() is seen by the holder's next work(), or by whoever takes
//       the baton after it: the nudge and the release are both read-modify-writes of one word.
class Baton {
 public:
  [[nodiscard]] bool try_take() noexcept {
    // Looking first keeps a busy baton's line shared. Acquire pairs with the release half of release().
    return (state_.load(std::memory_order_relaxed) & kHeld) == 0 &&
           (state_.fetch_or(kHeld, std::memory_order_acquire) & kHeld) == 0;
  }

  [[nodiscard]] bool try_take_or_nudge() noexcept {
    // Release publishes our work to the holder: its release() or, when it has only just come, its fetch_and reads this.
    if ((state_.fetch_or(kHeld | kNudged, std::memory_order_release) & kHeld) != 0) {
      return false;
    }
    // Ours to clear: what was nudged for is done by us now. Acquire pairs with release() of the last holder and with
    // the nudge above: the one that goes here may be another thread's, left since we took the baton.
    state_.fetch_and(~kNudged, std::memory_order_acquire);
    return true;
  }

  // Holder only. True when somebody nudged meanwhile: take again or nudge, and look for work.
  [[nodiscard]] bool release() noexcept {
    // acq_rel: publishes what we did to the next holder, and sees what a nudger published before its nudge.
    return (state_.exchange(0, std::memory_order_acq_rel) & kNudged) != 0;
  }

  [[nodiscard]] bool held() const noexcept { return (state_.load(std::memory_order_relaxed) & kHeld) != 0; }

 private:
  static constexpr std::uint32_t kHeld = 1;
  static constexpr std::uint32_t kNudged = 2;

  Atomic<std::uint32_t> state_{0};
};

}  // namespace weft::sync
