// SPDX-License-Identifier: MIT
#include "weft/base/text/base64.h"

#include <gtest/gtest.h>

namespace weft {
namespace {

// RFC 4648 section 10.
constexpr std::string_view kExamples[][2] = {{"", ""},
                                             {"f", "Zg=="},
                                             {"fo", "Zm8="},
                                             {"foo", "Zm9v"},
                                             {"foob", "Zm9vYg=="},
                                             {"fooba", "Zm9vYmE="},
                                             {"foobar", "Zm9vYmFy"}};

TEST(Base64, TheExamplesOfTheStandard) {
  for (const auto& [bytes, text] : kExamples) {
    EXPECT_EQ(encode_base64(bytes), text);
    std::string back = "before ";
    EXPECT_TRUE(decode_base64(text, back));
    EXPECT_EQ(back, "before " + std::string(bytes));
  }
}

TEST(Base64, EveryByteAtEachPlaceComesBack) {
  for (int byte = 0; byte < 256; ++byte) {
    for (std::size_t place = 0; place < 3; ++place) {
      std::string bytes(3, '\x55');
      bytes[place] = static_cast<char>(byte);
      std::string back;
      EXPECT_TRUE(decode_base64(encode_base64(bytes), back));
      EXPECT_EQ(back, bytes);
    }
  }
}

TEST(Base64, ATextOfAnotherFormChangesNothing) {
  for (const std::string_view wrong : {"Z", "Zg", "Zg=", "Zg==Zg==", "Zg=v", "====", "Z===", "Zm9v\n", "Zm9v=", "Zm-v",
                                       "Zm_v", "Zm9v Zm9", "Zm9vZm\xC3\xA9"}) {
    std::string out = "before";
    EXPECT_FALSE(decode_base64(wrong, out)) << wrong;
    EXPECT_EQ(out, "before");
  }
}

}  // namespace
}  // namespace weft
