// SPDX-License-Identifier: MIT
#include "weft/serve/config/problem.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace weft::serve::config {
namespace {

TEST(ConfigProblem, AMessageHasThePlaceTheKeyAndTheRule) {
  const Problem problem{{"server.toml", {12, 3}}, "server.cores", "600 is not in 0 to 512"};
  EXPECT_EQ(problem.message(), "server.toml:12:3: server.cores: 600 is not in 0 to 512");
  EXPECT_EQ((Problem{{"WEFT_SERVER_CORES"}, "", "wrong"}).message(), "WEFT_SERVER_CORES: wrong");
}

TEST(ConfigProblem, TheNearestKeyIsTheOneWithTheFewestEdits) {
  const std::vector<std::string> words = {"cores", "sessions_max", "memory_max", "core_memory_max"};
  EXPECT_EQ(nearest("coers", words), "cores");  // swapped
  EXPECT_EQ(nearest("core", words), "cores");   // left out
  EXPECT_EQ(nearest("sesions_max", words), "sessions_max");
  EXPECT_EQ(nearest("memory-max", words), "memory_max");  // replaced
  EXPECT_EQ(nearest("corres", words), "cores");           // added
  EXPECT_EQ(nearest("colour", words), "");
  EXPECT_EQ(nearest("x", words), "");
  EXPECT_EQ(nearest("", words), "");
  EXPECT_EQ(nearest(std::string(1000, 'c'), words), "");
  EXPECT_EQ(suggestion("coers", words), "; did you mean \"cores\"?");
  EXPECT_EQ(suggestion("colour", words), "");
}

TEST(ConfigProblem, TheListIsBoundedAndTheOthersAreCounted) {
  Problems problems;
  for (std::uint32_t line = 250; line > 0; --line) {
    problems.add({{"file", {line, 1}}, "", "wrong"});
  }
  EXPECT_EQ(problems.list().size(), Problems::kMax);
  EXPECT_EQ(problems.omitted(), 250 - Problems::kMax);
  problems.sort();
  EXPECT_EQ(problems.list().front().origin.at.line, 251 - Problems::kMax);
  EXPECT_TRUE(problems.text().ends_with("and 150 more\n"));
}

}  // namespace
}  // namespace weft::serve::config
