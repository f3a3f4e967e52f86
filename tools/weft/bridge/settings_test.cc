// SPDX-License-Identifier: MIT
#include "tools/weft/bridge/settings.h"

#include <string>

#include "weft/serve/config/toml_file.h"
#include <gtest/gtest.h>

namespace weft::bridge {
namespace {

std::string problems_of(const std::string& text) {
  serve::config::Problems problems;
  (void)read_settings(text, "b.toml", problems);
  return problems.text();
}

TEST(BridgeSettings, AFileGivesItsSectionsInOrder) {
  serve::config::Problems problems;
  const Settings settings = read_settings(
      "[bridge]\nname = 'plant'\ndrain = '250 ms'\n[fleet]\nfleet = 'nats://h:4222'\n[[publishers]]\nconnect = "
      "['tcp://h:1']\nsubscribe = ['a', 'b']\n[[subscribers]]\nname = 'out'\nbind = ['tcp://*:2']\nheaders = "
      "true\nmessage_bytes = '1 MiB'\n",
      "b.toml", problems);
  ASSERT_TRUE(problems.empty()) << problems.text();
  EXPECT_EQ(settings.name, "plant");
  EXPECT_EQ(settings.drain, std::chrono::milliseconds(250));
  EXPECT_EQ(settings.fleet.fleet, "nats://h:4222");
  ASSERT_EQ(settings.sections.size(), 2u);
  EXPECT_EQ(settings.sections[0].name, "publishers-0");
  EXPECT_EQ(settings.sections[0].subscribe, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(settings.sections[1].role, Role::subscribers);
  EXPECT_TRUE(settings.sections[1].headers);
  EXPECT_EQ(settings.sections[1].message_bytes, 1 << 20);
}

TEST(BridgeSettings, AProblemHasTheLineOfItsKey) {
  EXPECT_EQ(problems_of("[[publishers]]\nbind = ['inproc://x']\n"),
            "b.toml:2:1: publishers[0].bind: \"inproc://x\": no other program reaches an endpoint within this one\n");
  EXPECT_EQ(problems_of("[[subscribers]]\nbind = ['tcp://*:1']\nsubscribe = ['x']\n"),
            "b.toml:3:1: subscribers[0].subscribe: unknown key\n");
  EXPECT_EQ(problems_of("[[subscribers]]\nbind = ['tcp://*:1']\nqueue_messages = 0\n"),
            "b.toml:3:1: subscribers[0].queue_messages: 0 is not in 1 to 1000000\n");
  EXPECT_EQ(problems_of("[publishers]\nbind = []\n"),
            "b.toml:1:2: publishers: a table, and not [[publishers]], with two brackets\n");
}

TEST(BridgeSettings, AServiceHasATopicAndItsBounds) {
  serve::config::Problems problems;
  const Settings settings = read_settings(
      "[[clients]]\nbind = ['tcp://*:1']\ntopic = 'a.b'\ndeadline = '1 s'\npending = 7\n"
      "[[workers]]\nbind = ['tcp://*:2']\ntopic = 'a'\ngroup = 'g'\ndealers = true\npending_bytes = '1 MiB'\n",
      "b.toml", problems);
  ASSERT_TRUE(problems.empty()) << problems.text();
  EXPECT_EQ(settings.sections[0].deadline, std::chrono::seconds(1));
  EXPECT_EQ(settings.sections[0].pending, 7);
  EXPECT_EQ(settings.sections[1].group, "g");
  EXPECT_TRUE(settings.sections[1].dealers);
  EXPECT_EQ(settings.sections[1].pending_bytes, 1 << 20);
  EXPECT_EQ(problems_of("[[clients]]\nbind = ['tcp://*:1']\n"),
            "b.toml:1:1: clients[0].topic: the topic of the service is missing\n");
  EXPECT_NE(problems_of("[[clients]]\nbind = ['tcp://*:1']\ntopic = 'a..b'\n").find("b.toml:3:1: clients[0].topic:"),
            std::string::npos);
  EXPECT_EQ(problems_of("[[clients]]\nbind = ['tcp://*:1']\ntopic = 'a'\ndealers = true\n"),
            "b.toml:4:1: clients[0].dealers: unknown key\n");
  EXPECT_NE(problems_of("[[subscribers]]\nbind = ['tcp://*:1']\nnewest = ['a..b']\n").find("subscribers[0].newest:"),
            std::string::npos);
}

TEST(BridgeSettings, TwoSectionsHaveTwoNames) {
  const std::string section = "[[publishers]]\nname = 'x'\nbind = ['tcp://*:1']\n";
  EXPECT_EQ(problems_of(section + section), "b.toml:5:1: publishers[1].name: \"x\" is the name of two sections\n");
}

TEST(BridgeSettings, TheNumberOfSectionsIsBounded) {
  std::string text;
  for (std::size_t i = 0; i <= kSectionsMax; ++i) {
    text += "[[publishers]]\nbind = ['tcp://*:1']\n";
  }
  EXPECT_NE(problems_of(text).find("more than 64 sections"), std::string::npos);
}

}  // namespace
}  // namespace weft::bridge
