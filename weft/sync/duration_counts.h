// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <string_view>
#include <vector>

#include "weft/base/counter_table.h"
#include "weft/base/time.h"
#include "weft/sync/counter.h"

namespace weft::sync {

// DurationBuckets: the buckets of durations on a page of metrics: a bound at each power of two of nanoseconds from 1 us
// (2^10) to 17 s (2^34), and one bucket for all above. They never change, so the histograms of several cores, processes
// and days can be added.
struct DurationBuckets {
  static constexpr unsigned kFirstPower = 10;
  static constexpr unsigned kLastPower = 34;
  static constexpr std::size_t kBounds = kLastPower - kFirstPower + 1;
  static constexpr std::size_t kBuckets = kBounds + 1;

  // Every duration in the bucket is below this. Not for the last bucket.
  [[nodiscard]] static constexpr std::uint64_t end_of(std::size_t bucket) noexcept {
    return std::uint64_t{1} << (kFirstPower + bucket);
  }
  [[nodiscard]] static constexpr std::size_t bucket_of(std::uint64_t ns) noexcept {
    const std::size_t width = 64U - static_cast<unsigned>(std::countl_zero(ns >> kFirstPower));
    return std::min(width, kBuckets - 1);
  }
};

// DurationValues: the number of durations in each bucket, at one moment. A value.
struct DurationValues {
  std::array<std::uint64_t, DurationBuckets::kBuckets> counts{};
  std::uint64_t sum_ns = 0;
  std::uint64_t max_ns = 0;

  [[nodiscard]] std::uint64_t total() const noexcept {
    return std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
  }
  // The end of the bucket in which the given share of all durations is reached, at most the longest one.
  [[nodiscard]] std::uint64_t quantile_ns(double share) const noexcept {
    const double wanted = share * static_cast<double>(total());
    std::uint64_t reached = 0;
    for (std::size_t bucket = 0; bucket + 1 < counts.size(); ++bucket) {
      reached += counts[bucket];
      if (reached != 0 && static_cast<double>(reached) >= wanted) {
        return std::min(DurationBuckets::end_of(bucket) - 1, max_ns);
      }
    }
    return max_ns;
  }
  void add(const DurationValues& other) noexcept {
    for (std::size_t bucket = 0; bucket < counts.size(); ++bucket) {
      counts[bucket] += other.counts[bucket];
    }
    sum_ns += other.sum_ns;
    max_ns = std::max(max_ns, other.max_ns);
  }
};

// DurationCounts: durations that one thread adds and any thread reads.
// Affinity: add(): the owner; values(): any thread. Cost: 224 bytes; adding is three loads and stores, no locked
// operation.
// Invariants:
//   1. A reader beside the owner finds each duration in the counts, or not yet.
//   2. The sum may be one duration more than the counts, or less.
class DurationCounts {
 public:
  void add(Duration duration) noexcept {
    const std::uint64_t ns = duration > Duration::zero() ? static_cast<std::uint64_t>(duration.count()) : 0;
    counts_[DurationBuckets::bucket_of(ns)].add();
    sum_ns_.add(ns);
    if (ns > max_ns_.value()) {
      max_ns_.set(ns);
    }
  }
  [[nodiscard]] DurationValues values() const noexcept {
    DurationValues values;
    for (std::size_t bucket = 0; bucket < counts_.size(); ++bucket) {
      values.counts[bucket] = counts_[bucket].value();
    }
    values.sum_ns = sum_ns_.value();
    values.max_ns = max_ns_.value();
    return values;
  }

 private:
  std::array<Counter, DurationBuckets::kBuckets> counts_;
  Counter sum_ns_;
  Counter max_ns_;
};

// DurationRow: the facts of one histogram. Affinity: immutable; all text is static storage.
struct DurationRow {
  std::string_view thing;   // "web": the metric is called weft_web_…
  std::string_view metric;  // after "weft_<thing>_": "handler_seconds"
  std::string_view labels;  // their names, for documentation: "web, handler, method"
  std::string_view help;
  std::string_view where;  // the file below weft/ that adds
};

// DurationReading: one histogram of one thing at one moment.
struct DurationReading {
  const DurationRow* row = nullptr;
  std::vector<CounterLabel> labels;
  DurationValues values;
};
using DurationReadings = std::vector<DurationReading>;

// DurationSource: appends the histograms of something that is called `name`. Like CounterSource in all else.
using DurationSource = std::function<void(std::string_view name, DurationReadings& into)>;

}  // namespace weft::sync
