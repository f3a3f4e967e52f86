// SPDX-License-Identifier: MIT
#include "weft/zmtp/command.h"

#include <string>

#include "weft/zmtp/test_support.h"
#include <gtest/gtest.h>

namespace weft::zmtp::test {
namespace {

TEST(Command, SplitsNameAndData) {
  const Buffer body = wire("04 'PING' 00 2A");
  Command command;
  ASSERT_EQ(parse_command(body, command), ParseStatus::complete);
  EXPECT_EQ(command.name, "PING");
  EXPECT_EQ(copy_of(command.data), wire("00 2A"));
  const Buffer bare = wire("01 'X'");
  ASSERT_EQ(parse_command(bare, command), ParseStatus::complete);
  EXPECT_EQ(command.name, "X");
  EXPECT_TRUE(command.data.empty());
}

TEST(Command, RefusesAnEmptyOrCutName) {
  Command command;
  for (const std::string_view body : {"", "00", "00 'X'", "01", "05 'PING'", "FF 'PING'"}) {
    EXPECT_EQ(parse_command(wire(body), command), ParseStatus::malformed) << body;
  }
}

TEST(Command, TakesPropertiesOneByOne) {
  const Buffer bytes = wire("04 'Name' 00 00 00 02 'ab' 01 'E' 00 00 00 00");
  Bytes rest(bytes);
  Property property;
  ASSERT_EQ(take_property(rest, property), ParseStatus::complete);
  EXPECT_EQ(property.name, "Name");
  EXPECT_EQ(as_text(property.value), "ab");
  ASSERT_EQ(take_property(rest, property), ParseStatus::complete);
  EXPECT_EQ(property.name, "E");
  EXPECT_TRUE(property.value.empty());
  EXPECT_TRUE(rest.empty());
}

TEST(Command, RefusesEveryCutOfAProperty) {
  const Buffer bytes = wire("04 'Name' 00 00 00 02 'ab'");
  for (std::size_t shown = 1; shown < bytes.size(); ++shown) {
    Bytes rest = Bytes(bytes).first(shown);
    Property property;
    EXPECT_EQ(take_property(rest, property), ParseStatus::malformed) << shown;
    EXPECT_EQ(rest.size(), shown);
  }
}

TEST(Command, RefusesAPropertyWithoutNameOrWithAHugeValue) {
  for (const std::string_view text : {"00 00 00 00 00", "01 'N' 80 00 00 00", "01 'N' FF FF FF FF 'abc'"}) {
    const Buffer bytes = wire(text);
    Bytes rest(bytes);
    Property property;
    EXPECT_EQ(take_property(rest, property), ParseStatus::malformed) << text;
  }
}

TEST(Command, NamesIgnoreAsciiCaseOnly) {
  EXPECT_TRUE(same_name("Socket-Type", "SOCKET-tYPE"));
  EXPECT_FALSE(same_name("Socket-Type", "Socket_Type"));
  EXPECT_FALSE(same_name("Socket-Type", "Socket-Typ"));
  EXPECT_FALSE(same_name("@", "`"));
}

TEST(Command, PropertyRoundTrips) {
  Buffer bytes;
  append_property(bytes, std::string(255, 'n'), as_bytes(std::string(70'000, 'v')));
  Bytes rest(bytes);
  Property property;
  ASSERT_EQ(take_property(rest, property), ParseStatus::complete);
  EXPECT_EQ(property.name, std::string(255, 'n'));
  EXPECT_EQ(as_text(property.value), std::string(70'000, 'v'));
  EXPECT_TRUE(rest.empty());
}

TEST(Command, SubscriptionsTakeBothForms) {
  const Bytes topic = as_bytes("abc");
  std::uint8_t bytes[32];
  const auto written = [&](bool subscribe, int minor) {
    const std::size_t size = write_subscribe(bytes, subscribe, topic, minor);
    EXPECT_EQ(size, subscribe_frame_size(subscribe, topic.size(), minor));
    return Buffer(bytes, bytes + size);
  };
  EXPECT_EQ(written(true, 1), wire("04 0D 09 'SUBSCRIBE' 'abc'"));
  EXPECT_EQ(written(false, 1), wire("04 0A 06 'CANCEL' 'abc'"));
  EXPECT_EQ(written(true, 0), wire("00 04 01 'abc'"));
  EXPECT_EQ(written(false, 0), wire("00 04 00 'abc'"));
}

TEST(Command, SubscriptionFramesGrowTheirHeaderAtTheBoundary) {
  for (const bool subscribe : {true, false}) {
    for (const int minor : {0, 1}) {
      for (std::size_t topic_size = 0; topic_size < 300; ++topic_size) {
        const std::size_t body = topic_size + (minor == 0 ? 1U : subscribe ? 10U : 7U);
        Buffer bytes(subscribe_frame_size(subscribe, topic_size, minor));
        EXPECT_EQ(bytes.size(), body + (body <= 255 ? 2 : 9));
        const Buffer topic(topic_size, 't');
        EXPECT_EQ(write_subscribe(bytes.data(), subscribe, topic, minor), bytes.size());
        ZmtpFrameHeader header;
        ASSERT_EQ(parse_frame_header(bytes, header), ParseStatus::complete);
        EXPECT_EQ(header.header_size + header.body_size, bytes.size());
        EXPECT_EQ((header.flags & kCommand) != 0, minor == 1);
      }
    }
  }
}

TEST(Command, JoinAndLeaveAreLaidOutAsTheRfcSays) {
  std::uint8_t bytes[32];
  EXPECT_EQ(Buffer(bytes, bytes + write_join(bytes, true, as_bytes("abc"))), wire("04 08 04 'JOIN' 'abc'"));
  EXPECT_EQ(Buffer(bytes, bytes + write_join(bytes, false, as_bytes("abc"))), wire("04 09 05 'LEAVE' 'abc'"));
  EXPECT_EQ(Buffer(bytes, bytes + write_join(bytes, true, {})), wire("04 05 04 'JOIN'"));
  for (const bool join : {true, false}) {
    for (std::size_t size = 0; size <= kGroupMax; ++size) {
      Buffer frame(join_frame_size(join, size));
      EXPECT_EQ(write_join(frame.data(), join, Buffer(size, 'g')), frame.size());
    }
  }
}

TEST(Command, PingAndPongAreLaidOutAsTheRfcSays) {
  std::uint8_t bytes[kPingFrameMax];
  EXPECT_EQ(Buffer(bytes, bytes + write_ping(bytes, 0x0102, as_bytes("ctx"))), wire("04 0A 04 'PING' 01 02 'ctx'"));
  EXPECT_EQ(Buffer(bytes, bytes + write_pong(bytes, as_bytes("ctx"))), wire("04 08 04 'PONG' 'ctx'"));
  EXPECT_EQ(write_ping(bytes, 1, as_bytes("0123456789abcdef")), kPingFrameMax);
  EXPECT_EQ(write_pong(bytes, as_bytes("0123456789abcdef")), kPongFrameMax);
}

TEST(Command, PingNeedsATtlAndBoundsItsContext) {
  Ping ping;
  EXPECT_EQ(parse_ping({}, ping), ParseStatus::malformed);
  EXPECT_EQ(parse_ping(wire("00"), ping), ParseStatus::malformed);
  const Buffer longest = wire("FF FE '0123456789abcdef'");
  ASSERT_EQ(parse_ping(longest, ping), ParseStatus::complete);
  EXPECT_EQ(ping.ttl_deciseconds, 0xFFFE);
  EXPECT_EQ(as_text(ping.context), "0123456789abcdef");
  const Buffer longer = wire("00 01 '0123456789abcdefg'");
  ASSERT_EQ(parse_ping(longer, ping), ParseStatus::complete);
  EXPECT_EQ(as_text(ping.context), "0123456789abcdef") << "what is too much is not sent back";
  Bytes context;
  EXPECT_EQ(parse_pong({}, context), ParseStatus::complete);
  EXPECT_EQ(parse_pong(wire("'0123456789abcdef'"), context), ParseStatus::complete);
  EXPECT_EQ(parse_pong(wire("'0123456789abcdefg'"), context), ParseStatus::malformed);
}

TEST(Command, ErrorReasonMustFillTheCommand) {
  std::string_view reason;
  const Buffer good = wire("03 '400'");
  ASSERT_EQ(parse_error(good, reason), ParseStatus::complete);
  EXPECT_EQ(reason, "400");
  EXPECT_EQ(parse_error(wire("00"), reason), ParseStatus::complete);
  for (const std::string_view data : {"", "04 '400'", "02 '400'"}) {
    EXPECT_EQ(parse_error(wire(data), reason), ParseStatus::malformed) << data;
  }
  Buffer frame;
  append_error_frame(frame, "400");
  EXPECT_EQ(frame, wire("04 0A 05 'ERROR' 03 '400'"));
}

}  // namespace
}  // namespace weft::zmtp::test
