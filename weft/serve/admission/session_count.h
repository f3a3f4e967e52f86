// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>

#include "weft/sync/atomic.h"

namespace weft::serve {

// SessionCount: the number of sessions of a server, on all cores. Affinity: any thread.
// Cost: one read-modify-write for each session's beginning and end.
// Invariant: the count never grows beyond the limit.
// Relaxed throughout, without a partner: the count guards no other memory.
class SessionCount {
 public:
  explicit SessionCount(std::size_t limit) noexcept : limit_(limit) {}

  [[nodiscard]] bool take() noexcept {  // returns false if the limit is reached
    std::size_t count = count_.load(std::memory_order_relaxed);
    do {
      if (count >= limit()) {
        return false;
      }
    } while (!count_.compare_exchange_weak(count, count + 1, std::memory_order_relaxed, std::memory_order_relaxed));
    return true;
  }
  void give_back() noexcept { count_.fetch_sub(1, std::memory_order_relaxed); }
  [[nodiscard]] std::size_t value() const noexcept { return count_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::size_t limit() const noexcept { return limit_.load(std::memory_order_relaxed); }
  // A limit below the count refuses until sessions have ended.
  void set_limit(std::size_t limit) noexcept { limit_.store(limit, std::memory_order_relaxed); }

 private:
  sync::Atomic<std::size_t> limit_;
  sync::Atomic<std::size_t> count_{0};
};

}  // namespace weft::serve
