// SPDX-License-Identifier: MIT
#include "weft/serve/inspect/json_text.h"

#include <cmath>
#include <string>

#include <gtest/gtest.h>

namespace weft::serve {
namespace {

TEST(JsonText, ObjectsAndArraysNestWithASeparatorBetweenValues) {
  JsonText json;
  json.object([&json] {
    json.member("cores", 2U);
    json.array("list", [&json] {
      json.value(1U);
      json.object([&json] { json.member("x", true); });
      json.array([] {});
      json.object([] {});
    });
    json.object("inner", [&json] {
      json.member("a", 0.5);
      json.member("b", "two words");
    });
    json.member("end", false);
  });
  EXPECT_EQ(json.text(), R"({"cores":2,"list":[1,{"x":true},[],{}],"inner":{"a":0.5,"b":"two words"},"end":false})");
}

TEST(JsonText, AnyTextIsAStringOfJson) {
  const auto string_of = [](std::string_view text) {
    JsonText json;
    json.value(text);
    return json.text();
  };
  EXPECT_EQ(string_of(""), R"("")");
  EXPECT_EQ(string_of("word"), R"("word")");
  EXPECT_EQ(string_of("a=b"), R"("a=b")");
  EXPECT_EQ(string_of("</script>\"\\\n"), R"("</script>\"\\\n")");
  EXPECT_EQ(string_of("\x01\xFF\xC3\xA4"), "\"\\u0001\\ufffd\\u00e4\"");
  EXPECT_EQ(string_of(std::string(10'000, 'a')).size(), 2 + JsonText::kStringMax);
}

TEST(JsonText, ANumberThatIsNoneIsNull) {
  JsonText json;
  json.array([&json] {
    json.value(1e300);
    json.value(std::nan(""));
    json.value(HUGE_VAL);
    json.value(~std::uint64_t{0});
  });
  EXPECT_EQ(json.text(), "[1e+300,null,null,18446744073709551615]");
}

}  // namespace
}  // namespace weft::serve
