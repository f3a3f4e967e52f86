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

// What a parker waits with: the machine here, the model checker's in the model test.
struct SystemWait {
  using Event = WakeList;

  static void light_fence() noexcept { sys::light_fence(); }
  static void heavy_fence() noexcept { sys::heavy_fence(); }
  static void full_fence() noexcept { sys::full_fence(); }
  static sys::FutexResult futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t expected,
                                     Duration timeout) noexcept {
    return sys::futex_wait(word, expected, timeout);
  }
  static void futex_wake(std::atomic<std::uint32_t>& word) noexcept { sys::futex_wake(word, 1 << 30); }
};

// Parker: where threads sleep until something changes, and the word that tells a sender whether anybody sleeps.
// Owner: the object whose change is awaited. Affinity: any thread.
// Cost: wake() with nobody asleep is one load behind a compiler barrier; parking pays for both sides (membarrier).
// Use by the sleeper: announce; look again for work; if there is none, sleep; start over. A sleeper either waits on the
// futex in here or in poll/epoll on its own event descriptor in the list given to announce_poll(). Sleeping orders
// nothing: what a look right after it misses, the next announcement's fence shows.
// Invariants:
//   (1) Work published before wake() is either seen by the sleeper's look after announce(), or wake() sees the
//       announcement: the sleeper's heavy fence stands for the store-load fence that wake() leaves out.
//   (2) Only wake() clears announcements; a sleeper that leaves early costs one superfluous wake-up, never a lost one.
//   (3) A wake() that cleared announcements starts a new generation, so that none of their sleepers falls asleep on the
//       announcement that somebody else made since.
template <typename System>
class BasicParker {
 public:
  using Event = typename System::Event;
  using Ticket = std::uint32_t;  // the generation of an announcement

  BasicParker() noexcept = default;
  BasicParker(const BasicParker&) = delete;
  BasicParker& operator=(const BasicParker&) = delete;

  // Hot path: after publishing work.
  void wake() noexcept {
    System::light_fence();  // pairs with the heavy fence in announce()
    if (const std::uint32_t word = word_.load(std::memory_order_relaxed); (word & kAnnounced) != 0) [[unlikely]] {
      wake_sleepers(word);
    }
  }
  // Rare path: the same, for wakers whose sleepers use announce with heavy = false.
  void wake_with_fence() noexcept {
    System::full_fence();
    if (const std::uint32_t word = word_.load(std::memory_order_relaxed); (word & kAnnounced) != 0) {
      wake_sleepers(word);
    }
  }

  // `heavy` may be false only when every waker uses wake_with_fence().
  [[nodiscard]] Ticket announce_futex(bool heavy) noexcept { return announce(kFutex, heavy); }
  void announce_poll(Event* event, bool heavy) noexcept {
    event_.store(event, std::memory_order_relaxed);  // released by the announcement; the same one every time
    announce(kPoll, heavy);
  }

  // Sleeps until a wake(), or `timeout` (negative: no limit). Returns at once if there was one since the announcement.
  sys::FutexResult sleep(Ticket ticket, Duration timeout) noexcept {
    // Relaxed: the kernel compares the word again.
    const std::uint32_t word = word_.load(std::memory_order_relaxed);
    if ((word & ~kAnnounced) != ticket) {
      return sys::FutexResult::changed;
    }
    return System::futex_wait(word_, word, timeout);
  }

 private:
  static constexpr std::uint32_t kFutex = 1;
  static constexpr std::uint32_t kPoll = 2;
  static constexpr std::uint32_t kAnnounced = kFutex | kPoll;
  static constexpr std::uint32_t kGeneration = 4;  // wraps after 2^30 wake-ups, far beyond one sleeper's two steps

  Ticket announce(std::uint32_t bit, bool heavy) noexcept {
    // Release hands the event to wake_sleepers(); all else is the fence's business.
    const std::uint32_t word = word_.fetch_or(bit, std::memory_order_release);
    if (heavy) {
      System::heavy_fence();  // pairs with the light fence in wake()
    } else {
      System::full_fence();  // pairs with the full fence in wake_with_fence()
    }
    return word & ~kAnnounced;
  }

  // One waker takes each announcement.
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
};

using Parker = BasicParker<SystemWait>;

}  // namespace weft::sync
