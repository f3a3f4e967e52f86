// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <mutex>

#include "weft/msg/message/part.h"

namespace weft::msg {

// Newest: the cells of a channel that conflates: one place, in which the next message replaces the last.
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

  // Producer. The cell to fill; then the caller calls put() with it.
  [[nodiscard]] Cell* claim() noexcept { return &claimed_; }
  void put(const Cell& cell) noexcept {
    const std::lock_guard lock(mutex_);
    if (has_newest_.exchange(true, std::memory_order_relaxed)) {  // the lock orders newest_
      newest_.release();
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
    const std::lock_guard lock(mutex_);
    pop_released();
    newest_.copy_to(front_);
    has_front_ = true;
    has_newest_.store(false, std::memory_order_relaxed);
  }
  void pop() noexcept { has_front_ = false; }
  // Any thread: the consumer has not yet taken the newest message to the front.
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
