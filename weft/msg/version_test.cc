// SPDX-License-Identifier: MIT
#include "weft/msg/version.h"

#include <cstdio>

#include "weft/base/version.h"
#include <gtest/gtest.h>

namespace weft {
namespace {

TEST(LibraryVersion, IsThatOfTheHeaders) {
  int major = -1;
  int minor = -1;
  int patch = -1;
  int end = 0;
  ASSERT_EQ(std::sscanf(version(), "%d.%d.%d%n", &major, &minor, &patch, &end), 3) << version();
  EXPECT_EQ(version()[end], '\0');
  EXPECT_EQ(major * 10000 + minor * 100 + patch, WEFT_VERSION);
}

}  // namespace
}  // namespace weft
