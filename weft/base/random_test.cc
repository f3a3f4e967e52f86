// SPDX-License-Identifier: MIT
#include "weft/base/random.h"

#include <array>

#include <gtest/gtest.h>

namespace weft {
namespace {

TEST(Random, EqualSeedsGiveEqualSequencesAndOthersDoNot) {
  Random a(1);
  Random b(1);
  Random c(2);
  int equal = 0;
  for (int i = 0; i < 1000; ++i) {
    const std::uint64_t value = a.next();
    EXPECT_EQ(value, b.next());
    equal += value == c.next() ? 1 : 0;
  }
  EXPECT_EQ(equal, 0);
}

TEST(Random, FollowsTheReferenceSequences) {
  // splitmix64 and xoshiro256** computed independently from their definitions, seed 0.
  Random random(0);
  const std::array<std::uint64_t, 3> expected = {0x99ec5f36cb75f2b4u, 0xbf6e1f784956452au, 0x1a5f849d4933e6e0u};
  for (const std::uint64_t value : expected) {
    EXPECT_EQ(random.next(), value);
  }
}

TEST(Random, BelowStaysBelowAndCoversItsRange) {
  Random random(7);
  EXPECT_EQ(random.below(0), 0u);
  EXPECT_EQ(random.below(1), 0u);
  std::array<int, 10> seen{};
  for (int i = 0; i < 10000; ++i) {
    ++seen.at(random.below(10));
  }
  for (const int count : seen) {
    EXPECT_GT(count, 850);
    EXPECT_LT(count, 1150);
  }
  const std::uint64_t huge = (std::uint64_t{1} << 63) + 1;  // nearly half of all values are rejected
  for (int i = 0; i < 1000; ++i) {
    EXPECT_LT(random.below(huge), huge);
  }
}

}  // namespace
}  // namespace weft
