// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include "weft/sync/atomic.h"

namespace weft::rt {

// Doorbell: one word with a bit for each of a core's mailboxes that has messages, and whether the core sleeps.
// Owner: the core.
// Affinity: ring(), shows() and sleeper() any thread; the rest the core's thread.
// Cost: one read-modify-write to ring, one to take the bits, one to fall asleep; shows(), sleeper(), rung() are a load.
// Use by the core: take(), work; without work try_sleep(), and if that is true, sleep; take() again.
// Invariants:
//   1. The take() that returns bits sees the writes before ring(bits).
//   2. A later take() returns the bits of a ring(), or ring() returns true and its caller ends the sleep. However many
//      threads ring for one sleep, one of them gets true.
class Doorbell {
 public:
  static constexpr unsigned kBits = 63;

  // Returns true if the caller wakes the core.
  [[nodiscard]] bool ring(std::uint64_t bits) noexcept {
    // Release pairs with the acquire in take().
    const std::uint64_t before = word_.fetch_or(bits, std::memory_order_release);
    // Relaxed: the fetch_and only elects the waker. It is a read-modify-write, so it continues the release sequences of
    // the others' bits.
    return (before & kAsleep) != 0 && (word_.fetch_and(~kAsleep, std::memory_order_relaxed) & kAsleep) != 0;
  }
  // Hints, for a sender that rings later in any case.
  [[nodiscard]] bool shows(std::uint64_t bits) const noexcept {
    return (word_.load(std::memory_order_relaxed) & bits) == bits;
  }
  [[nodiscard]] bool sleeper() const noexcept { return (word_.load(std::memory_order_relaxed) & kAsleep) != 0; }

  // --- the core's own ---

  [[nodiscard]] bool rung() const noexcept { return (word_.load(std::memory_order_relaxed) & ~kAsleep) != 0; }
  // The bits rung since the last take(). The core is awake afterwards.
  [[nodiscard]] std::uint64_t take() noexcept {
    if (word_.load(std::memory_order_relaxed) == 0) {
      return 0;
    }
    return word_.exchange(0, std::memory_order_acquire) & ~kAsleep;  // pairs with the release in ring()
  }
  // Returns false if a bit was rung; the core calls take().
  [[nodiscard]] bool try_sleep() noexcept {
    std::uint64_t expected = 0;
    // Relaxed: a ring() comes before this in the word's order, and this sees it, or after it, and sees the sleeper.
    return word_.compare_exchange_strong(expected, kAsleep, std::memory_order_relaxed, std::memory_order_relaxed);
  }

 private:
  static constexpr std::uint64_t kAsleep = std::uint64_t{1} << kBits;

  alignas(sync::kLineSize) sync::Atomic<std::uint64_t> word_{0};
};

}  // namespace weft::rt
