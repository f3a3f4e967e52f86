// SPDX-License-Identifier: MIT
#include "weft/base/text/utf8.h"

#include <iterator>
#include <string>

#include <gtest/gtest.h>

namespace weft {
namespace {

TEST(Utf8, APrefixEndsWithAWholeCharacter) {
  const std::string text = "a\xc3\xa4\xea\xb0\x80\xf0\x9f\x98\x80z";  // 1, 2, 3, 4 and 1 bytes
  const std::size_t ends[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 11, 11};
  for (std::size_t most = 0; most < std::size(ends); ++most) {
    EXPECT_EQ(utf8_prefix(text, most), text.substr(0, ends[most])) << most;
  }
}

TEST(Utf8, APrefixOfOtherBytesEndsAtItsBound) {
  const std::string text(10, '\x80');
  for (std::size_t most = 0; most <= text.size(); ++most) {
    EXPECT_EQ(utf8_prefix(text, most).size(), most);
  }
}

}  // namespace
}  // namespace weft
