// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <cstdint>

#include "weft/base/time.h"
#include "weft/sync/atomic.h"
#include "weft/sync/wake_list.h"
#include "weft/sys/fence.h"
#include "weft/sys/futex.h"

namespace weft::sync {

// The operations that a parker waits with: the machine's here, the model checker's in the model test.
struct SystemWait {
  using Event = WakeList;

  static void light_fence() noexcept { sys::light_fence(); }
  static void heavy_fence() noexcept { sys::heavy_fence(); }
  static void full_fence() noexcept { sys::full_fence(); }
  static sys::FutexResult futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t expected,
                                     Duration timeout) noexcept {
    return sys::futex_wait(word, expected, timeout);
  }
  static sys::FutexResult futex_wait_cancellably(std::atomic<std::uint32_t>& word, std::uint32_t expected,
                                                 Duration timeout) {
    return sys::futex_wait_cancellably(word, expected, timeout);
  }
  static void futex_wake(std::atomic<std::uint32_t>& word) noexcept { sys::futex_wake(word, 1 << 30); }
};

// Parker: threads sleep here until something changes. One word shows the sender whether any thread sleeps.
// Owner: the object whose change is awaited. Affinity: any thread.
// Cost: wake() without a sleeper is one load behind a compiler barrier. The sleeper pays for both sides (membarrier,
// microseconds). Where sleeps are as frequent as wakes that is dear: wakers that call wake_as_asked() pay for a fence
// of their own (8 ns) as long as the sleepers ask for it.
// Use by the sleeper: announce; check again for work; sleep if there is none; start over. A sleeper waits
// either on the futex in the parker, or in poll/epoll on its own event descriptor in the list given to
// announce_poll(). Sleeping orders nothing: work that a check right after it misses is visible after the next
// announcement's fence.
// Invariants:
// 1. Work published before wake(): either it is visible to the sleeper's check after announce(), or the announcement is
//    visible to wake(). The sleeper's heavy fence stands for the store-load fence that wake() leaves out.
// 2. Only wake() clears announcements. A sleeper that leaves early costs one superfluous wake-up, never a
//    lost one.
// 3. A wake() that cleared announcements starts a new generation, so that none of their sleepers falls asleep
//    on a later announcement of another thread.
template <typename System>
class BasicParker {
 public:
  using Event = typename System::Event;
  using Ticket = std::uint32_t;  // the generation of an announcement

  BasicParker() noexcept = default;
  BasicParker(const BasicParker&) = delete;
  BasicParker& operator=(const BasicParker&) = delete;

  // Hot path: called after publishing work.
  void wake() noexcept {
    System::light_fence();  // pairs with the heavy fence in announce()
    if (const std::uint32_t word = word_.load(std::memory_order_relaxed); (word & kAnnounced) != 0) [[unlikely]] {
      wake_sleepers(word);
    }
  }
  // Rare path: the same, for wakers whose sleepers announce with heavy = false.
  void wake_with_fence() noexcept {
    System::full_fence();
    if (const std::uint32_t word = word_.load(std::memory_order_relaxed); (word & kAnnounced) != 0) {
      wake_sleepers(word);
    }
  }

  // Hot path, for wakers of sleepers that call ask_for_fences().
  void wake_as_asked() noexcept {
    System::light_fence();  // as in wake(); after a heavy fence that announces a change, the load below finds it
    // Acquire pairs with the release in ask_for_fences(): sleepers that announced before a change are seen below.
    if (fences_.load(std::memory_order_acquire)) {
      System::full_fence();
    }
    if (const std::uint32_t word = word_.load(std::memory_order_relaxed); (word & kAnnounced) != 0) [[unlikely]] {
      wake_sleepers(word);
    }
  }
  // Whether wakers that call wake_as_asked() shall fence from now on. Returns `heavy` for the announcement that
  // follows: a heavy fence announces a change to the wakers. The caller holds a lock during both, the same one as other
  // sleepers.
  [[nodiscard]] bool ask_for_fences(bool fences) noexcept {
    const bool told = fences_.load(std::memory_order_relaxed);
    fences_.store(fences, std::memory_order_release);  // pairs with the acquire in wake_as_asked()
    return !told || !fences;
  }

  // `heavy` may be false only when every waker uses wake_with_fence(), or by the result of ask_for_fences().
  [[nodiscard]] Ticket announce_futex(bool heavy) noexcept { return announce(kFutex, heavy); }
  void announce_poll(Event* event, bool heavy) noexcept {
    event_.store(event, std::memory_order_relaxed);  // published by the announcement; always the same event
    announce(kPoll, heavy);
  }

  // Sleeps until a wake(), or `timeout` (negative: no limit). Returns at once if a wake() came since the
  // announcement.
  sys::FutexResult sleep(Ticket ticket, Duration timeout) noexcept {
    // Relaxed: the kernel compares the word again.
    const std::uint32_t word = word_.load(std::memory_order_relaxed);
    if ((word & ~kAnnounced) != ticket) {
      return sys::FutexResult::changed;
    }
    return System::futex_wait(word_, word, timeout);
  }
  // The same, as a cancellation point (sys/call.h). A cancelled thread leaves its announcement: see invariant 2.
  sys::FutexResult sleep_cancellably(Ticket ticket, Duration timeout) {
    const std::uint32_t word = word_.load(std::memory_order_relaxed);  // relaxed: as in sleep()
    if ((word & ~kAnnounced) != ticket) {
      return sys::FutexResult::changed;
    }
    return System::futex_wait_cancellably(word_, word, timeout);
  }

 private:
  static constexpr std::uint32_t kFutex = 1;
  static constexpr std::uint32_t kPoll = 2;
  static constexpr std::uint32_t kAnnounced = kFutex | kPoll;
  static constexpr std::uint32_t kGeneration = 4;  // wraps after 2^30 wake-ups, far beyond one sleeper's two steps

  Ticket announce(std::uint32_t bit, bool heavy) noexcept {
    // Release hands the event to wake_sleepers(). The fence below orders everything else.
    const std::uint32_t word = word_.fetch_or(bit, std::memory_order_release);
    if (heavy) {
      System::heavy_fence();  // pairs with the light fence in wake()
    } else {
      System::full_fence();  // pairs with the full fence in wake_with_fence()
    }
    return word & ~kAnnounced;
  }

  // For each announcement one waker wakes the sleepers.
  void wake_sleepers(std::uint32_t word) noexcept {
    // Acquire pairs with the release in announce().
    while (!word_.compare_exchange_weak(word, (word & ~kAnnounced) + kGeneration, std::memory_order_acquire,
                                        std::memory_order_relaxed)) {
      if ((word & kAnnounced) == 0) {
        return;
      }
    }
    if ((word & kFutex) != 0) {
      System::futex_wake(word_);
    }
    if ((word & kPoll) != 0) {
      event_.load(std::memory_order_relaxed)->signal();
    }
  }

  Atomic<std::uint32_t> word_{0};
  Atomic<Event*> event_{nullptr};
  Atomic<bool> fences_{false};
};

using Parker = BasicParker<SystemWait>;

}  // namespace weft::sync
