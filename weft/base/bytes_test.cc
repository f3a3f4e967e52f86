// SPDX-License-Identifier: MIT
#include "weft/base/bytes.h"

#include <array>

#include <gtest/gtest.h>

namespace weft {
namespace {

TEST(Bytes, TextAndBytesAreTheSameMemory) {
  const std::string_view text("a\0b", 3);
  const Bytes bytes = as_bytes(text);
  EXPECT_EQ(bytes.size(), 3u);
  EXPECT_EQ(static_cast<const void*>(bytes.data()), static_cast<const void*>(text.data()));
  EXPECT_EQ(as_text(bytes), text);
}

TEST(Bytes, CopyingNothingAllowsNullOnBothSides) {
  copy_bytes(nullptr, Bytes());
  std::array<std::uint8_t, 2> target = {1, 2};
  copy_bytes(target.data(), Bytes());
  EXPECT_EQ(target, (std::array<std::uint8_t, 2>{1, 2}));
  copy_bytes(target.data(), as_bytes("x"));
  EXPECT_EQ(target, (std::array<std::uint8_t, 2>{'x', 2}));
}

}  // namespace
}  // namespace weft
