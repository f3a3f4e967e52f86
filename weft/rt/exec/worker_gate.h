// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <cstdint>

#include "weft/base/time.h"
#include "weft/sync/atomic.h"
#include "weft/sys/fence.h"
#include "weft/sys/futex.h"

namespace weft::rt {

// What a gate waits with: the machine here, the model checker's in the model test.
struct SystemGate {
  static void full_fence() noexcept { sys::full_fence(); }
  static sys::FutexResult futex_wait(std::atomic<std::uint32_t>& word, Duration timeout) noexcept {
    return sys::futex_wait(word, 0, timeout);
  }
  static void futex_wake(std::atomic<std::uint32_t>& word, int count) noexcept { sys::futex_wake(word, count); }
};

// WorkerGate: how many workers of a pool there are, how many sleep, and whether one looks for work right now.
// A worker works, searches or sleeps. Who brings work wakes somebody only when nobody searches, so that a burst costs
// one wake-up; a searcher that found work and sees more of it passes the wake-up on.
// Owner: the pool. Affinity: any thread. Cost: notify() with a searcher about, or with nobody asleep, is a fence and a
// load; else a read-modify-write of one word, and a system call to wake.
// Invariants:
//   (1) Work that was there before notify() is seen by a searcher's next look, or a sleeper was woken for it, or a
//       worker is to be started for it, or every worker works.
//   (2) Workers inside sleep() = the word's sleepers + permits_. Who takes a permit searches.
//   (3) After close() nobody is started, and nobody sleeps who announced it afterwards.
template <typename System>
class BasicWorkerGate {
 public:
  enum class Notified : std::uint8_t {
    nobody,  // somebody searches, or all work and there may be no more of them
    woke,
    start,  // the caller starts a worker, which is counted as a searcher already; else undo_start()
  };
  enum class Slept : std::uint8_t {
    woken,  // searches now
    left,   // slept for as long as it may, and is no longer counted
  };

  BasicWorkerGate() noexcept = default;
  BasicWorkerGate(const BasicWorkerGate&) = delete;
  BasicWorkerGate& operator=(const BasicWorkerGate&) = delete;

  // Behind the publication of work.
  Notified notify(unsigned workers_max) noexcept {
    System::full_fence();  // pairs with the fences in announce() and stop_searching()
    // Relaxed, as everywhere here: the gate orders nothing but by its fences; work is handed over by its queue.
    std::uint64_t word = word_.load(std::memory_order_relaxed);
    for (;;) {
      if (searching(word) > 0) {
        return Notified::nobody;
      }
      if (sleepers(word) > 0) {
        if (word_.compare_exchange_weak(word, word - kSleeper + kSearching, std::memory_order_relaxed,
                                        std::memory_order_relaxed)) {
          give_permits(1);
          return Notified::woke;
        }
      } else if (workers(word) < workers_max && (word & kClosed) == 0) {
        if (word_.compare_exchange_weak(word, word + kWorker + kSearching, std::memory_order_relaxed,
                                        std::memory_order_relaxed)) {
          return Notified::start;
        }
      } else {
        return Notified::nobody;
      }
    }
  }
  // The worker could not be started. Others may have counted on it: notify again, with workers_max 0.
  void undo_start() noexcept { word_.fetch_sub(kWorker + kSearching, std::memory_order_relaxed); }
  // Without work: the first workers of a pool. Each is a searcher.
  void add_worker() noexcept { word_.fetch_add(kWorker + kSearching, std::memory_order_relaxed); }

  // --- a worker's own calls ---

