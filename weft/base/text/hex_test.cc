// SPDX-License-Identifier: MIT
#include "weft/base/text/hex.h"

#include <gtest/gtest.h>

namespace weft {
namespace {

TEST(Hex, OnlyTheDigitsOfBothCasesHaveAValue) {
  int digits = 0;
  for (int byte = 0; byte < 256; ++byte) {
    const char c = static_cast<char>(byte);
    const std::size_t lower = kHexDigits.find(c);
    const std::size_t upper = kUpperHexDigits.find(c);
    const bool known = lower != std::string_view::npos || upper != std::string_view::npos;
    const int value = static_cast<int>(lower != std::string_view::npos ? lower : upper);
    EXPECT_EQ(hex_value(c), known ? value : -1) << byte;
    EXPECT_EQ(lower_hex_value(c), lower != std::string_view::npos ? value : -1) << byte;
    EXPECT_EQ(upper_hex_value(c), upper != std::string_view::npos ? value : -1) << byte;
    digits += known ? 1 : 0;
  }
  EXPECT_EQ(digits, 22);
}

TEST(Hex, ANumberHasZerosBeforeItOrIsCutInFront) {
  const auto written = [](std::uint64_t number, std::size_t count, std::string_view digits = kHexDigits) {
    std::string text(count + 2, '-');
    EXPECT_EQ(write_hex(number, count, text.data() + 1, digits), text.data() + 1 + count);
    return text;
  };
  EXPECT_EQ(written(0xBEEF, 8), "-0000beef-");
  EXPECT_EQ(written(0xBEEF, 3), "-eef-");
  EXPECT_EQ(written(0xBEEF, 4, kUpperHexDigits), "-BEEF-");
  EXPECT_EQ(written(~std::uint64_t{0}, 16), "-ffffffffffffffff-");
  EXPECT_EQ(written(0, 1), "-0-");
  EXPECT_EQ(written(7, 0), "--");
}

TEST(Hex, EachByteHasTwoDigits) {
  std::string text = "0x";
  append_hex_bytes(std::string_view("\0\x7f\xff", 3), text);
  EXPECT_EQ(text, "0x007fff");
  append_hex_bytes("\xab", text, kUpperHexDigits);
  EXPECT_EQ(text, "0x007fffAB");
  append_hex_bytes("", text);
  EXPECT_EQ(text, "0x007fffAB");
}

}  // namespace
}  // namespace weft
