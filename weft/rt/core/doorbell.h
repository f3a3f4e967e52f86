// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include "weft/sync/atomic.h"

namespace weft::rt {

// Doorbell: one word that says which of a core's mailboxes have something, and whether the core sleeps.
// Owner: the core. Affinity: ring(), shows() and sleeper() any thread; the rest the core's thread.
// Cost: one read-modify-write to ring, one to take what was rung, one to fall asleep; looking is a load.
// Use by the core: take(), work; when there is nothing, try_sleep(), and if that is true, sleep; take() again.
// Invariants:
//   (1) What was written before ring(bits) is seen by the take() that returns those bits.
//   (2) A ring() is either returned by a later take(), with the core awake, or it answers true: then its caller ends
//       the sleep. However many ring one sleeper, one of them is told to.
class Doorbell {
 public:
  static constexpr unsigned kBits = 63;

  // True: the caller wakes the core.
  [[nodiscard]] bool ring(std::uint64_t bits) noexcept {
    // Release pairs with the acquire in take().
    const std::uint64_t before = word_.fetch_or(bits, std::memory_order_release);
    // Relaxed: it only decides who wakes. Others' bits stay released, as a read-modify-write goes on with their
    // release.
    return (before & kAsleep) != 0 && (word_.fetch_and(~kAsleep, std::memory_order_relaxed) & kAsleep) != 0;
  }
  // Hints for who will ring later in any case.
  [[nodiscard]] bool shows(std::uint64_t bits) const noexcept {
    return (word_.load(std::memory_order_relaxed) & bits) == bits;
  }
  [[nodiscard]] bool sleeper() const noexcept { return (word_.load(std::memory_order_relaxed) & kAsleep) != 0; }

  // --- the core's own ---

  [[nodiscard]] bool rung() const noexcept { return (word_.load(std::memory_order_relaxed) & ~kAsleep) != 0; }
  // What was rung since the last time; the core is awake.
  [[nodiscard]] std::uint64_t take() noexcept {
    if (word_.load(std::memory_order_relaxed) == 0) {
      return 0;
    }
    return word_.exchange(0, std::memory_order_acquire) & ~kAsleep;  // pairs with the release in ring()
  }
  // False: something was rung; take() it.
  [[nodiscard]] bool try_sleep() noexcept {
    std::uint64_t expected = 0;
    // Relaxed: a ring() comes before this in the word's order, and is seen, or behind it, and sees the sleeper.
    return word_.compare_exchange_strong(expected, kAsleep, std::memory_order_relaxed, std::memory_order_relaxed);
  }

 private:
  static constexpr std::uint64_t kAsleep = std::uint64_t{1} << kBits;

  alignas(sync::kLineSize) sync::Atomic<std::uint64_t> word_{0};
};

}  // namespace weft::rt