  // Before it runs what it found as a searcher. Then it looks whether there is more, and if so notifies.
  void stop_searching() noexcept {
    word_.fetch_sub(kSearching, std::memory_order_relaxed);
    System::full_fence();  // pairs with the fence in notify()
  }
  // False: another searches already.
  [[nodiscard]] bool start_searching() noexcept {
    std::uint64_t word = word_.load(std::memory_order_relaxed);
    return searching(word) == 0 &&
           word_.compare_exchange_strong(word, word + kSearching, std::memory_order_relaxed, std::memory_order_relaxed);
  }
  // Before the last look; then sleep() or stay_awake(). False: closed.
  [[nodiscard]] bool announce(bool was_searching) noexcept {
    const std::uint64_t word = word_.fetch_add(kSleeper - (was_searching ? kSearching : 0), std::memory_order_relaxed);
    System::full_fence();  // pairs with the fence in notify()
    return (word & kClosed) == 0;
  }
  // It searches afterwards.
  void stay_awake() noexcept {
    std::uint64_t word = word_.load(std::memory_order_relaxed);
    while (sleepers(word) > 0) {
      if (word_.compare_exchange_weak(word, word - kSleeper + kSearching, std::memory_order_relaxed,
                                      std::memory_order_relaxed)) {
        return;
      }
    }
    while (!take_permit()) {  // who took the sleeper out of the word is about to give it
      (void)System::futex_wait(permits_, Duration(-1));
    }
  }
  // With a limit (not negative), leaves when it is over and more than `workers_min` are there.
  [[nodiscard]] Slept sleep(Duration limit, unsigned workers_min) noexcept {
    while (!take_permit()) {
      if (System::futex_wait(permits_, limit) == sys::FutexResult::timed_out) {
        if (leave_asleep(workers_min)) {
          return Slept::left;
        }
        // Of the minimum, or a permit is on its way. Should that go to another that has just come to sleep, this one
        // stays until the next work: then its time begins anew.
        limit = Duration(-1);
      }
    }
    return Slept::woken;
  }
  // A worker that is not asleep ends. True: it was the last one.
  [[nodiscard]] bool leave(bool was_searching) noexcept {
    // acq_rel: what each worker did comes before what the last one does.
    const std::uint64_t word = word_.fetch_sub(kWorker + (was_searching ? kSearching : 0), std::memory_order_acq_rel);
    return workers(word) == 1;
  }

  void close() noexcept {  // idempotent
    std::uint64_t word = word_.fetch_or(kClosed, std::memory_order_relaxed) | kClosed;
    while (sleepers(word) > 0) {
      const auto count = sleepers(word);
      if (word_.compare_exchange_weak(word, word - count * kSleeper + count * kSearching, std::memory_order_relaxed,
                                      std::memory_order_relaxed)) {
        give_permits(count);
        return;
      }
    }
  }

  // Acquire pairs with the release in leave(): once it is 0, what the workers did is seen.
  [[nodiscard]] unsigned workers() const noexcept { return workers(word_.load(std::memory_order_acquire)); }
  [[nodiscard]] unsigned sleepers() const noexcept { return sleepers(word_.load(std::memory_order_relaxed)); }
  [[nodiscard]] bool closed() const noexcept { return (word_.load(std::memory_order_relaxed) & kClosed) != 0; }

 private:
  static constexpr std::uint64_t kSleeper = 1;
  static constexpr std::uint64_t kSearching = std::uint64_t{1} << 16;
  static constexpr std::uint64_t kWorker = std::uint64_t{1} << 32;
  static constexpr std::uint64_t kClosed = std::uint64_t{1} << 63;
  static constexpr std::uint64_t kField = 0xFFFF;

  static unsigned sleepers(std::uint64_t word) noexcept { return static_cast<unsigned>(word & kField); }
  static unsigned searching(std::uint64_t word) noexcept { return static_cast<unsigned>((word >> 16) & kField); }
  static unsigned workers(std::uint64_t word) noexcept { return static_cast<unsigned>((word >> 32) & kField); }

  void give_permits(unsigned count) noexcept {
    permits_.fetch_add(count, std::memory_order_relaxed);
    System::futex_wake(permits_, static_cast<int>(count));
  }
  [[nodiscard]] bool take_permit() noexcept {
    // A read-modify-write, because a load may go on returning an old 0, for which the futex does not sleep.
    std::uint32_t permits = permits_.fetch_add(0, std::memory_order_relaxed);
    while (permits > 0) {
      if (permits_.compare_exchange_weak(permits, permits - 1, std::memory_order_relaxed, std::memory_order_relaxed)) {
        return true;
      }
    }
    return false;
  }
  [[nodiscard]] bool leave_asleep(unsigned workers_min) noexcept {
    std::uint64_t word = word_.load(std::memory_order_relaxed);
    while (sleepers(word) > 0 && workers(word) > workers_min) {
      // Release: as in leave().
      if (word_.compare_exchange_weak(word, word - kSleeper - kWorker, std::memory_order_release,
                                      std::memory_order_relaxed)) {
        return true;
      }
    }
    return false;
  }

  alignas(sync::kLineSize) sync::Atomic<std::uint64_t> word_{0};
  alignas(sync::kLineSize) sync::Atomic<std::uint32_t> permits_{0};
};

using WorkerGate = BasicWorkerGate<SystemGate>;

}  // namespace weft::rt
