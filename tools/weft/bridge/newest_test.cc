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
// The bodies of the topics that begin with the prefix.
std::string found(const Newest& newest, const std::string& prefix) {
  std::string all;
  EXPECT_EQ(newest.give_each(prefix,
                             [&](std::vector<Message> frames) {
                               all += frames[0].text();
                               return true;
                             }),
            0U);
  return all;
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

TEST(Newest, GivesTheTopicsOfAPrefixUntilThereIsNoRoom) {
  Newest newest(10, 10'000);
  for (const char* const topic : {"b.2", "a", "b.1", "c", "b"}) {
    newest.keep(topic, message(topic));
  }
  EXPECT_EQ(found(newest, "b"), "bb.1b.2");
  EXPECT_EQ(found(newest, "b."), "b.1b.2");
  EXPECT_EQ(found(newest, ""), "abb.1b.2c");
  int room = 2;
  EXPECT_EQ(newest.give_each("", [&](const std::vector<Message>&) { return room-- > 0; }), 3U);
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
