// SPDX-License-Identifier: MIT
#include "bench/histogram.h"

#include <memory>

#include <gtest/gtest.h>

namespace bench {
namespace {

TEST(Histogram, PutsEachDurationBetweenTheEndsOfItsBucket) {
  for (std::uint64_t ns = 0; ns < Histogram::kMax; ns += ns / 3 + 1) {
    const std::size_t bucket = Histogram::bucket_of(ns);
    ASSERT_LT(bucket, Histogram::kBuckets);
    ASSERT_LE(Histogram::lowest_of(bucket), ns);
    ASSERT_GT(Histogram::lowest_of(bucket + 1), ns);
  }
  EXPECT_EQ(Histogram::bucket_of(Histogram::kMax), Histogram::kBuckets - 1);
  EXPECT_EQ(Histogram::bucket_of(~std::uint64_t{0}), Histogram::kBuckets - 1);
}

TEST(Histogram, GivesQuantilesToTheWidthOfABucket) {
  const auto histogram = std::make_unique<Histogram>();
  for (std::uint64_t ns = 1; ns <= 100'000; ++ns) {
    histogram->add(ns);
  }
  EXPECT_NEAR(histogram->quantile(0.5), 50'000, 200);
  EXPECT_NEAR(histogram->quantile(0.99), 99'000, 400);
  EXPECT_EQ(histogram->quantile(1), 100'000);
  EXPECT_EQ(histogram->max(), 100'000U);
}

TEST(Histogram, AddsUp) {
  const auto one = std::make_unique<Histogram>();
  const auto other = std::make_unique<Histogram>();
  one->add(10);
  other->add(1'000);
  other->add(1'000);
  one->add(*other);
  EXPECT_EQ(one->total(), 3U);
  EXPECT_EQ(one->max(), 1'000U);
  EXPECT_EQ(one->count(Histogram::bucket_of(1'000)), 2U);
  one->clear();
  EXPECT_EQ(one->total(), 0U);
}

}  // namespace
}  // namespace bench
