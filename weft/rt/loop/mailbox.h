// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <new>
#include <utility>
#include <vector>

#include "weft/sync/atomic.h"
#include "weft/sync/lock.h"
#include "weft/sys/fence.h"
#include "weft/sys/poller.h"

namespace weft::rt {

// The operations of a mailbox: the system's here, the model checker's in the model test.
struct SystemMail {
  using Mutex = sync::StdMutex;
  using Sleep = sys::Poller;  // wake() ends the present sleep, or otherwise the next one
  static void full_fence() noexcept { sys::full_fence(); }
};

// Mailbox: the jobs that other threads post to a loop, and the calls that end its sleep and its life.
// Owner: the loop.
// Affinity: post(), posted(), stop(), wake_sleeper() and nudge() any thread; the rest the loop's thread.
// Cost: post() locks a mutex, a fence, and a system call if the loop sleeps.
// Use by the loop: open(), work; without work announce(), and if has_work() is false, sleep; end_sleep(). If see_stop()
// returns true: open() once more, later close().
// Invariants:
//   1. An item that post() took comes out of open() or close() once. After close() post() takes none.
//   2. The check after announce() finds each post(), each stop(), and the work before a wake_sleeper(); otherwise these
//      end the sleep.
//   3. An item that was posted before stop() comes out of the first open() after see_stop().
template <typename T, typename System>
class BasicMailbox {
 public:
  enum class Post : std::uint8_t { done, closed, no_memory };

  explicit BasicMailbox(typename System::Sleep& sleep) noexcept : poller_(sleep) {}
  BasicMailbox(const BasicMailbox&) = delete;
  BasicMailbox& operator=(const BasicMailbox&) = delete;

  // --- any thread ---

  // The item is moved from only when it is done.
  [[nodiscard]] Post post(T& item) noexcept {
    {
      const sync::LockGuard lock(mutex_);
      if (closed_) [[unlikely]] {
        return Post::closed;
      }
      try {
        items_.push_back(std::move(item));
        ++posted_;
      } catch (const std::bad_alloc&) {
        return Post::no_memory;
      }
      has_items_.store(true, std::memory_order_relaxed);  // ordered by the mutex for the reader that takes it
    }
    wake_sleeper();
    return Post::done;
  }
  void stop() noexcept {
    stopping_.store(true, std::memory_order_release);  // pairs with the acquire in see_stop()
    poller_.wake();
  }
  void wake_sleeper() noexcept {
    System::full_fence();  // pairs with the fence in announce(): the caller sees the sleep, or the loop sees the work
    if (sleep_.load(std::memory_order_relaxed) != Sleep::awake) {
      poller_.wake();
    }
  }
  // Ends a deep sleep only.
  void nudge() noexcept {
    System::full_fence();  // pairs with the fence in announce()
    Sleep expected = Sleep::deep;
    // Relaxed: the exchange only elects one nudger for the wake. The poller orders the writes before it.
    if (sleep_.load(std::memory_order_relaxed) == Sleep::deep &&
        sleep_.compare_exchange_strong(expected, Sleep::awake, std::memory_order_relaxed, std::memory_order_relaxed)) {
      poller_.wake();
    }
  }

  // The items that post() took. The caller sees the item of each post() that happened before the call.
  [[nodiscard]] std::uint64_t posted() const noexcept {
    const sync::LockGuard lock(mutex_);
    return posted_;
  }

  // --- the loop's thread ---

  // Swaps the items with `into`, which is empty. Returns false if there are none.
  bool open(std::vector<T>& into) noexcept {
    if (!has_items_.load(std::memory_order_relaxed)) {
      return false;
    }
    const sync::LockGuard lock(mutex_);
    into.swap(items_);
    has_items_.store(false, std::memory_order_relaxed);
    return true;
  }
  // The same, for the last time.
  void close(std::vector<T>& into) noexcept {
    const sync::LockGuard lock(mutex_);
    closed_ = true;
    into.swap(items_);
    has_items_.store(false, std::memory_order_relaxed);
  }
  // Shows the sleep to the other threads. The loop checks for work once more before it sleeps.
  void announce(bool nap) noexcept {
    sleep_.store(nap ? Sleep::nap : Sleep::deep, std::memory_order_relaxed);
    System::full_fence();  // pairs with the fences in wake_sleeper() and nudge()
  }
  void end_sleep() noexcept { sleep_.store(Sleep::awake, std::memory_order_relaxed); }
  [[nodiscard]] bool has_work() const noexcept {
    return has_items_.load(std::memory_order_relaxed) || (stopping_.load(std::memory_order_relaxed) && !saw_stop_);
  }
  // Whether stop() was called.
  [[nodiscard]] bool see_stop() noexcept {
    // Acquire pairs with the release in stop(): earlier posts are in the mailbox.
    saw_stop_ = saw_stop_ || stopping_.load(std::memory_order_acquire);
    return saw_stop_;
  }
  [[nodiscard]] bool saw_stop() const noexcept { return saw_stop_; }

 private:
  enum class Sleep : std::uint32_t { awake, nap, deep };

  typename System::Sleep& poller_;
  mutable typename System::Mutex mutex_;
  bool closed_ WEFT_GUARDED_BY(mutex_) = false;
  std::vector<T> items_ WEFT_GUARDED_BY(mutex_);
  std::uint64_t posted_ WEFT_GUARDED_BY(mutex_) = 0;
  bool saw_stop_ = false;
  sync::Atomic<bool> has_items_{false};
  sync::Atomic<bool> stopping_{false};
  sync::Atomic<Sleep> sleep_{Sleep::awake};
};

template <typename T>
using Mailbox = BasicMailbox<T, SystemMail>;

}  // namespace weft::rt
