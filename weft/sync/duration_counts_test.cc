// SPDX-License-Identifier: MIT
#include "weft/sync/duration_counts.h"

#include <chrono>
#include <limits>
#include <memory>
#include <thread>

#include <gtest/gtest.h>

namespace weft::sync {
namespace {

using namespace std::chrono_literals;

TEST(DurationCounts, EachDurationIsInTheBucketBelowItsBound) {
  for (std::size_t bucket = 0; bucket < DurationBuckets::kBounds; ++bucket) {
    EXPECT_EQ(DurationBuckets::bucket_of(DurationBuckets::end_of(bucket) - 1), bucket);
    EXPECT_EQ(DurationBuckets::bucket_of(DurationBuckets::end_of(bucket)), bucket + 1);
  }
  EXPECT_EQ(DurationBuckets::bucket_of(0), 0u);
  EXPECT_EQ(DurationBuckets::bucket_of(std::numeric_limits<std::uint64_t>::max()), DurationBuckets::kBuckets - 1);
}

TEST(DurationCounts, SumsAndTheLongestAreExact) {
  DurationCounts counts;
  for (const Duration each : {Duration(-5), Duration(0), Duration(1023), Duration(1024), Duration(1h)}) {
    counts.add(each);
  }
  const DurationValues values = counts.values();
  EXPECT_EQ(values.total(), 5u);
  EXPECT_EQ(values.counts[0], 3u);
  EXPECT_EQ(values.counts[1], 1u);
  EXPECT_EQ(values.counts.back(), 1u);
  EXPECT_EQ(values.sum_ns, 3'600'000'002'047u);
  EXPECT_EQ(values.max_ns, 3'600'000'000'000u);
}

TEST(DurationCounts, AQuantileIsTheEndOfItsBucketAndNeverAboveTheLongest) {
  DurationCounts counts;
  EXPECT_EQ(counts.values().quantile_ns(0.99), 0u);
  for (int i = 0; i < 99; ++i) {
    counts.add(3us);
  }
  counts.add(30s);
  EXPECT_EQ(counts.values().quantile_ns(0.5), 4095u);
  EXPECT_EQ(counts.values().quantile_ns(0.99), 4095u);
  EXPECT_EQ(counts.values().quantile_ns(1), 30'000'000'000u);
  DurationCounts one;
  one.add(3us);
  EXPECT_EQ(one.values().quantile_ns(0.5), 3000u);
}

TEST(DurationCounts, AReaderBesideTheOwnerSeesOnlyGrowingNumbers) {
  const auto counts = std::make_unique<DurationCounts>();
  std::thread owner([&counts] {
    for (int i = 0; i < 20'000; ++i) {
      counts->add(Duration(i));
    }
  });
  DurationValues last;
  for (int i = 0; i < 1000; ++i) {
    const DurationValues now = counts->values();
    EXPECT_LE(last.total(), now.total());
    EXPECT_LE(last.sum_ns, now.sum_ns);
    EXPECT_LE(last.max_ns, now.max_ns);
    last = now;
  }
  owner.join();
  EXPECT_EQ(counts->values().total(), 20'000u);
  DurationValues twice = counts->values();
  twice.add(counts->values());
  EXPECT_EQ(twice.total(), 40'000u);
  EXPECT_EQ(twice.sum_ns, 2 * counts->values().sum_ns);
  EXPECT_EQ(twice.max_ns, 19'999u);
}

}  // namespace
}  // namespace weft::sync
