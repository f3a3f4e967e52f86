// SPDX-License-Identifier: MIT
#include "weft/trace/attributes.h"

#include <string>

#include <gtest/gtest.h>

namespace weft::trace {
namespace {

using Type = Attributes::Type;

Attributes::Value text(std::string_view value) { return {Type::text, value}; }
Attributes::Value number(std::int64_t value) { return {Type::integer, {}, value}; }

std::string all_of(const Attributes& attributes) {
  std::string all;
  attributes.for_each([&all](std::string_view name, const Attributes::Value& value) {
    all.append(name).append("=");
    switch (value.type) {
      case Type::text: all.append(value.text); break;
      case Type::real: all.append(std::to_string(value.real)); break;
      default: all.append(std::to_string(value.integer)).append(value.type == Type::boolean ? "b" : "");
    }
    all.append(" ");
  });
  return all;
}

TEST(Attributes, KeepEachTypeInTheOrderOfSetting) {
  Attributes attributes;
  EXPECT_TRUE(attributes.set("a", text("x")));
  EXPECT_TRUE(attributes.set("b", number(-7)));
  EXPECT_TRUE(attributes.set("c", {Type::real, {}, 0, 0.5}));
  EXPECT_TRUE(attributes.set("d", {Type::boolean, {}, 1}));
  EXPECT_TRUE(attributes.set("e", text("")));
  EXPECT_EQ(all_of(attributes), "a=x b=-7 c=0.500000 d=1b e= ");
  EXPECT_EQ(attributes.count(), 5U);
}

TEST(Attributes, ANameStandsOnceWithItsLastValue) {
  Attributes attributes;
  ASSERT_TRUE(attributes.set("a", text("first")));
  ASSERT_TRUE(attributes.set("b", number(1)));
  const std::size_t before = attributes.bytes();
  ASSERT_TRUE(attributes.set("a", text("other")));
  EXPECT_EQ(attributes.bytes(), before);
  ASSERT_TRUE(attributes.set("b", text("2")));
  EXPECT_EQ(all_of(attributes), "a=other b=2 ");
  EXPECT_EQ(attributes.count(), 2U);
}

TEST(Attributes, AreBoundedInNumber) {
  Attributes attributes;
  for (std::size_t i = 0; i < Attributes::kCountMax; ++i) {
    ASSERT_TRUE(attributes.set("n" + std::to_string(i), number(1)));
  }
  const std::string before = all_of(attributes);
  EXPECT_FALSE(attributes.set("more", number(1)));
  EXPECT_EQ(all_of(attributes), before);
  EXPECT_TRUE(attributes.set("n0", number(2)));
  EXPECT_EQ(attributes.count(), Attributes::kCountMax);
}

TEST(Attributes, AreBoundedInBytes) {
  Attributes attributes;
  const std::string large(Attributes::kTextMax, 'x');
  std::size_t taken = 0;
  while (attributes.set("n" + std::to_string(taken), text(large))) {
    ++taken;
    ASSERT_LT(taken, Attributes::kCountMax);
  }
  EXPECT_GE(taken, 7U);
  EXPECT_LE(attributes.bytes(), Attributes::kBytesMax);
  EXPECT_TRUE(attributes.set("n0", text(large)));  // in the place of the old one
  EXPECT_FALSE(attributes.set("large", text(large)));
  EXPECT_TRUE(attributes.set("small", number(1)));
}

TEST(Attributes, ALongValueIsCutBetweenCharactersAndALongNameIsDropped) {
  Attributes attributes;
  ASSERT_TRUE(attributes.set("a", text(std::string(Attributes::kTextMax - 1, 'x') + "\xc3\xa4 more")));
  attributes.for_each([](std::string_view /*name*/, const Attributes::Value& value) {
    EXPECT_EQ(value.text, std::string(Attributes::kTextMax - 1, 'x'));
  });
  EXPECT_TRUE(attributes.set(std::string(Attributes::kNameMax, 'n'), number(1)));
  EXPECT_FALSE(attributes.set(std::string(Attributes::kNameMax + 1, 'n'), number(1)));
  EXPECT_FALSE(attributes.set("", number(1)));
  EXPECT_EQ(attributes.count(), 2U);
}

TEST(Attributes, ATextIsCutAtMostBeforeOneCharacter) {
  EXPECT_EQ(cut_text("abc", 3), "abc");
  EXPECT_EQ(cut_text("abcd", 3), "abc");
  EXPECT_EQ(cut_text("ab\xe2\x82\xac", 4), "ab");
  EXPECT_EQ(cut_text("ab\xe2\x82\xac", 5), "ab\xe2\x82\xac");
  EXPECT_EQ(cut_text("\x80\x80\x80\x80\x80\x80", 5), "\x80\x80");  // not UTF-8
  EXPECT_EQ(cut_text("abc", 0), "");
}

}  // namespace
}  // namespace weft::trace
