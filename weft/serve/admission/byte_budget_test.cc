// SPDX-License-Identifier: MIT
#include "weft/serve/admission/byte_budget.h"

#include <gtest/gtest.h>

namespace weft::serve {
namespace {

constexpr std::size_t kStep = ByteBudget::kStep;

TEST(ByteBudget, SharesNeverHoldMoreThanTheLimitTogether) {
  ByteBudget budget(4 * kStep);
  ByteBudget::Share a(budget, 4 * kStep);
  ByteBudget::Share b(budget, 4 * kStep);
  EXPECT_TRUE(a.take(2 * kStep));
  EXPECT_TRUE(b.take(kStep));
  EXPECT_FALSE(b.take(2 * kStep));
  EXPECT_EQ(b.held(), kStep);
  EXPECT_LE(budget.granted(), budget.limit());
}

TEST(ByteBudget, EachOwnersBytesAreInItsGauge) {
  ByteBudget budget(10 * kStep);
  sync::Counter gauges[kMemoryOwners];
  ByteBudget::Share share(budget, 1000, gauges);
  EXPECT_TRUE(share.take(300, MemoryOwner::queues));
  EXPECT_TRUE(share.take(500, MemoryOwner::handshakes));
  EXPECT_FALSE(share.take(500, MemoryOwner::queues));
  EXPECT_TRUE(share.take(100));
  share.give_back(200, MemoryOwner::queues);
  const auto of = [&gauges](MemoryOwner owner) { return gauges[static_cast<std::size_t>(owner)].value(); };
  EXPECT_EQ(of(MemoryOwner::queues), 100u);
  EXPECT_EQ(of(MemoryOwner::handshakes), 500u);
  EXPECT_EQ(of(MemoryOwner::bodies), 100u);
  EXPECT_EQ(of(MemoryOwner::received), 0u);
  EXPECT_EQ(share.held(), 700u);
}

TEST(ByteBudget, AShareKeepsToItsOwnLimit) {
  ByteBudget budget(100 * kStep);
  ByteBudget::Share share(budget, 1000);
  EXPECT_TRUE(share.take(1000));
  EXPECT_FALSE(share.take(1));
  share.give_back(1);
  EXPECT_TRUE(share.take(1));
}

TEST(ByteBudget, BytesGivenBackAreThereForOtherShares) {
  ByteBudget budget(10 * kStep);
  ByteBudget::Share a(budget, 10 * kStep);
  ByteBudget::Share b(budget, 10 * kStep);
  EXPECT_TRUE(a.take(9 * kStep));
  EXPECT_FALSE(b.take(5 * kStep));
  a.give_back(9 * kStep);
  EXPECT_TRUE(b.take(5 * kStep));
  b.give_back(5 * kStep);
}

TEST(ByteBudget, AShareThatEndsGivesEverythingBack) {
  ByteBudget budget(10 * kStep);
  {
    ByteBudget::Share share(budget, 10 * kStep);
    EXPECT_TRUE(share.take(3 * kStep));
    share.give_back(3 * kStep);
    EXPECT_NE(budget.granted(), 0u);
  }
  EXPECT_EQ(budget.granted(), 0u);
}

}  // namespace
}  // namespace weft::serve
