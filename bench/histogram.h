// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace bench {

// Counts of durations in buckets of 1/256 of a power of two: 0.4 % wide, exact below 512 ns. Owner: shared memory.
// Affinity: one thread at a time. Cost: no allocation, one addition.
class Histogram {
 public:
  static constexpr int kBits = 8;
  static constexpr std::uint64_t kMax = (std::uint64_t{1} << 40U) - 1;  // 18 minutes; what is longer counts as this
  static constexpr std::size_t kBuckets = std::size_t{40 - kBits + 1} << kBits;

  static std::size_t bucket_of(std::uint64_t ns) {
    ns = std::min(ns, kMax);
    const int shift = std::max(static_cast<int>(std::bit_width(ns)) - kBits - 1, 0);
    return (static_cast<std::size_t>(shift) << kBits) + static_cast<std::size_t>(ns >> shift);
  }
  static std::uint64_t lowest_of(std::size_t bucket) {
    const std::size_t shift = bucket < (std::size_t{2} << kBits) ? 0 : (bucket >> kBits) - 1;
    return static_cast<std::uint64_t>(bucket - (shift << kBits)) << shift;
  }

  void clear() { *this = Histogram(); }
  void add(std::uint64_t ns) {
    ++counts_[bucket_of(ns)];
    max_ = std::max(max_, ns);
    ++total_;
  }
  void add(const Histogram& other) {
    for (std::size_t i = 0; i < kBuckets; ++i) {
      counts_[i] += other.counts_[i];
    }
    max_ = std::max(max_, other.max_);
    total_ += other.total_;
  }

  [[nodiscard]] std::uint64_t total() const noexcept { return total_; }
  [[nodiscard]] std::uint64_t max() const noexcept { return max_; }
  [[nodiscard]] std::uint64_t count(std::size_t bucket) const noexcept { return counts_[bucket]; }
  // The duration that a share of all do not exceed; in between the ends of a bucket, by rank.
  [[nodiscard]] double quantile(double share) const {
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

}  // namespace bench
