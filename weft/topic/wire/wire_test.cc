// SPDX-License-Identifier: MIT
// Names, headers and the messages between handles, as bytes.
#include <string>

#include "weft/topic/wire/control.h"
#include "weft/topic/wire/headers.h"
#include "weft/topic/wire/name.h"
#include <gtest/gtest.h>

namespace weft::topic {
namespace {

TEST(Headers, AreNatsText) {
  Headers headers;
  EXPECT_EQ(headers.block(), "");
  ASSERT_TRUE(headers.add("A", "1"));
  ASSERT_TRUE(headers.add("B", "two words"));
  EXPECT_EQ(headers.block(), "NATS/1.0\r\nA: 1\r\nB: two words\r\n\r\n");
  EXPECT_EQ(find_header(headers.block(), "B"), "two words");
  EXPECT_EQ(find_header(headers.block(), "C"), "");
  EXPECT_TRUE(is_header_block(headers.block()));
}

TEST(Headers, RefuseWhatWouldBreakTheBlock) {
  Headers headers;
  EXPECT_EQ(headers.add("", "x").error(), Errc::invalid_argument);
  EXPECT_EQ(headers.add("a b", "x").error(), Errc::invalid_argument);
  EXPECT_EQ(headers.add("a", "x\r\nB: y").error(), Errc::invalid_argument);
  EXPECT_EQ(headers.add("a", std::string(Headers::kBytesMax, 'x')).error(), Errc::message_too_large);
  EXPECT_TRUE(headers.empty());
}

TEST(Headers, MalformedBlocksHaveNone) {
  for (const char* block : {"", "x", "NATS/1.0", "NATS/1.0\r\nA 1\r\n\r\n", "NATS/1.0\r\nA: 1\r\n\r\nrest"}) {
    EXPECT_FALSE(is_header_block(block)) << block;
  }
  EXPECT_EQ(find_header("NATS/1.0\r\nbad\r\nA: 1\r\n\r\n", "A"), "");
}

TEST(Names, GoAndComeBack) {
  const Names names = *Names::make("prod", ':');
  for (const char* name : {"a", "a:b", "a.b", "a=2E:c", "=3D"}) {
    EXPECT_EQ(names.decode(*names.encode(name)), name);
  }
  EXPECT_EQ(*names.encode("player:1"), "prod.player.1");
  EXPECT_EQ(names.filter("a:*")->text(), "prod.a.*");
  EXPECT_FALSE(Names::make("a.b", '.'));
  EXPECT_FALSE(Names::make("", '*'));
  EXPECT_FALSE(Names::make("", 'x'));
}

TEST(Control, GoesAndComesBack) {
  Roster roster;
  roster.node = "n";
  roster.endpoint = "tcp://127.0.0.1:1";
  roster.services = {{"svc", "g"}, {"svc", ""}};
  roster.owned = {{"t", 7}};
  roster.peers = {{5, "ipc://x"}};
  roster.heard = {{6, 7}};
  roster.parted = {8, 9};
  Control control{.kind = Control::Kind::roster, .from = 1, .to = 2, .id = 3, .number = 4};
  control.texts = roster_texts(roster);
  const auto read = decode_control(as_bytes(*encode_control(control)));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->from, 1u);
  EXPECT_EQ(read->number, 4u);
  const auto parsed = parse_roster(read->texts);
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->services, roster.services);
  ASSERT_EQ(parsed->heard.size(), 1u);
  EXPECT_EQ(parsed->heard.front().ask, 7u);
  EXPECT_EQ(parsed->parted, roster.parted);
  EXPECT_EQ(parsed->owned.front().epoch, 7u);
  EXPECT_EQ(parsed->peers.front().instance, 5u);
}

TEST(Control, EveryCutIsMalformed) {
  Control control{.kind = Control::Kind::probe, .from = 1, .texts = {"a.b", ""}};
  const std::string bytes = *encode_control(control);
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(decode_control(as_bytes(bytes).first(size))) << size;
  }
  EXPECT_FALSE(decode_control(as_bytes(bytes + "x")));
}

TEST(Control, BeyondItsBoundsIsRefused) {
  Control control{.kind = Control::Kind::probe, .from = 1, .texts = {std::string(kControlTextMax + 1, 'x')}};
  EXPECT_EQ(encode_control(control).error(), Errc::message_too_large);
  control.texts.assign(kControlTextsMax + 1, "");
  EXPECT_EQ(encode_control(control).error(), Errc::message_too_large);
  EXPECT_FALSE(parse_roster({"ot\0x"}));
  EXPECT_FALSE(parse_roster({"s"}));
  EXPECT_FALSE(parse_roster({""}));
  EXPECT_TRUE(parse_roster({"zof a newer build"}));
}

}  // namespace
}  // namespace weft::topic
