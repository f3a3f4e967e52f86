// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "weft/base/histogram.h"
#include "weft/base/time.h"
#include "weft/sync/atomic.h"
#include "weft/sync/counter.h"

namespace weft::serve {

// PerCore: one T for each core, on cache lines of its own, so that counting on one core does not slow another.
// Owner: its user. Affinity: that of T; the array itself does not change.
template <typename T>
class PerCore {
 public:
  explicit PerCore(unsigned cores) : size_(cores), slots_(std::make_unique<Slot[]>(cores)) {}

  [[nodiscard]] unsigned size() const noexcept { return size_; }
  [[nodiscard]] T& at(unsigned core) noexcept { return slots_[core].value; }
  [[nodiscard]] const T& at(unsigned core) const noexcept { return slots_[core].value; }

  // The sum of one counter over all cores: total(&DispatchCounts::handled).
  [[nodiscard]] std::uint64_t total(sync::Counter T::* counter) const noexcept {
    std::uint64_t sum = 0;
    for (unsigned core = 0; core < size_; ++core) {
      sum += (at(core).*counter).value();
    }
    return sum;
  }

 private:
  struct alignas(sync::kLineSize) Slot {
    T value{};
  };

  unsigned size_;
  std::unique_ptr<Slot[]> slots_;
};

using LatencyHistogram = Histogram<5>;  // 3 % wide

// LatencyRecorder: durations that one thread adds and any thread reads, as a LatencyHistogram.
// Affinity: add(): the owner; read_into(): any thread.
// Cost: 9 KB; adding is three plain loads and stores.
// Invariants:
//   1. A reader beside the owner finds each duration wholly in the counts, or not yet.
//   2. The sum may be one duration more than the counts, or less.
class LatencyRecorder {
 public:
  void add(Duration duration) noexcept {
    const std::uint64_t ns = duration > Duration::zero() ? static_cast<std::uint64_t>(duration.count()) : 0;
    counts_[LatencyHistogram::bucket_of(ns)].add();
    sum_ns_.add(ns);
    if (ns > max_ns_.value()) {
      max_ns_.set(ns);
    }
  }

  // Adds the durations recorded so far.
  void read_into(LatencyHistogram& histogram, std::uint64_t& sum_ns) const noexcept {
    sum_ns += sum_ns_.value();
    const std::uint64_t max = max_ns_.value();
    for (std::size_t i = 0; i < counts_.size(); ++i) {
      if (const std::uint64_t count = counts_[i].value(); count != 0) {
        histogram.add(i, count, max);
      }
    }
  }

 private:
  std::array<sync::Counter, LatencyHistogram::kBuckets> counts_;
  sync::Counter sum_ns_;
  sync::Counter max_ns_;
};

}  // namespace weft::serve
