// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include "weft/sync/atomic.h"

namespace weft::sync {

// Counter: a number that one thread changes and any thread reads.
// Affinity: add(), subtract() and set(): the owner; value(): any thread. Cost: a load, an addition and a
// store, no locked operation.
// It orders nothing: a reader may find one counter's change before another's. It never reads a number that was not
// stored.
class Counter {
 public:
  void add(std::uint64_t count = 1) noexcept { set(value() + count); }
  void subtract(std::uint64_t count = 1) noexcept { set(value() - count); }
  // Relaxed, like the load in value(): no other data depends on the number.
  void set(std::uint64_t value) noexcept { value_.store(value, std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t value() const noexcept { return value_.load(std::memory_order_relaxed); }

 private:
  Atomic<std::uint64_t> value_{0};
};

}  // namespace weft::sync
