// SPDX-License-Identifier: MIT
#include "weft/nats/jetstream/names.h"

#include <string>

#include <gtest/gtest.h>

namespace weft::nats::jetstream {
namespace {

std::string name_of(std::string_view text) {
  std::string name = "before:";
  EXPECT_TRUE(append_name(text, name)) << text;
  return name.substr(7);
}
std::string key_of(std::string_view topic) {
  std::string key = "before:";
  EXPECT_TRUE(append_key(topic, key)) << topic;
  return key.substr(7);
}

TEST(JetStreamNames, SpecialBytesHaveTwoDigits) {
  EXPECT_EQ(name_of("Orders-2_b"), "Orders-2_b");
  EXPECT_EQ(name_of("orders.eu"), "orders=2Eeu");
  EXPECT_EQ(name_of("a b=*>/\\\x7F\xC3\xA9"), "a=20b=3D=2A=3E=2F=5C=7F=C3=A9");
  EXPECT_EQ(key_of("a.b/c d=e"), "a.b/c=20d=3De");
}

TEST(JetStreamNames, EveryByteComesBackFromANameThatServersTake) {
  for (int byte = 0; byte < 256; ++byte) {
    const std::string text = std::string("x") + static_cast<char>(byte) + 'y';
    const std::string name = name_of(text);
    EXPECT_TRUE(is_name(name)) << name;
    std::string back;
    EXPECT_TRUE(append_text_of_name(name, back));
    EXPECT_EQ(back, text);
    const std::string key = key_of(text);
    std::string topic;
    EXPECT_TRUE(append_topic_of_key(key, topic));
    EXPECT_EQ(topic, text);
  }
}

TEST(JetStreamNames, NamesOfOtherProgramsThatTheWriterDoesNotMakeAreRefused) {
  for (const std::string_view name : {"", "a=", "a=2", "a=2e", "a=41", "a=G0", "a b", "a.b", "a=2E=", "a/b"}) {
    std::string out = "before";
    EXPECT_EQ(append_text_of_name(name, out).error().code(), Errc::invalid_argument) << name;
    EXPECT_EQ(out, "before");
  }
  for (const std::string_view key : {"", ".a", "a.", "a..b", "a=2E", "Zg==", "a b"}) {
    std::string out = "before";
    EXPECT_EQ(append_topic_of_key(key, out).error().code(), Errc::invalid_argument) << key;
    EXPECT_EQ(out, "before");
  }
}

TEST(JetStreamNames, ANameHasABound) {
  std::string out;
  EXPECT_TRUE(append_name(std::string(kNameMax, 'a'), out));
  out = "before";
  EXPECT_FALSE(append_name(std::string(kNameMax + 1, 'a'), out));
  EXPECT_FALSE(append_name(std::string(kNameMax / 3 + 1, '.'), out));
  EXPECT_FALSE(append_name("", out));
  for (const std::string_view topic : {"", ".a", "a.", "a..b"}) {
    EXPECT_FALSE(append_key(topic, out)) << topic;
  }
  EXPECT_EQ(out, "before");
  for (const std::string_view name : {"", "a.b", "a b", "a*", "a>", "a/b", "a\\b", "a\x7F", "\xC3\xA9"}) {
    EXPECT_FALSE(is_name(name)) << name;
  }
  EXPECT_FALSE(is_name(std::string(kNameMax + 1, 'a')));
}

}  // namespace
}  // namespace weft::nats::jetstream
