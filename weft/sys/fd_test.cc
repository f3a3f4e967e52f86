// SPDX-License-Identifier: MIT
#include "weft/sys/fd.h"

#include <fcntl.h>

#include <utility>

#include <gtest/gtest.h>

namespace weft::sys {
namespace {

TEST(Fd, ClosesOnceAndMoves) {
  Fd first(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  ASSERT_TRUE(first.valid());
  const int number = first.fd();
  Fd second(std::move(first));
  EXPECT_FALSE(first.valid());  // NOLINT(bugprone-use-after-move)
  EXPECT_EQ(second.fd(), number);
  Fd& alias = second;
  second = std::move(alias);
  EXPECT_EQ(second.fd(), number);
  second.close();
  second.close();
  EXPECT_FALSE(second.valid());
  EXPECT_EQ(::fcntl(number, F_GETFD), -1);
}

}  // namespace
}  // namespace weft::sys
