// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstdint>

#include "weft/sync/atomic.h"
#include "weft/sync/thread_safety.h"
#include "weft/sys/fence.h"
#include "weft/sys/futex.h"
#include "weft/sys/thread_id.h"

namespace weft::sync {

// The operations that a baton needs of the machine. The model test replaces them by the model checker's.
struct SystemBaton {
  // A bias saves about 5 ns per taking, and ending it costs about 10 us.
  static constexpr std::uint32_t kTakesToBias = 256;
  static constexpr std::uint32_t kTakesToBiasMax = 16'384;

  static std::uintptr_t self() noexcept { return sys::thread_id(); }
  static void light_fence() noexcept { sys::light_fence(); }
  static void heavy_fence() noexcept { sys::heavy_fence(); }
  static void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t expected) noexcept {
    (void)sys::futex_wait(word, expected, Duration(-1));
  }
  static void futex_wake(std::atomic<std::uint32_t>& word) noexcept { sys::futex_wake(word, 1 << 30); }
};

// Baton: the right to run one side of a connection. One thread holds it at a time; no thread ever waits for
// it.
// Affinity: any thread. Cost: one read-modify-write to take (two with a nudge), one to give back. None of
// them while the baton is biased. It is biased towards a thread that took it often and alone, until another
// thread takes it or nudges.
// Use: a thread with work for the side either takes the baton and does the work, or fails and leaves a nudge.
// The holder learns of nudges when it gives the baton back, and must then check for work again:
//
//   if (!baton.try_take_or_nudge()) return;      // the holder will do it
//   do { work(); } while (baton.release() && baton.try_take_or_nudge());
//
// How the bias works: the biased thread owns a seat. To take the baton it marks the seat and then checks that
// the bias still stands. To end the bias, a thread that has kHeld clears it and then reads the mark. The
// biased thread uses a light fence, the other a heavy fence: at least one of the two sees the other.
// Invariants:
// 1. At most one holder.
// 2. The holder's next work(), or that of the next holder, sees work that was published before a failed
//    try_take_or_nudge(). Reason: the nudge and the release are both read-modify-writes of one word, and a
//    biased holder makes one as soon as its bias has ended.
// 3. A seat belongs to one thread for ever, so that a late entry to a seat disturbs no other thread.
template <typename System>
class WEFT_CAPABILITY("baton") BasicBaton {
 public:
  BasicBaton() noexcept = default;
  BasicBaton(const BasicBaton&) = delete;
  BasicBaton& operator=(const BasicBaton&) = delete;

  [[nodiscard]] bool try_take() noexcept WEFT_TRY_ACQUIRE(true) {
    const Entry entry = enter();
    if (entry == Entry::inside) [[likely]] {
      return true;
    }
    // Reading held() first keeps a busy baton's cache line shared, and its bias. An expelled thread must go
    // through state_: the thread that ended the bias may have seen its mark and left a nudge.
    return (entry == Entry::expelled || !held()) && take(kHeld);
  }

  [[nodiscard]] bool try_take_or_nudge() noexcept WEFT_TRY_ACQUIRE(true) {
    if (enter() == Entry::inside) [[likely]] {
      return true;
    }
    if (!take(kHeld | kNudged)) {
      return false;
    }
    // The holder clears the nudge, since its own work() now does the nudge's work. Acquire pairs with the nudge in
    // take(): the nudge that is cleared may be another thread's, left since this thread took the baton.
    state_.fetch_and(~kNudged, std::memory_order_acquire);
    return true;
  }

  // Holder only. Returns true if a thread nudged meanwhile. The caller calls try_take_or_nudge() again and checks for
  // work.
  [[nodiscard]] bool release() noexcept WEFT_RELEASE() {
    if (Seat* const seat = seat_; seat != nullptr) [[likely]] {
      // Release publishes the holder's work to a thread that ends the bias and finds the seat empty.
      seat->inside.store(0, std::memory_order_release);
      System::light_fence();  // pairs with the heavy fence in take()
      // Relaxed: the thread that ended the bias changed state_ before, and both threads change state_ with
      // acq_rel.
      if (bias_.load(std::memory_order_relaxed) == seat) [[likely]] {
        return false;
      }
      // acq_rel: a thread that gives kHeld back after this sees the seat empty; this thread sees the nudger's
      // work.
      return (state_.fetch_and(~kNudged, std::memory_order_acq_rel) & kNudged) != 0;
    }
    consider_bias();
    // acq_rel: publishes the holder's work to the next holder, and sees the work that a nudger published
    // before its nudge.
    return (state_.exchange(0, std::memory_order_acq_rel) & kNudged) != 0;
  }

