// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>

#include "weft/sync/atomic.h"

namespace weft::rt {

// Claim: decides between two threads: the core that is about to begin a call, and the core that is about to give it up.
// Owner: the block that the two share.
// Affinity: any thread.
// Cost: one read-modify-write.
// Invariants:
//   1. take() returns true once. It orders no other memory: a lane handed the call over before, and a lane brings the
//      reply back.
class Claim {
 public:
  Claim() noexcept = default;
  Claim(const Claim&) = delete;
  Claim& operator=(const Claim&) = delete;

  // Relaxed; its partner is the other thread's take(). Only the order of the two in one word matters.
  [[nodiscard]] bool take() noexcept { return !taken_.exchange(true, std::memory_order_relaxed); }

 private:
  sync::Atomic<bool> taken_{false};
};

}  // namespace weft::rt
