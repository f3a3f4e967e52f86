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

TEST(Time, SumsAndDifferencesOfInstantsSaturate) {
  constexpr Instant kMin = Instant::min();
  const struct {
    Instant a;
    Instant b;
    Duration difference;
  } rows[] = {
      {kMin, at(1), Duration::min()},
      {kMin, kNever, Duration::min()},
      {kMin, at(0), Duration::min()},
      {kMin, kMin, 0ns},
      {at(0), kMin, Duration::max()},
      {at(-1), kMin, Duration::max()},
      {kNever, kMin, Duration::max()},
      {kNever, at(-1), Duration::max()},
      {kNever, kNever, 0ns},
      {at(5), at(7), -2ns},
      {at(7), at(5), 2ns},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(row.a - row.b, row.difference) << row.a.time_since_epoch().count();
  }
  EXPECT_EQ(kNever + 1h, kNever);
  EXPECT_EQ(1h + kNever, kNever);
  EXPECT_EQ(kNever - Duration(-1), kNever);
  EXPECT_EQ(kMin - 1ms, kMin);
  EXPECT_EQ(kMin + Duration::min(), kMin);
  EXPECT_EQ(kMin + Duration::max(), at(-1));
  EXPECT_EQ(at(5) + 2us, at(2005));
  EXPECT_EQ(at(5) - 2us, at(-1995));
}

TEST(Time, TheTimeLeftIsWhatAWaitingCallTakes) {
  EXPECT_EQ(time_left(at(7), at(5)), 2ns);
  EXPECT_LT(time_left(kNever, at(5)), 0ns);
  for (const Instant past : {Instant::min(), at(-1), at(0), at(5)}) {
    EXPECT_EQ(time_left(past, at(5)), 0ns);
    EXPECT_EQ(time_left(past, kNever), 0ns);
  }
  EXPECT_EQ(time_left(at(1), Instant::min()), Duration::max());
}

}  // namespace
}  // namespace weft
