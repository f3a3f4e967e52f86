// SPDX-License-Identifier: MIT
#include "weft/base/time.h"

#include <limits>

#include <gtest/gtest.h>

namespace weft {
namespace {

using namespace std::chrono_literals;

constexpr Instant at(std::int64_t nanoseconds) { return Instant(Duration(nanoseconds)); }

TEST(Time, ADeadlineIsTheStartPlusTheWait) {
  EXPECT_EQ(deadline_after(at(5), 10ns), at(15));
  EXPECT_EQ(deadline_after(at(5), 0ns), at(5));
  EXPECT_EQ(deadline_after(at(-5), 3ns), at(-2));
}

TEST(Time, ANegativeWaitLastsForEver) {
  EXPECT_EQ(deadline_after(at(5), Duration(-1)), kNever);
  EXPECT_EQ(deadline_after(at(5), Duration::min()), kNever);
}

TEST(Time, AWaitThatWouldOverflowLastsForEver) {
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(deadline_after(at(kMax - 10), 9ns), at(kMax - 1));
  EXPECT_EQ(deadline_after(at(kMax - 10), 10ns), kNever);
  EXPECT_EQ(deadline_after(at(kMax - 10), 11ns), kNever);
  EXPECT_EQ(deadline_after(at(1), Duration::max()), kNever);
}

TEST(Time, NeverIsLaterThanAnyOtherInstant) {
  EXPECT_LT(at(std::numeric_limits<std::int64_t>::max() - 1), kNever);
  EXPECT_EQ(deadline_after(kNever, 1ns), kNever);
}

}  // namespace
}  // namespace weft
