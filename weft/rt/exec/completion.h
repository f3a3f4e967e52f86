// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <cstdint>

#include "weft/base/time.h"
#include "weft/sync/atomic.h"
#include "weft/sys/futex.h"

namespace weft::rt {

// SystemCompletion: the futex of a completion: the system's here, the model checker's in the model test.
struct SystemCompletion {
  static sys::FutexResult futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t expected,
                                     Duration timeout) noexcept {
    return sys::futex_wait(word, expected, timeout);
  }
  static void futex_wake(std::atomic<std::uint32_t>& word) noexcept { sys::futex_wake(word, 1 << 30); }
};

// Completion: one word between a job and its future. The word also decides which of the two frees the shared block.
// Owner: the shared block.
// Affinity: one job side, one future side.
// Cost: one read-modify-write for the job; one for the future side only when it waits, continues or leaves early; a
// system call only when a thread sleeps.
// Invariants:
//   1. The side that finds the word ready, and the side that frees, see the job's writes before complete().
//   2. Exactly one side frees: the future's, or the job's when the future left first.
//   3. A continuation that was accepted is resumed by complete()'s caller, once, or withdrawn, never both.
template <typename System>
class BasicCompletion {
 public:
  enum class Next : std::uint8_t {
    nothing,  // the block is the future side's now
    free,     // the future side has left: the caller frees the block
    resume,   // the caller resumes the continuation
  };

  BasicCompletion() noexcept = default;
  BasicCompletion(const BasicCompletion&) = delete;
  BasicCompletion& operator=(const BasicCompletion&) = delete;

  // Job side, once.
  [[nodiscard]] Next complete() noexcept {
    // Release pairs with the acquires below; acquire with the releases of leave() and try_continue().
    const std::uint32_t word = word_.fetch_or(kReady, std::memory_order_acq_rel);
    if ((word & kLeft) != 0) {
      return Next::free;
    }
    if ((word & kWaiting) != 0) {
      System::futex_wake(word_);  // the block may be freed and used again: a thread that waits there now checks again
    }
    return (word & kContinued) != 0 ? Next::resume : Next::nothing;
  }

  // --- future side ---

  [[nodiscard]] bool ready() const noexcept {
    return (word_.load(std::memory_order_acquire) & kReady) != 0;  // pairs with complete()
  }
  // Sleeps until the word is ready, at most for `timeout` (negative: no limit). May return early without a reason.
  sys::FutexResult sleep(Duration timeout) noexcept {
    // Relaxed: after `changed` the caller calls ready(), which acquires.
    const std::uint32_t word = word_.fetch_or(kWaiting, std::memory_order_relaxed);
    if ((word & kReady) != 0) {
      return sys::FutexResult::changed;
    }
    return System::futex_wait(word_, word | kWaiting, timeout);
  }
  // After the continuation was stored. Returns false if the result is ready, and the job side does not resume the
  // continuation.
  [[nodiscard]] bool try_continue() noexcept {
    // Release hands the continuation over; acquire pairs with complete().
    return (word_.fetch_or(kContinued, std::memory_order_acq_rel) & kReady) == 0;
  }
  // Takes back a continuation that was accepted. Returns false if the job side resumes it now, or has resumed it.
  [[nodiscard]] bool try_withdraw() noexcept {
    // Relaxed: the caller's next use of the block passes through the word again, and the caller reads the result only
    // after ready().
    return (word_.fetch_and(~kContinued, std::memory_order_relaxed) & kReady) == 0;
  }
  // Last call. Returns true if the caller frees the block.
  [[nodiscard]] bool leave() noexcept {
    // Acquire pairs with complete(); release: the future side's uses of the block come before the job side frees.
    return ready() || (word_.fetch_or(kLeft, std::memory_order_acq_rel) & kReady) != 0;
  }

 private:
  static constexpr std::uint32_t kReady = 1;
  static constexpr std::uint32_t kWaiting = 2;
  static constexpr std::uint32_t kContinued = 4;
  static constexpr std::uint32_t kLeft = 8;

  sync::Atomic<std::uint32_t> word_{0};
};

using Completion = BasicCompletion<SystemCompletion>;

}  // namespace weft::rt
