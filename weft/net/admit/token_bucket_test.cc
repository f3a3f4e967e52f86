// SPDX-License-Identifier: MIT
#include "weft/net/admit/token_bucket.h"

#include <gtest/gtest.h>

namespace weft::net {
namespace {

constexpr Instant kStart = Instant(Duration(1'000'000'000'000));

// How many calls are allowed when the caller tries once each `step` for `time`, first at once and last at the end.
std::uint64_t allowed(const RateLimit& limit, Duration step, Duration time) {
  TokenBucket bucket;
  std::uint64_t count = 0;
  for (Instant now = kStart; now <= kStart + time; now += step) {
    count += bucket.try_take(limit, now) ? 1 : 0;
  }
  return count;
}

// Limiters that add whole tokens for whole steps lose the remainder at each call.
TEST(TokenBucket, NothingIsLostHoweverOftenTheCallerTries) {
  using std::chrono::microseconds;
  using std::chrono::seconds;
  EXPECT_EQ(allowed({100, 10}, microseconds(350), seconds(2)), 200 + 10u - 1);  // 2 s are not a multiple of 0.35 ms
  EXPECT_EQ(allowed({100, 10}, microseconds(400), seconds(2)), 200 + 10u);
  EXPECT_EQ(allowed({3, 2}, microseconds(10), seconds(1)), 3 + 2u);
  EXPECT_EQ(allowed({7, 2}, microseconds(333), seconds(10)), 69 + 2u);
  EXPECT_EQ(allowed({1'000'000, 1}, microseconds(1), std::chrono::milliseconds(10)), 10'000 + 1u);
  EXPECT_EQ(allowed({4'000'000'000U, 5}, Duration(1), Duration(1000)), 1001u);
}

TEST(TokenBucket, StartsFullAndHoldsNoMoreThanTheBurst) {
  const RateLimit limit{10, 3};
  TokenBucket bucket;
  for (const Instant now : {kStart, kStart + std::chrono::hours(24 * 365)}) {
    for (int i = 0; i < 3; ++i) {
      EXPECT_TRUE(bucket.try_take(limit, now));
    }
    EXPECT_FALSE(bucket.try_take(limit, now));
  }
}

TEST(TokenBucket, WithoutALimitEverythingIsAllowed) {
  TokenBucket bucket;
  for (int i = 0; i < 1000; ++i) {
    EXPECT_TRUE(bucket.try_take({}, kStart, 1'000'000));
  }
  EXPECT_EQ(bucket.wait({}, kStart), Duration::zero());
}

TEST(TokenBucket, ABurstOfNoneIsOneAtATime) {
  TokenBucket bucket;
  EXPECT_TRUE(bucket.try_take({1, 0}, kStart));
  EXPECT_FALSE(bucket.try_take({1, 0}, kStart));
}

TEST(TokenBucket, SaysToTheNanosecondWhenToComeAgain) {
  const RateLimit limit{3, 5};
  TokenBucket bucket;
  EXPECT_TRUE(bucket.try_take(limit, kStart, 5));
  const Duration wait = bucket.wait(limit, kStart, 2);
  EXPECT_EQ(wait, Duration(666'666'667));
  TokenBucket early = bucket;
  EXPECT_FALSE(early.try_take(limit, kStart + wait - Duration(1), 2));
  EXPECT_TRUE(bucket.try_take(limit, kStart + wait, 2));
  EXPECT_LT(bucket.wait(limit, kStart, 6), Duration::zero());
}

TEST(TokenBucket, TimeThatGoesBackGivesNothing) {
  const RateLimit limit{1'000, 1};
  TokenBucket bucket;
  EXPECT_TRUE(bucket.try_take(limit, kStart));
  EXPECT_FALSE(bucket.try_take(limit, kStart - std::chrono::hours(1)));
  EXPECT_FALSE(bucket.try_take(limit, kStart));
  EXPECT_TRUE(bucket.try_take(limit, kStart + std::chrono::milliseconds(1)));
}

TEST(TokenBucket, TheLargestLimitsAndTimesDoNotOverflow) {
  const RateLimit limit{4'294'967'295U, 4'294'967'295U};
  TokenBucket bucket;
  EXPECT_TRUE(bucket.try_take(limit, Instant(Duration::min() + Duration(1)), 4'294'967'295U));
  EXPECT_FALSE(bucket.try_take(limit, Instant(Duration::min() + Duration(1))));
  EXPECT_TRUE(bucket.try_take(limit, kNever, 4'294'967'295U));
  EXPECT_FALSE(bucket.try_take(limit, kNever));
}

}  // namespace
}  // namespace weft::net
