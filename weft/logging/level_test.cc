// SPDX-License-Identifier: MIT
#include "weft/logging/level.h"

#include <string>

#include <gtest/gtest.h>

namespace weft::logging {
namespace {

TEST(Level, EveryNameParsesBackToItsLevel) {
  for (const Level level : {Level::trace, Level::debug, Level::info, Level::warning, Level::error, Level::off}) {
    EXPECT_EQ(parse_level(describe(level)), level);
  }
  for (const char* text : {"", "warn", "Info", "info ", "0"}) {
    EXPECT_EQ(parse_level(text), std::nullopt) << text;
  }
}

TEST(Level, AComponentHasPartsWithPointsBetween) {
  for (const char* name : {"a", "serve", "serve.session", "my-app.db_2"}) {
    EXPECT_TRUE(is_component(name)) << name;
  }
  for (const char* name : {"", ".", "a.", ".a", "a..b", "A", "a b", "a=b", "a\n"}) {
    EXPECT_FALSE(is_component(name)) << name;
  }
  EXPECT_TRUE(is_component(std::string(64, 'a')));
  EXPECT_FALSE(is_component(std::string(65, 'a')));
}

TEST(Level, ARuleNamesAComponentAndALevel) {
  const auto rule = parse_level_rule("serve.session=warning");
  ASSERT_TRUE(rule);
  EXPECT_EQ(rule->component, "serve.session");
  EXPECT_EQ(rule->level, Level::warning);
  for (const char* text : {"", "serve", "serve=", "=debug", "serve=loud", "Serve=debug", "serve = debug"}) {
    EXPECT_FALSE(parse_level_rule(text)) << text;
  }
}

}  // namespace
}  // namespace weft::logging
