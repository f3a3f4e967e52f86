// SPDX-License-Identifier: MIT
#include "weft/net/ws/utf8_scanner.h"

#include <string>

#include "weft/base/text/utf8.h"
#include <gtest/gtest.h>

namespace weft::net::ws {
namespace {

bool takes(Bytes text) {
  Utf8Scanner scanner;
  return scanner.take(text) && scanner.complete();
}

// Each pair of bytes that a character can begin with, followed by each number of bytes that may continue it.
TEST(Utf8Scanner, TakesWhatIsUtf8AndNothingElse) {
  for (int first = 0; first < 256; ++first) {
    for (int second = 0; second < 256; ++second) {
      for (const char* const rest : {"", "\x80", "\x80\x80", "\xBF\xBF", "a", "\x80\xC0"}) {
        const std::string text = std::string{static_cast<char>(first), static_cast<char>(second)}.append(rest);
        EXPECT_EQ(takes(as_bytes(text)), is_utf8(text)) << first << " " << second;
      }
    }
  }
}

TEST(Utf8Scanner, TheOutcomeDoesNotDependOnTheCuts) {
  const std::string whole = "ascii that is long enough \xCE\xBA\xE1\xBD\xB9\xF0\x9F\x98\x80 and ascii again";
  for (const bool broken : {false, true}) {
    std::string text = whole;
    if (broken) {
      text[28] = '\xED';  // makes a surrogate of the second character
    }
    for (std::size_t cut = 0; cut <= text.size(); ++cut) {
      Utf8Scanner scanner;
      const bool good =
          scanner.take(as_bytes(text).first(cut)) && scanner.take(as_bytes(text).subspan(cut)) && scanner.complete();
      EXPECT_EQ(good, !broken) << cut;
    }
  }
}

TEST(Utf8Scanner, AFaultIsReportedByTheByteThatShowsIt) {
  Utf8Scanner scanner;
  EXPECT_TRUE(scanner.take(as_bytes("\xF4")));
  EXPECT_FALSE(scanner.complete());
  EXPECT_FALSE(scanner.take(as_bytes("\x90")));  // above U+10FFFF, whatever follows
}

}  // namespace
}  // namespace weft::net::ws
