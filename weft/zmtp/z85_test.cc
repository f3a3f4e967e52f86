// SPDX-License-Identifier: MIT
#include "weft/zmtp/z85.h"

#include <array>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace weft {
namespace {

std::string encoded(const std::vector<std::uint8_t>& bytes) {
  std::string text(z85_encoded_size(bytes.size()), '?');
  EXPECT_TRUE(z85_encode(bytes, text));
  return text;
}

Errc refusal(std::string_view text) {
  std::array<std::uint8_t, 64> bytes{};
  return z85_decode(text, bytes).error().code();
}

TEST(Z85Test, EncodesTheExampleOfTheRfc) {
  EXPECT_EQ(encoded({0x86, 0x4F, 0xD2, 0x6F, 0xB5, 0x59, 0xF7, 0x5B}), "HelloWorld");
  EXPECT_EQ(encoded({}), "");
}

TEST(Z85Test, DecodesWhatItEncoded) {
  std::vector<std::uint8_t> bytes(1024);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<std::uint8_t>(i * 37 + i / 256);
  }
  std::vector<std::uint8_t> back(bytes.size());
  ASSERT_TRUE(z85_decode(encoded(bytes), back));
  EXPECT_EQ(back, bytes);
}

TEST(Z85Test, TheLargestWordIsTheLastOneThatFits) {
  EXPECT_EQ(encoded({0xFF, 0xFF, 0xFF, 0xFF}), "%nSc0");
  EXPECT_EQ(refusal("%nSc0"), Errc::ok);
  EXPECT_EQ(refusal("%nSc1"), Errc::invalid_argument);
  EXPECT_EQ(refusal("#####"), Errc::invalid_argument);
}

TEST(Z85Test, RefusesEveryCharacterOutsideItsAlphabet) {
  int accepted = 0;
  for (int character = 0; character < 256; ++character) {
    std::string text = "0000";
    text += static_cast<char>(character);
    accepted += refusal(text) == Errc::ok ? 1 : 0;
  }
  EXPECT_EQ(accepted, 85);
}

TEST(Z85Test, RefusesOddSizesAndSmallBuffers) {
  std::array<char, 4> short_text{};
  std::array<std::uint8_t, 4> word{};
  EXPECT_EQ(z85_encode(Bytes(word).first(3), short_text).error(), Errc::invalid_argument);
  EXPECT_EQ(z85_encode(word, short_text).error(), Errc::buffer_too_small);
  EXPECT_EQ(refusal("1234"), Errc::invalid_argument);
  EXPECT_EQ(refusal("123456"), Errc::invalid_argument);
  EXPECT_EQ(z85_decode("HelloWorld", word).error(), Errc::buffer_too_small);
}

}  // namespace
}  // namespace weft
