// SPDX-License-Identifier: MIT
#include "weft/sys/mirror.h"

#include <algorithm>
#include <limits>
#include <utility>

#include <gtest/gtest.h>

namespace weft::sys {
namespace {

TEST(Mirror, ShowsEachByteTwice) {
  const Mirror mirror = Mirror::make(1).value();
  ASSERT_GE(mirror.size(), 1u);
  EXPECT_EQ(std::count(mirror.data(), mirror.data() + 2 * mirror.size(), 0), std::ptrdiff_t(2 * mirror.size()));
  mirror.data()[3] = 7;
  EXPECT_EQ(mirror.data()[mirror.size() + 3], 7);
  mirror.data()[2 * mirror.size() - 1] = 9;
  EXPECT_EQ(mirror.data()[mirror.size() - 1], 9);
}

TEST(Mirror, RoundsUpToWholePages) {
  const std::size_t page = Mirror::make(1).value().size();
  EXPECT_EQ(Mirror::make(page).value().size(), page);
  EXPECT_EQ(Mirror::make(page + 1).value().size(), 2 * page);
}

TEST(Mirror, RefusesNothingAndTooMuch) {
  EXPECT_EQ(Mirror::make(0).error(), Errc::invalid_argument);
  EXPECT_EQ(Mirror::make(std::numeric_limits<std::size_t>::max()).error(), Errc::invalid_argument);
  EXPECT_FALSE(Mirror::make(std::size_t{1} << 50)) << "more than the machine can address";
}

TEST(Mirror, HasOneOwner) {
  Mirror first = Mirror::make(1).value();
  std::uint8_t* data = first.data();
  Mirror second = std::move(first);
  EXPECT_EQ(second.data(), data);
  EXPECT_EQ(first.data(), nullptr);  // NOLINT(bugprone-use-after-move)
  first = std::move(second);
  EXPECT_EQ(first.data(), data);
}

}  // namespace
}  // namespace weft::sys
