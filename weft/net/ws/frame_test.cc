// SPDX-License-Identifier: MIT
#include "weft/net/ws/frame.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace weft::net::ws {
namespace {

constexpr MaskKey kMask{0x37, 0xFA, 0x21, 0x3D};

TEST(WsFrame, AHeaderIsReadAsItWasWritten) {
  for (const std::uint64_t size : {0ull, 1ull, 125ull, 126ull, 65535ull, 65536ull, 1ull << 40}) {
    for (const bool masked : {false, true}) {
      std::uint8_t bytes[kHeaderMax];
      const std::size_t written =
          write_header(bytes, Opcode::binary, size, masked ? std::optional(kMask) : std::nullopt);
      WsFrameHeader header;
      for (std::size_t cut = 0; cut < written; ++cut) {
        EXPECT_EQ(parse_header(Bytes(bytes, cut), masked, header).status, ParseStatus::need_more);
      }
      ASSERT_EQ(parse_header(Bytes(bytes, written), masked, header).status, ParseStatus::complete);
      EXPECT_EQ(header.header_size, written);
      EXPECT_EQ(header.body_size, size);
      EXPECT_EQ(header.opcode, Opcode::binary);
      EXPECT_TRUE(header.last);
      EXPECT_EQ(header.mask.has_value(), masked);
    }
  }
}

TEST(WsFrame, TheExamplesOfTheRfcAreRead) {
  const std::uint8_t hello[] = {0x81, 0x85, 0x37, 0xFA, 0x21, 0x3D, 0x7F, 0x9F, 0x4D, 0x51, 0x58};
  WsFrameHeader header;
  ASSERT_EQ(parse_header(hello, true, header).status, ParseStatus::complete);
  EXPECT_EQ(header.opcode, Opcode::text);
  ASSERT_EQ(header.mask, kMask);
  std::uint8_t text[5];
  copy_masked(text, Bytes(hello).subspan(header.header_size), *header.mask, 0);
  EXPECT_EQ(as_text(text), "Hello");

  const std::uint8_t large[] = {0x82, 0x7F, 0, 0, 0, 0, 0, 1, 0, 0};
  ASSERT_EQ(parse_header(large, false, header).status, ParseStatus::complete);
  EXPECT_EQ(header.body_size, 65536u);
}

TEST(WsFrame, ABrokenRuleIsReportedFromTheFirstByteThatShowsIt) {
  const struct {
    std::vector<std::uint8_t> bytes;
    bool masked;
    std::size_t shown;  // bytes
    const char* problem;
  } cases[] = {
      {{0xC2, 0x00}, false, 1, "a WebSocket frame with a reserved bit"},
      {{0xA2, 0x00}, false, 1, "a WebSocket frame with a reserved bit"},
      {{0x92, 0x00}, false, 1, "a WebSocket frame with a reserved bit"},
      {{0x83, 0x00}, false, 1, "a WebSocket frame with a reserved opcode"},
      {{0x87, 0x00}, false, 1, "a WebSocket frame with a reserved opcode"},
      {{0x8B, 0x00}, false, 1, "a WebSocket frame with a reserved opcode"},
      {{0x8F, 0x00}, false, 1, "a WebSocket frame with a reserved opcode"},
      {{0x09, 0x00}, false, 1, "a fragmented WebSocket control frame"},
      {{0x08, 0x00}, false, 1, "a fragmented WebSocket control frame"},
      {{0x82, 0x00}, true, 2, "a WebSocket client's frame without a mask"},
      {{0x82, 0x80}, false, 2, "a WebSocket server's frame with a mask"},
      {{0x89, 0x7E}, false, 2, "a WebSocket control frame of more than 125 bytes"},
      {{0x88, 0xFF}, true, 2, "a WebSocket control frame of more than 125 bytes"},
      {{0x82, 0x7E, 0x00, 0x7D}, false, 4, "a WebSocket frame whose size is not in its shortest form"},
      {{0x82, 0x7F, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF},
       false,
       10,
       "a WebSocket frame whose size is not in its shortest form"},
      {{0x82, 0x7F, 0x80, 0, 0, 0, 0, 0, 0, 0}, false, 10, "a WebSocket frame whose size is not in its shortest form"},
  };
  for (const auto& [bytes, masked, shown, problem] : cases) {
    WsFrameHeader header;
    EXPECT_EQ(parse_header(Bytes(bytes).first(shown - 1), masked, header).status, ParseStatus::need_more);
    const Parsed parsed = parse_header(Bytes(bytes).first(shown), masked, header);
    EXPECT_EQ(parsed.status, ParseStatus::malformed);
    EXPECT_STREQ(parsed.problem, problem);
  }
}

TEST(WsFrame, TheBitOfACompressedMessageStandsInItsFirstFrameIfBothEndsAgreed) {
  for (const int opcode : {0, 1, 2, 8, 9, 10}) {
    const std::uint8_t bytes[] = {static_cast<std::uint8_t>(0x80 | kCompressedBit | opcode), 0x00};
    const bool may = opcode == 1 || opcode == 2;
    WsFrameHeader header;
    EXPECT_EQ(parse_header(bytes, false, header).status, ParseStatus::malformed) << opcode;
    EXPECT_EQ(parse_header(bytes, false, header, true).status, may ? ParseStatus::complete : ParseStatus::malformed);
    EXPECT_EQ(header.compressed, may);
    const std::uint8_t others[] = {static_cast<std::uint8_t>(0xA0 | opcode), 0x00};
    EXPECT_EQ(parse_header(others, false, header, true).status, ParseStatus::malformed);
  }
}

TEST(WsFrame, AMaskGoesOnInPiecesAsItDoesWhole) {
  std::vector<std::uint8_t> body(100);
  for (std::size_t i = 0; i < body.size(); ++i) {
    body[i] = static_cast<std::uint8_t>(i * 7);
  }
  std::vector<std::uint8_t> whole(body.size());
  copy_masked(whole.data(), body, kMask, 0);
  for (std::size_t i = 0; i < body.size(); ++i) {
    ASSERT_EQ(whole[i], body[i] ^ kMask[i % 4]);
  }
  for (std::size_t cut = 0; cut <= body.size(); ++cut) {
    std::vector<std::uint8_t> pieces = body;  // in place
    copy_masked(pieces.data(), Bytes(pieces).first(cut), kMask, 0);
    copy_masked(pieces.data() + cut, Bytes(pieces).subspan(cut), kMask, cut);
    EXPECT_EQ(pieces, whole);
  }
}

}  // namespace
}  // namespace weft::net::ws
