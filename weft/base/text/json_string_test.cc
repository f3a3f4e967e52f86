// SPDX-License-Identifier: MIT
#include "weft/base/text/json_string.h"

#include <cstdint>
#include <string>

#include "weft/base/random.h"
#include <gtest/gtest.h>

namespace weft {
namespace {

std::string json_of(std::string_view text) {
  std::string appended = "before";
  append_json_string(text, appended);
  std::string written(2 + kJsonEscapedSize * text.size(), '-');
  const char* const end = write_json_string(text, written.data());
  written.resize(static_cast<std::size_t>(end - written.data()));
  EXPECT_EQ(appended, "before" + written);
  return written;
}

TEST(JsonString, PrintableAsciiStandsForItself) {
  EXPECT_EQ(json_of(""), R"("")");
  EXPECT_EQ(json_of("a word, a=b; </script> ~"), R"("a word, a=b; </script> ~")");
}

TEST(JsonString, EachOtherCharacterIsEscaped) {
  EXPECT_EQ(json_of("\"\\\n\r\t"), R"("\"\\\n\r\t")");
  EXPECT_EQ(json_of(std::string_view("\0\x01\x1f\x7f", 4)), R"("\u0000\u0001\u001f\u007f")");
  EXPECT_EQ(json_of("\xc3\xa4\xea\xb0\x80"), R"("\u00e4\uac00")");
  EXPECT_EQ(json_of("\xf0\x9f\x98\x80\xf4\x8f\xbf\xbf"), R"("\ud83d\ude00\udbff\udfff")");
}

TEST(JsonString, BytesThatAreNotUtf8BecomeTheReplacementCharacter) {
  EXPECT_EQ(json_of("a\xff\xc3"), R"("a\ufffd\ufffd")");
  EXPECT_EQ(json_of("\xed\xa0\x80"), R"("\ufffd\ufffd\ufffd")") << "a surrogate";
  EXPECT_EQ(json_of("\xc0\xaf"), R"("\ufffd\ufffd")") << "too long";
  EXPECT_EQ(json_of("\xf4\x90\x80\x80"), R"("\ufffd\ufffd\ufffd\ufffd")") << "beyond the last character";
}

TEST(JsonString, NoTextTakesMoreThanItsBound) {
  EXPECT_EQ(json_of(std::string(1000, '\x01')).size(), 2 + 1000 * kJsonEscapedSize);
  Random random(1);
  for (int i = 0; i < 1000; ++i) {
    std::string text(random.below(40), '\0');
    for (char& c : text) {
      c = static_cast<char>(random.below(256));
    }
    const std::string json = json_of(text);
    EXPECT_LE(json.size(), 2 + kJsonEscapedSize * text.size());
    for (const char c : json) {
      EXPECT_TRUE(c >= ' ' && c <= '~');
    }
  }
}

}  // namespace
}  // namespace weft
