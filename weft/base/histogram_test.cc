// SPDX-License-Identifier: MIT
#include "weft/base/histogram.h"

#include <memory>

#include <gtest/gtest.h>

namespace weft {
namespace {

using Fine = Histogram<8>;
using Coarse = Histogram<5>;

template <typename Buckets>
void check_ends() {
  for (std::uint64_t ns = 0; ns < Buckets::kMax; ns += ns / 3 + 1) {
    const std::size_t bucket = Buckets::bucket_of(ns);
    ASSERT_LT(bucket, Buckets::kBuckets);
    ASSERT_LE(Buckets::lowest_of(bucket), ns);
    ASSERT_GT(Buckets::lowest_of(bucket + 1), ns);
  }
  EXPECT_EQ(Buckets::bucket_of(Buckets::kMax), Buckets::kBuckets - 1);
  EXPECT_EQ(Buckets::bucket_of(~std::uint64_t{0}), Buckets::kBuckets - 1);
}

TEST(Histogram, PutsEachDurationBetweenTheEndsOfItsBucket) {
  check_ends<Fine>();
  check_ends<Coarse>();
}

TEST(Histogram, GivesQuantilesToTheWidthOfABucket) {
  const auto histogram = std::make_unique<Fine>();
  for (std::uint64_t ns = 1; ns <= 100'000; ++ns) {
    histogram->add(ns);
  }
  EXPECT_NEAR(histogram->quantile(0.5), 50'000, 200);
  EXPECT_NEAR(histogram->quantile(0.99), 99'000, 400);
  EXPECT_EQ(histogram->quantile(1), 100'000);
  EXPECT_EQ(histogram->max(), 100'000U);
}

TEST(Histogram, AddsUp) {
  const auto one = std::make_unique<Fine>();
  const auto other = std::make_unique<Fine>();
  one->add(10);
  other->add(1'000);
  other->add(1'000);
  one->add(*other);
  EXPECT_EQ(one->total(), 3U);
  EXPECT_EQ(one->max(), 1'000U);
  EXPECT_EQ(one->count(Fine::bucket_of(1'000)), 2U);
  one->clear();
  EXPECT_EQ(one->total(), 0U);
}

}  // namespace
}  // namespace weft
