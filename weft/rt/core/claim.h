// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>

#include "weft/sync/atomic.h"

namespace weft::rt {

// Claim: two threads of which one may have something: the core that is about to begin a call, and the one that is about
// to give it up. Owner: what they share. Affinity: any thread. Cost: one read-modify-write.
// Invariant: take() says true once. It orders nothing else: what goes with it was handed over by a lane before, and
// comes back by one.
class Claim {
 public:
  Claim() noexcept = default;
  Claim(const Claim&) = delete;
  Claim& operator=(const Claim&) = delete;

  // Relaxed, its partner is the other thread's call of this: all that matters is the order of the two in one word.
  [[nodiscard]] bool take() noexcept { return !taken_.exchange(true, std::memory_order_relaxed); }

 private:
  sync::Atomic<bool> taken_{false};
};

}  // namespace weft::rt
