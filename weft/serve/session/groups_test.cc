// SPDX-License-Identifier: MIT
#include "weft/serve/session/groups.h"

#include <set>

#include <gtest/gtest.h>

namespace weft::serve {
namespace {

TEST(GroupHashTest, TwoTablesHashAGroupDifferently) {
  const GroupHash first;
  const GroupHash second;
  EXPECT_NE(first(1), second(1));
  EXPECT_EQ(first(1), GroupHash(first)(1));
}

// A table without a key has a bucket for the number modulo its size.
TEST(GroupHashTest, NumbersOfOneBucketOfAKeylessTableAreSpread) {
  constexpr std::uint64_t kBuckets = 1 << 12;
  constexpr std::uint64_t kGroups = 4096;
  const GroupHash hash;
  std::set<std::uint64_t> buckets;
  for (std::uint64_t i = 0; i < kGroups; ++i) {
    buckets.insert(hash(i * kBuckets) % kBuckets);
  }
  EXPECT_GT(buckets.size(), kBuckets / 2);
}

}  // namespace
}  // namespace weft::serve
