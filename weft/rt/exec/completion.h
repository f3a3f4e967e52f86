// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <cstdint>

#include "weft/base/time.h"
#include "weft/sync/atomic.h"
#include "weft/sys/futex.h"

namespace weft::rt {

// What a completion waits with: the machine here, the model checker's in the model test.
struct SystemCompletion {
  static sys::FutexResult futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t expected,
                                     Duration timeout) noexcept {
    return sys::futex_wait(word, expected, timeout);
  }
  static void futex_wake(std::atomic<std::uint32_t>& word) noexcept { sys::futex_wake(word, 1 << 30); }
};

// Completion: one word between a job and who awaits its result. It also says which of the two frees what they share.
// Owner: the shared block. Affinity: one job side, one future side. Cost: one read-modify-write for the job; one for
// the future side only when it waits, continues or leaves early; a system call only when a thread sleeps.
// Invariants:
//   (1) What the job wrote before complete() is seen by who finds it ready, and by who is told to free.
//   (2) Exactly one side frees: the future's, or the job's when the future left first.
//   (3) A continuation that was accepted is handed to complete(), once, or withdrawn, never both.
template <typename System>
class BasicCompletion {
 public:
  enum class Next : std::uint8_t {
    nothing,  // the block is the future side's now
    free,     // nobody is left to look: the caller frees the block
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
      System::futex_wake(word_);  // the block may be gone already: whoever waits there now looks again
    }
    return (word & kContinued) != 0 ? Next::resume : Next::nothing;
  }

  // --- future side ---

  [[nodiscard]] bool ready() const noexcept {
    return (word_.load(std::memory_order_acquire) & kReady) != 0;  // pairs with complete()
  }
  // Sleeps until it is ready, for `timeout` (negative: no limit) at most, or for no reason.
  sys::FutexResult sleep(Duration timeout) noexcept {
    // Relaxed: who is told that it is ready looks again by ready().
    const std::uint32_t word = word_.fetch_or(kWaiting, std::memory_order_relaxed);
    if ((word & kReady) != 0) {
      return sys::FutexResult::changed;
    }
    return System::futex_wait(word_, word | kWaiting, timeout);
  }
  // The continuation was stored. False: it is ready, and nobody will resume it.
  [[nodiscard]] bool try_continue() noexcept {
    // Release hands the continuation over; acquire pairs with complete().
    return (word_.fetch_or(kContinued, std::memory_order_acq_rel) & kReady) == 0;
  }
  // Takes back a continuation that was accepted. False: it is being resumed, or was.
  [[nodiscard]] bool try_withdraw() noexcept {
    // Relaxed: what the caller does next with the block goes through the word again, and of the result it looks at
    // nothing unless it is ready().
    return (word_.fetch_and(~kContinued, std::memory_order_relaxed) & kReady) == 0;
  }
  // Last call. True: the caller frees the block.
  [[nodiscard]] bool leave() noexcept {
    // Acquire pairs with complete(); release: what was done here comes before the job side frees.
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
