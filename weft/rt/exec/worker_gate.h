// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <cstdint>

#include "weft/base/time.h"
#include "weft/sync/atomic.h"
#include "weft/sys/fence.h"
#include "weft/sys/futex.h"

namespace weft::rt {

// SystemGate: the fence and the futex of a gate: the system's here, the model checker's in the model test.
struct SystemGate {
  static void full_fence() noexcept { sys::full_fence(); }
  static sys::FutexResult futex_wait(std::atomic<std::uint32_t>& word, Duration timeout) noexcept {
    return sys::futex_wait(word, 0, timeout);
  }
  static void futex_wake(std::atomic<std::uint32_t>& word, int count) noexcept { sys::futex_wake(word, count); }
};

// WorkerGate: the number of workers of a pool, the number of sleeping ones, and whether one searches for work now. A
// worker works, searches or sleeps. A notifier wakes a sleeper only when no worker searches, so that a burst costs one
// wake-up. A searcher that finds further work passes the wake-up on.
// Owner: the pool.
// Affinity: any thread.
// Cost: notify() is a fence and a load while a worker searches, or none sleeps and none may be started; otherwise a
// read-modify-write of one word, and a system call to wake.
// Invariants:
//   1. For work published before notify(): a searcher's next check finds it, or notify() woke a sleeper or returned
//      `start` for it, or every worker works.
//   2. Workers inside sleep() = the word's sleepers + permits_. A worker that takes a permit searches.
//   3. After close() no worker is started, and a worker that announces its sleep afterwards does not sleep.
template <typename System>
class BasicWorkerGate {
 public:
  enum class Notified : std::uint8_t {
    nobody,  // a worker searches, or all work and the pool is at its maximum
    woke,
    start,  // the caller starts a worker, which counts as a searcher already; otherwise the caller calls undo_start()
  };
  enum class Slept : std::uint8_t {
    woken,  // the worker searches now
    left,   // the worker slept for its limit, and the gate no longer counts it
  };

  BasicWorkerGate() noexcept = default;
  BasicWorkerGate(const BasicWorkerGate&) = delete;
  BasicWorkerGate& operator=(const BasicWorkerGate&) = delete;

  // Called after work was published.
  Notified notify(unsigned workers_max) noexcept {
    System::full_fence();  // pairs with the fences in announce() and stop_searching()
    // Relaxed, like all accesses here: the gate orders only by its fences; the queue hands the work over.
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
  // After `start`, when no thread could be started. Other notifiers may have counted on this searcher: the caller
  // notifies again, with workers_max 0.
  void undo_start() noexcept { word_.fetch_sub(kWorker + kSearching, std::memory_order_relaxed); }
  // Counts one of the pool's first workers, which starts without work, as a searcher.
  void add_worker() noexcept { word_.fetch_add(kWorker + kSearching, std::memory_order_relaxed); }

  // --- a worker's own calls ---

  // A searcher calls this before it runs the job that it found. Then it checks for more work, and notifies if there is.
  void stop_searching() noexcept {
    word_.fetch_sub(kSearching, std::memory_order_relaxed);
    System::full_fence();  // pairs with the fence in notify()
  }
  // Returns false if another worker searches already.
  [[nodiscard]] bool start_searching() noexcept {
    std::uint64_t word = word_.load(std::memory_order_relaxed);
    return searching(word) == 0 &&
           word_.compare_exchange_strong(word, word + kSearching, std::memory_order_relaxed, std::memory_order_relaxed);
  }
  // Called before the last check for work; after it the worker calls sleep() or stay_awake(). Returns false if it is
  // closed.
  [[nodiscard]] bool announce(bool was_searching) noexcept {
    const std::uint64_t word = word_.fetch_add(kSleeper - (was_searching ? kSearching : 0), std::memory_order_relaxed);
    System::full_fence();  // pairs with the fence in notify()
    return (word & kClosed) == 0;
  }
  // Takes announce() back. The worker searches afterwards.
  void stay_awake() noexcept {
    std::uint64_t word = word_.load(std::memory_order_relaxed);
    while (sleepers(word) > 0) {
      if (word_.compare_exchange_weak(word, word - kSleeper + kSearching, std::memory_order_relaxed,
                                      std::memory_order_relaxed)) {
        return;
      }
    }
    while (!take_permit()) {  // the notifier that took this sleeper out of the word gives a permit soon
      (void)System::futex_wait(permits_, Duration(-1));
    }
  }
  // Sleeps until a permit comes. With a limit (not negative), the worker leaves when the limit is over and there are
  // more than `workers_min` workers.
  [[nodiscard]] Slept sleep(Duration limit, unsigned workers_min) noexcept {
    while (!take_permit()) {
      if (System::futex_wait(permits_, limit) == sys::FutexResult::timed_out) {
        if (leave_asleep(workers_min)) {
          return Slept::left;
        }
        // The worker belongs to the minimum, or a permit is on its way. If another worker that has just come to sleep
        // takes that permit, this one sleeps without a limit until the next work. After that its limit begins again.
        limit = Duration(-1);
      }
    }
    return Slept::woken;
  }
  // A worker that is not asleep ends. Returns true if it was the last worker.
  [[nodiscard]] bool leave(bool was_searching) noexcept {
    // acq_rel pairs with itself and with leave_asleep(): the last worker sees the writes of the others.
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

  // Acquire pairs with the releases in leave() and leave_asleep(): a caller that reads 0 sees the workers' writes.
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
    // A read-modify-write: a load could return a stale 0 again and again, while the futex does not sleep because the
    // word is not 0 any longer.
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
      // Release pairs with the acquires in leave() and workers().
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
