// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>

#include "weft/sync/atomic.h"

namespace weft::serve {

// SessionCount: how many sessions a server has, on all cores. Affinity: any thread. Cost: a read-modify-write for each
// session's beginning and end. Invariant: never more were taken at a time than the limit.
// Relaxed throughout: the count guards no other memory.
class SessionCount {
 public:
  explicit SessionCount(std::size_t limit) noexcept : limit_(limit) {}

  [[nodiscard]] bool take() noexcept {  // false: there are as many as there may be
    std::size_t count = count_.load(std::memory_order_relaxed);
    do {
      if (count >= limit_) {
        return false;
      }
    } while (!count_.compare_exchange_weak(count, count + 1, std::memory_order_relaxed, std::memory_order_relaxed));
    return true;
  }
  void give_back() noexcept { count_.fetch_sub(1, std::memory_order_relaxed); }
  [[nodiscard]] std::size_t value() const noexcept { return count_.load(std::memory_order_relaxed); }

 private:
  const std::size_t limit_;
  sync::Atomic<std::size_t> count_{0};
};

}  // namespace weft::serve
