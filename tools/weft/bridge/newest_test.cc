// SPDX-License-Identifier: MIT
#include "tools/weft/bridge/newest.h"

#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace weft::bridge {
namespace {

std::vector<Message> message(std::string_view body) {
  std::vector<Message> frames;
  frames.emplace_back(body);
  return frames;
}
std::string found(const Newest& newest, const std::string& topic) {
  const std::vector<Message> frames = newest.find(topic);
  return frames.empty() ? "" : std::string(frames[0].text());
}

TEST(Newest, KeepsTheNewestMessageOfEachTopic) {
  Newest newest(10, 10'000);
  newest.keep("a", message("1"));
  newest.keep("b", message("2"));
  newest.keep("a", message("3"));
  EXPECT_EQ(found(newest, "a"), "3");
  EXPECT_EQ(found(newest, "a"), "3") << "a value is shared, not taken";
  EXPECT_EQ(found(newest, "b"), "2");
  EXPECT_EQ(found(newest, "c"), "");
}

TEST(Newest, ForgetsTheTopicThatWasSilentLongest) {
  Newest newest(2, 10'000);
  newest.keep("a", message("1"));
  newest.keep("b", message("2"));
  newest.keep("a", message("3"));
  EXPECT_EQ(newest.keep("c", message("4")), 1U);
  EXPECT_EQ(found(newest, "b"), "");
  EXPECT_EQ(found(newest, "a"), "3");
  EXPECT_EQ(newest.topics(), 2U);
}

TEST(Newest, HoldsItsBytes) {
  Newest newest(1'000'000, 10'000);
  for (int i = 0; i < 1000; ++i) {
    newest.keep("t" + std::to_string(i), message(std::string(static_cast<std::size_t>(i), 'x')));
    ASSERT_LE(newest.bytes(), 10'000U);
  }
  EXPECT_EQ(found(newest, "t999").size(), 999U);
  EXPECT_EQ(newest.keep("t999", message(std::string(20'000, 'x'))), 1U);
  EXPECT_EQ(found(newest, "t999"), "") << "an old value would pass for the newest one";
}

}  // namespace
}  // namespace weft::bridge