  // A hint only, unless no thread is using the baton.
  [[nodiscard]] bool held() const noexcept {
    const Seat* seat = bias_.load(std::memory_order_relaxed);
    return (state_.load(std::memory_order_relaxed) & kHeld) != 0 ||
           (seat != nullptr && seat->inside.load(std::memory_order_relaxed) != 0);
  }

 protected:
  static constexpr std::uint32_t kHeld = 1;
  static constexpr std::uint32_t kNudged = 2;

  // `bits`: kHeld, plus kNudged if a failed take shall leave a nudge for the holder.
  [[nodiscard]] bool take(std::uint32_t bits) noexcept {
    for (;;) {
      // Acquire pairs with release() of the last holder. Release publishes the nudger's work to the holder
      // that sees the nudge.
      if ((state_.fetch_or(bits, std::memory_order_acq_rel) & kHeld) != 0) {
        return false;
      }
      if (Seat* const biased = bias_.load(std::memory_order_relaxed); biased != nullptr) {
        bias_.store(nullptr, std::memory_order_relaxed);
        System::heavy_fence();  // pairs with the light fences in enter() and release()
        last_seat_ = biased;
        takes_to_bias_ = std::min(takes_to_bias_ * 2, System::kTakesToBiasMax);
      }
      Seat* const seat = last_seat_;
      // Acquire pairs with the release store of a biased holder in release().
      if (seat == nullptr || seat->inside.load(std::memory_order_acquire) == 0) {
        seat_ = nullptr;
        return true;
      }
      // The biased thread is inside. acq_rel: either that thread finds kHeld gone and the nudge set, or this
      // thread finds the seat empty.
      state_.fetch_and(~kHeld, std::memory_order_acq_rel);
      if (seat->inside.load(std::memory_order_relaxed) != 0) {
        return false;
      }
    }
  }

  Atomic<std::uint32_t> state_{0};

 private:
  static constexpr int kSeats = 3;  // threads that can ever have the bias

  struct Seat {
    Atomic<std::uintptr_t> thread{0};
    Atomic<std::uint32_t> inside{0};
  };
  enum class Entry : std::uint8_t { inside, closed, expelled };

  // Takes the baton by the bias, if this thread has the bias.
  Entry enter() noexcept {
    Seat* const seat = bias_.load(std::memory_order_relaxed);
    if (seat == nullptr || seat->thread.load(std::memory_order_relaxed) != System::self()) {
      return Entry::closed;
    }
    // A holder that is inside and nudges itself comes here again. Acquire: a new thread may inherit the
    // id, and with it the seat, of a thread that has ended.
    if (seat->inside.load(std::memory_order_acquire) != 0) [[unlikely]] {
      return Entry::closed;
    }
    seat->inside.store(1, std::memory_order_relaxed);
    System::light_fence();  // pairs with the heavy fence in take()
    if (bias_.load(std::memory_order_relaxed) == seat) [[likely]] {
      return Entry::inside;
    }
    // Release: a thread that reads this 0 missed the 0 that this thread stored in its last release().
    seat->inside.store(0, std::memory_order_release);
    return Entry::expelled;
  }

  // Called by a holder that took the baton by kHeld, not by the bias.
  void consider_bias() noexcept {
    const std::uintptr_t self = System::self();
    if (last_thread_ != self) {
      last_thread_ = self;
      streak_ = 0;
      return;
    }
    streak_ = streak_ + 1;
    if (streak_ < takes_to_bias_) {
      return;
    }
    streak_ = 0;
    for (Seat& seat : seats_) {
      const std::uintptr_t thread = seat.thread.load(std::memory_order_relaxed);
      if (thread == 0) {
        seat.thread.store(self, std::memory_order_relaxed);
      }
      if (thread == 0 || thread == self) {
        seat_ = &seat;
        bias_.store(&seat, std::memory_order_relaxed);  // published with state_
        return;
      }
    }
  }

  Atomic<Seat*> bias_{nullptr};  // written with kHeld only
  Plain<Seat*> seat_ = nullptr;  // holder only, as all below: the seat it entered by; null: kHeld
  Plain<Seat*> last_seat_ = nullptr;
  Plain<std::uintptr_t> last_thread_ = 0;
  Plain<std::uint32_t> streak_ = 0;  // takes in a row by last_thread_
  Plain<std::uint32_t> takes_to_bias_ = System::kTakesToBias;
  Seat seats_[kSeats];
};

using Baton = BasicBaton<SystemBaton>;

}  // namespace weft::sync
