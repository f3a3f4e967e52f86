// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace weft {

// LogLinear: buckets of durations in nanoseconds, each 1/2^kBits of a power of two wide; exact below
// 2^(kBits+1).
template <int kBits>
struct LogLinear {
  static constexpr std::uint64_t kMax = (std::uint64_t{1} << 40U) - 1;  // 18 minutes; a longer duration counts as this
  static constexpr std::size_t kBuckets = std::size_t{40 - kBits + 1} << kBits;

  [[nodiscard]] static constexpr std::size_t bucket_of(std::uint64_t ns) noexcept {
    ns = std::min(ns, kMax);
    const int shift = std::max(static_cast<int>(std::bit_width(ns)) - kBits - 1, 0);
    return (static_cast<std::size_t>(shift) << kBits) + (ns >> shift);
  }
  [[nodiscard]] static constexpr std::uint64_t lowest_of(std::size_t bucket) noexcept {
    const std::size_t shift = bucket < (std::size_t{2} << kBits) ? 0 : (bucket >> kBits) - 1;
    return std::uint64_t{bucket - (shift << kBits)} << shift;
  }
};

// Histogram: the number of durations in each bucket. Two histograms can be added.
// Owner: its user. Affinity: one thread at a time. Cost: no allocation; adding is one addition; 8 bytes a
// bucket (67 KB for kBits 8, 9 KB for 5).
template <int kBits>
class Histogram : public LogLinear<kBits> {
 public:
  using LogLinear<kBits>::bucket_of;
  using LogLinear<kBits>::lowest_of;
  using LogLinear<kBits>::kBuckets;

  void clear() { *this = Histogram(); }
  void add(std::uint64_t ns) noexcept { add(bucket_of(ns), 1, ns); }
  // Adds `count` durations at once, none of them longer than `max`.
  void add(std::size_t bucket, std::uint64_t count, std::uint64_t max) noexcept {
    counts_[bucket] += count;
    max_ = std::max(max_, max);
    total_ += count;
  }
  void add(const Histogram& other) noexcept {
    for (std::size_t i = 0; i < kBuckets; ++i) {
      counts_[i] += other.counts_[i];
    }
    max_ = std::max(max_, other.max_);
    total_ += other.total_;
  }

  [[nodiscard]] std::uint64_t total() const noexcept { return total_; }
  [[nodiscard]] std::uint64_t max() const noexcept { return max_; }
  [[nodiscard]] std::uint64_t count(std::size_t bucket) const noexcept { return counts_[bucket]; }
  // The duration that the given share of all durations do not exceed, interpolated by rank inside its bucket.
  [[nodiscard]] double quantile(double share) const noexcept {
    double rank = share * static_cast<double>(total_);
    for (std::size_t i = 0; i < kBuckets; ++i) {
      const auto here = static_cast<double>(counts_[i]);
      if (here > 0 && rank <= here) {
        const auto low = static_cast<double>(lowest_of(i));
        const double inside = low + (static_cast<double>(lowest_of(i + 1)) - low) * rank / here;
        return std::min(inside, static_cast<double>(max_));
      }
      rank -= here;
    }
    return static_cast<double>(max_);
  }

 private:
  std::array<std::uint64_t, kBuckets> counts_{};
  std::uint64_t max_ = 0;
  std::uint64_t total_ = 0;
};

}  // namespace weft
