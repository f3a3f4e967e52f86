// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstdint>

#include "weft/sync/atomic.h"
#include "weft/sys/fence.h"
#include "weft/sys/futex.h"
#include "weft/sys/thread_id.h"

namespace weft::sync {

// What a baton needs of the machine; the model checker's in the model test.
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

// Baton: who holds it runs one side of a connection; nobody ever waits for it.
// Affinity: any thread. Cost: one read-modify-write to take (two with a nudge), one to give back; none while it is
// biased, which it is towards a thread that took it often and alone, until another thread takes it or nudges.
// Use: a thread with work for the side either takes the baton and does the work, or fails and leaves a nudge. The
// holder learns of nudges when it gives the baton back, and then must look for work again:
//
//   if (!baton.try_take_or_nudge()) return;      // the holder will do it
//   do { work(); } while (baton.release() && baton.try_take_or_nudge());
//
// How the bias works: its thread owns a seat. To take the baton it marks the seat and looks whether the bias still
// stands; to end the bias, a thread that has kHeld takes it away and looks at the mark. Light fence there, heavy fence
// here: one of the two sees the other.
// Invariants:
//   (1) At most one holder.
//   (2) Work published before a failed try_take_or_nudge() is seen by the holder's next work(), or by whoever takes
//       the baton after it: the nudge and the release are both read-modify-writes of one word, and a biased holder
//       makes one as soon as its bias has ended.
//   (3) A seat belongs to one thread for ever, so that one who comes late to it disturbs nobody else.
template <typename System>
class BasicBaton {
 public:
  BasicBaton() noexcept = default;
  BasicBaton(const BasicBaton&) = delete;
  BasicBaton& operator=(const BasicBaton&) = delete;

  [[nodiscard]] bool try_take() noexcept {
    const Entry entry = enter();
    if (entry == Entry::inside) [[likely]] {
      return true;
    }
    // Looking first keeps a busy baton's line shared, and its bias. Who was expelled must make itself known in state_.
    return (entry == Entry::expelled || !held()) && take(kHeld);
  }

  [[nodiscard]] bool try_take_or_nudge() noexcept {
    if (enter() == Entry::inside) [[likely]] {
      return true;
    }
    if (!take(kHeld | kNudged)) {
      return false;
    }
    // Ours to clear: what was nudged for is done by us now. Acquire pairs with the nudge in take(): the one that goes
    // here may be another thread's, left since we took the baton.
    state_.fetch_and(~kNudged, std::memory_order_acquire);
    return true;
  }

  // Holder only. True when somebody nudged meanwhile: take again or nudge, and look for work.
  [[nodiscard]] bool release() noexcept {
    if (Seat* const seat = seat_; seat != nullptr) [[likely]] {
      // Release publishes what we did to who ends the bias and finds the seat empty.
      seat->inside.store(0, std::memory_order_release);
      System::light_fence();  // pairs with the heavy fence in take()
      // Relaxed: who ended the bias had changed state_ before, and both of us do that with acquire and release.
      if (bias_.load(std::memory_order_relaxed) == seat) [[likely]] {
        return false;
      }
      // acq_rel: who gives kHeld back after this sees the seat empty; and we see what a nudger published.
      return (state_.fetch_and(~kNudged, std::memory_order_acq_rel) & kNudged) != 0;
    }
    consider_bias();
    // acq_rel: publishes what we did to the next holder, and sees what a nudger published before its nudge.
    return (state_.exchange(0, std::memory_order_acq_rel) & kNudged) != 0;
  }

  // Only a hint, unless everybody is at rest.
  [[nodiscard]] bool held() const noexcept {
    const Seat* seat = bias_.load(std::memory_order_relaxed);
    return (state_.load(std::memory_order_relaxed) & kHeld) != 0 ||
           (seat != nullptr && seat->inside.load(std::memory_order_relaxed) != 0);
  }

 protected:
  static constexpr std::uint32_t kHeld = 1;
  static constexpr std::uint32_t kNudged = 2;

  // `bits`: kHeld, and kNudged if that is to stay in the word when the baton is somebody else's.
  [[nodiscard]] bool take(std::uint32_t bits) noexcept {
    for (;;) {
      // Acquire pairs with release() of the last holder. Release publishes our work to the holder that sees our nudge.
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
      // Acquire pairs with the release in release(): a biased holder's.
      if (seat == nullptr || seat->inside.load(std::memory_order_acquire) == 0) {
        seat_ = nullptr;
        return true;
      }
      // Somebody is in there. acq_rel: either it finds kHeld gone and the nudge there, or we find it gone.
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

  // By the bias, if it is this thread's.
  Entry enter() noexcept {
    Seat* const seat = bias_.load(std::memory_order_relaxed);
    if (seat == nullptr || seat->thread.load(std::memory_order_relaxed) != System::self()) {
      return Entry::closed;
    }
    // A thread that is inside comes again with a nudge to itself. Acquire: the seat of a thread that has ended may be
    // inherited with its id.
    if (seat->inside.load(std::memory_order_acquire) != 0) [[unlikely]] {
      return Entry::closed;
    }
    seat->inside.store(1, std::memory_order_relaxed);
    System::light_fence();  // pairs with the heavy fence in take()
    if (bias_.load(std::memory_order_relaxed) == seat) [[likely]] {
      return Entry::inside;
    }
    // Release: who reads this 0 missed the one that we left with.
    seat->inside.store(0, std::memory_order_release);
    return Entry::expelled;
  }

  // Holder only, and not by the bias.
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
  Plain<Seat*> seat_ = nullptr;  // the holder's: by which it holds the baton, null: by kHeld. As the rest:
  Plain<Seat*> last_seat_ = nullptr;
  Plain<std::uintptr_t> last_thread_ = 0;
  Plain<std::uint32_t> streak_ = 0;  // takes in a row by last_thread_
  Plain<std::uint32_t> takes_to_bias_ = System::kTakesToBias;
  Seat seats_[kSeats];
};

using Baton = BasicBaton<SystemBaton>;

}  // namespace weft::sync
