// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <cstdint>

#include "weft/msg/message/part.h"
#include "weft/sync/lock.h"

namespace weft::msg {

// Newest: the cells of a channel that conflates: one place, in which the next message replaces the last.
// Owner: the channel. Affinity: that of the channel. Cost: one uncontended lock per message on each side.
class Newest {
 public:
  Newest() = default;
  Newest(const Newest&) = delete;
  Newest& operator=(const Newest&) = delete;
  ~Newest() {
    refresh();
    pop_released();
  }

  // Producer. Returns the cell to fill; then the caller calls put() with it.
  [[nodiscard]] Cell* claim() noexcept { return &claimed_; }
  void put(const Cell& cell) noexcept {
    const sync::LockGuard lock(mutex_);
    if (has_newest_.exchange(true, std::memory_order_relaxed)) {  // the lock orders newest_
      newest_.release();
      ++replaced_;
    }
    cell.copy_to(newest_);
    newest_.more = false;
  }

  // Consumer. The front message stays in front until pop(), or until refresh() replaces it by a newer one.
  [[nodiscard]] Cell* front() noexcept {
    if (!has_front_) {
      refresh();
    }
    return has_front_ ? &front_ : nullptr;
  }
  void refresh() noexcept {
    if (!has_newest_.load(std::memory_order_relaxed)) {  // a hint: the producer wakes the consumer after put()
      return;
    }
    const sync::LockGuard lock(mutex_);
    if (has_front_) {
      pop_released();
      ++outdated_;
    }
    newest_.copy_to(front_);
    has_front_ = true;
    has_newest_.store(false, std::memory_order_relaxed);
  }
  void pop() noexcept { has_front_ = false; }
  // Any thread: the number of messages that the producer replaced, and of those in front that the consumer did not
  // take.
  [[nodiscard]] std::uint64_t replaced() const noexcept { return replaced_.load(); }
  [[nodiscard]] std::uint64_t outdated() const noexcept { return outdated_.load(); }
  [[nodiscard]] bool empty() const noexcept { return !has_front_ && !has_newest_.load(std::memory_order_acquire); }

 private:
  void pop_released() noexcept {
    if (has_front_) {
      front_.release();
      has_front_ = false;
    }
  }

  Cell claimed_{};  // producer
  sync::StdMutex mutex_;
  Cell newest_ WEFT_GUARDED_BY(mutex_){};
  std::atomic<bool> has_newest_{false};
  std::atomic<std::uint64_t> replaced_{0};
  std::atomic<std::uint64_t> outdated_{0};
  Cell front_{};  // consumer, like the next
  bool has_front_ = false;
};

}  // namespace weft::msg
