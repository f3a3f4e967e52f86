// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <mutex>

#include "weft/msg/message/part.h"

namespace weft::msg {

// Newest: a channel's cells when only the newest message counts: a place for one, which the next one takes.
// Owner: the channel. Affinity: as the channel's. Cost: one uncontended lock per message on each side.
class Newest {
 public:
  Newest() = default;
  Newest(const Newest&) = delete;
  Newest& operator=(const Newest&) = delete;
  ~Newest() {
    refresh();
    pop_released();
  }

  // Producer. The cell to fill, then put() it.
  [[nodiscard]] Cell* claim() noexcept { return &claimed_; }
  void put(const Cell& cell) noexcept {
    const std::lock_guard lock(mutex_);
    if (has_newest_.exchange(true, std::memory_order_relaxed)) {  // the lock orders it
      newest_.release();
    }
    cell.copy_to(newest_);
    newest_.more = false;
  }

  // Consumer. What front() gave stays in front until pop(), or until refresh() finds a newer one.
  [[nodiscard]] Cell* front() noexcept {
    if (!has_front_) {
      refresh();
    }
    return has_front_ ? &front_ : nullptr;
  }
  void refresh() noexcept {
    if (!has_newest_.load(std::memory_order_relaxed)) {  // a hint: who put it wakes us
      return;
    }
    const std::lock_guard lock(mutex_);
    pop_released();
    newest_.copy_to(front_);
    has_front_ = true;
    has_newest_.store(false, std::memory_order_relaxed);
  }
  void pop() noexcept { has_front_ = false; }
  // Any thread: a message was put, and the consumer has not seen it yet.
  [[nodiscard]] bool waits() const noexcept { return has_newest_.load(std::memory_order_relaxed); }
  [[nodiscard]] bool empty() const noexcept { return !has_front_ && !has_newest_.load(std::memory_order_acquire); }

 private:
  void pop_released() noexcept {
    if (has_front_) {
      front_.release();
      has_front_ = false;
    }
  }

  Cell claimed_{};  // producer
  std::mutex mutex_;
  Cell newest_{};  // guarded by mutex_
  std::atomic<bool> has_newest_{false};
  Cell front_{};  // consumer, as the next
  bool has_front_ = false;
};

}  // namespace weft::msg
