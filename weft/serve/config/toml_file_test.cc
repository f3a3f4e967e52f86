// SPDX-License-Identifier: MIT
#include "weft/serve/config/toml_file.h"

#include <string>

#include <gtest/gtest.h>

namespace weft::serve::config {
namespace {

std::string repeated(const std::string& text, unsigned count) {
  std::string all;
  for (unsigned i = 0; i < count; ++i) {
    all += text;
  }
  return all;
}

TEST(ConfigNesting, DotsAndBracketsAreBoundedAndThoseInTextsAndCommentsAreNot) {
  EXPECT_FALSE(find_refused("a" + repeated(".a", kNestingMax - 1) + " = 1"));
  EXPECT_TRUE(find_refused("a" + repeated(".a", kNestingMax) + " = 1"));
  EXPECT_TRUE(find_refused("[a" + repeated(" . a", kNestingMax) + "]"));
  EXPECT_FALSE(find_refused("a = " + repeated("[", kNestingMax) + repeated("]", kNestingMax)));
  EXPECT_TRUE(find_refused("a = " + repeated("[", kNestingMax + 1)));
  EXPECT_TRUE(find_refused("a = " + repeated("{ a = ", kNestingMax + 1)));
  const std::string dots = repeated(".", 100);
  const std::string brackets = repeated("[", 100);
  for (const std::string& inside : {dots, brackets}) {
    EXPECT_FALSE(find_refused("a = \"" + inside + "\""));
    EXPECT_FALSE(find_refused("a = '" + inside + "'"));
    EXPECT_FALSE(find_refused("a = \"\\\"" + inside + "\""));
    EXPECT_FALSE(find_refused("a = \"\"\"\n\"\" " + inside + "\n\"\"\"\"\""));
    EXPECT_FALSE(find_refused("a = '''\n" + inside + "'''"));
    EXPECT_FALSE(find_refused("# " + inside));
    EXPECT_TRUE(find_refused("a = \"\" " + inside));
    EXPECT_TRUE(find_refused("a = '''x''''' " + inside));
    EXPECT_TRUE(find_refused("a = 'x\\' " + inside));
    EXPECT_TRUE(find_refused("# \n" + inside));
  }
  EXPECT_FALSE(find_refused(repeated("a.b = 1\n", 1000)));
  const auto place = find_refused("x = 1\n y = " + brackets);
  ASSERT_TRUE(place);
  EXPECT_EQ(place->at.line, 2u);
  EXPECT_EQ(place->at.column, 6 + kNestingMax);
}

class ConfigToml : public testing::Test {
 protected:
  void SetUp() override {
    if (!toml_available()) {
      GTEST_SKIP() << "this build has no TOML";
    }
  }
};

TEST_F(ConfigToml, ValuesHaveTheirKindsAndPlaces) {
  Problem problem;
  const auto root = parse_toml(
      "a = 1\n"
      "[b]\n"
      "  c = [ \"x\", 1.5, true ]\n"
      "  d = 1979-05-27\n"
      "[[e]]\n",
      problem);
  ASSERT_TRUE(root) << problem.message();
  ASSERT_EQ(root->items.size(), 3u);
  EXPECT_EQ(root->items[0].name, "a");
  EXPECT_EQ(std::get<std::int64_t>(root->items[0].scalar), 1);
  const TomlNode& b = root->items[1];
  ASSERT_EQ(b.items.size(), 2u);
  EXPECT_EQ(b.items[0].at.line, 3u);
  EXPECT_EQ(b.items[0].at.column, 3u);
  ASSERT_EQ(b.items[0].items.size(), 3u);
  EXPECT_EQ(std::get<std::string>(b.items[0].items[0].scalar), "x");
  EXPECT_EQ(std::get<double>(b.items[0].items[1].scalar), 1.5);
  EXPECT_TRUE(std::get<bool>(b.items[0].items[2].scalar));
  EXPECT_EQ(b.items[1].kind, TomlNode::Kind::date);
  EXPECT_EQ(root->items[2].kind, TomlNode::Kind::list);
  EXPECT_EQ(root->items[2].items[0].at.line, 5u);
}

TEST_F(ConfigToml, LettersThatAreNotAsciiAreTakenInTextsAndRefusedElsewhere) {
  Problem problem;
  const auto root = parse_toml("a = \"\"\"x\\\n  \xC3\xA9\"\"\" # \xC3\xA9\n", problem);
  ASSERT_TRUE(root) << problem.message();
  EXPECT_EQ(std::get<std::string>(root->items[0].scalar), "x\xC3\xA9");
  for (const char* bad :
       {"\xC3\xA9 = 1", "a = \xC3\xA9", "a = 1\xC3\xA9", "a = 1 \xC8\xAB", "a = 0=\"\\\xEF\xBB\xBD\""}) {
    EXPECT_FALSE(parse_toml(bad, problem)) << bad;
  }
}

TEST_F(ConfigToml, AFaultOfTheSyntaxHasItsPlace) {
  Problem problem;
  EXPECT_FALSE(parse_toml("a = 1\nb = = 2\n", problem));
  EXPECT_EQ(problem.origin.at.line, 2u);
  EXPECT_NE(problem.text, "");
  EXPECT_FALSE(parse_toml("a = 1\na = 2\n", problem));
  EXPECT_EQ(problem.origin.at.line, 2u);
  EXPECT_FALSE(parse_toml("a = \"\xff\"\n", problem));
}

TEST_F(ConfigToml, ALargeOrDeepFileIsRefusedBeforeItIsParsed) {
  Problem problem;
  EXPECT_FALSE(parse_toml(std::string(kFileMax + 1, '#'), problem));
  EXPECT_EQ(problem.text, "the file has more than 1 MiB");
  EXPECT_TRUE(parse_toml(std::string(kFileMax, '#'), problem));
  EXPECT_FALSE(parse_toml("a" + repeated(".a", 400'000) + " = 1", problem));
  EXPECT_EQ(problem.text, "nested deeper than 16 levels");
}

}  // namespace
}  // namespace weft::serve::config
