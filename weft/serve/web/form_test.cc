// SPDX-License-Identifier: MIT
#include "weft/serve/web/form.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace weft::serve::web {
namespace {

TEST(WebForm, TextIsDecodedAndWhatIsNoCodeStays) {
  EXPECT_EQ(percent_decode("a%20b+%2f%2F"), "a b+//");
  EXPECT_EQ(form_decode("a%20b+%2B"), "a b +");
  EXPECT_EQ(percent_decode("%"), "%");
  EXPECT_EQ(percent_decode("%4"), "%4");
  EXPECT_EQ(percent_decode("%4g%41"), "%4gA");
  EXPECT_EQ(percent_decode("%25%34%31"), "%41");  // once
  EXPECT_EQ(percent_decode("%00"), std::string(1, '\0'));
}

TEST(WebForm, PairsAreFoundByTheirDecodedNames) {
  const std::string_view text = "a=1&b=two+words&c&&=e&a=2&%66=%3D&g=h=i";
  EXPECT_EQ(find_pair(text, "a"), "1");
  EXPECT_EQ(find_pair(text, "b"), "two words");
  EXPECT_EQ(find_pair(text, "c"), "");
  EXPECT_EQ(find_pair(text, ""), "e");
  EXPECT_EQ(find_pair(text, "f"), "=");
  EXPECT_EQ(find_pair(text, "g"), "h=i");
  EXPECT_EQ(find_pair(text, "h"), std::nullopt);
  EXPECT_EQ(find_pair("", ""), std::nullopt);
  std::vector<std::string> names;
  EXPECT_FALSE(any_pair(text, [&](const FormPair& pair) {
    names.emplace_back(pair.name);
    return false;
  }));
  EXPECT_EQ(names, (std::vector<std::string>{"a", "b", "c", "", "a", "%66", "g"}));
}

}  // namespace
}  // namespace weft::serve::web
