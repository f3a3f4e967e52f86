// SPDX-License-Identifier: MIT
#include "weft/serve/frame/header_codec.h"

#include "weft/serve/frame/test_codec.h"
#include <gtest/gtest.h>

namespace weft::serve {
namespace {

using test::Buffer;
using test::bytes;
using test::feed_whole;
using test::wire;
using test::operator+;

// version 2, flags 0x0C, id 0x01020304, 5 bytes of body
const Buffer kHello = bytes({2, 0x0C, 1, 2, 3, 4, 0, 0, 0, 5, 0, 0}) + bytes("hello");

TEST(HeaderCodec, WritesTheFieldsInNetworkByteOrder) {
  EXPECT_EQ(wire(HeaderCodec(), {0x01020304, kFlagError | kFlagAuthCheck}, bytes("hello")), kHello);
  Buffer out(HeaderCodec::kHeaderSize);
  const Buffer body(0x00ABCDEF);
  const auto written =
      HeaderCodec().encode_header({0xFFFFFFFE, 0xFF}, body, std::span<std::uint8_t, HeaderCodec::kHeaderMax>(out));
  EXPECT_EQ(written.value(), 12u);
  EXPECT_EQ(out, bytes({2, 0xFF, 0xFF, 0xFF, 0xFF, 0xFE, 0x00, 0xAB, 0xCD, 0xEF, 0, 0}));
}

TEST(HeaderCodec, ReadsTheFieldsAndTheBodyInPlace) {
  const auto decoded = HeaderCodec().decode(kHello);
  ASSERT_TRUE(decoded.complete());
  EXPECT_EQ(decoded.size, kHello.size());
  EXPECT_EQ(decoded.frame.header, (FrameHeader{0x01020304, kFlagError | kFlagAuthCheck}));
  EXPECT_EQ(decoded.frame.body.data(), kHello.data() + 12);
  EXPECT_EQ(as_text(decoded.frame.body), "hello");
}

TEST(HeaderCodec, AFrameMayHaveNoBody) {
  const auto decoded = HeaderCodec().decode(bytes({2, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_TRUE(decoded.complete());
  EXPECT_EQ(decoded.size, 12u);
  EXPECT_TRUE(decoded.frame.body.empty());
}

TEST(HeaderCodec, SaysHowManyBytesItNeedsAsSoonAsThatIsKnown) {
  for (std::size_t size = 0; size < kHello.size(); ++size) {
    const auto decoded = HeaderCodec().decode(Bytes(kHello).first(size));
    EXPECT_FALSE(decoded.complete() || decoded.failed());
    EXPECT_EQ(decoded.least, size < 12 ? 12 : kHello.size()) << size;
  }
}

TEST(HeaderCodec, AnotherVersionIsRefusedAtItsFirstByte) {
  for (const int version : {0, 1, 3, 0x16 /* TLS */, 0x47 /* HTTP */}) {
    const auto decoded = HeaderCodec().decode(bytes({version}));
    EXPECT_EQ(decoded.error, Errc::protocol_error);
    Buffer frame = kHello;
    frame[0] = static_cast<std::uint8_t>(version);
    EXPECT_EQ(HeaderCodec().decode(frame).error, Errc::protocol_error);
    EXPECT_STREQ(HeaderCodec().decode(frame).error.text(), decoded.error.text());
  }
}

// The published codec documents that the reserved bytes must be 0, and accepts any value.
TEST(HeaderCodec, ReservedBytesThatAreNotZeroAreRefused) {
  for (const std::size_t place : {10u, 11u}) {
    Buffer frame = kHello;
    frame[place] = 1;
    EXPECT_EQ(HeaderCodec().decode(frame).error, Errc::protocol_error);
  }
}

TEST(HeaderCodec, SixteenMebibytesAreABodyAndOneByteMoreIsNot) {
  Buffer frame = bytes({2, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0});
  EXPECT_EQ(HeaderCodec().decode(frame).least, 12 + (std::size_t{16} << 20));
  frame.resize(12 + (std::size_t{16} << 20), 'x');
  EXPECT_EQ(HeaderCodec().decode(frame).frame.body.size(), std::size_t{16} << 20);
  frame[9] = 1;
  EXPECT_EQ(HeaderCodec().decode(Bytes(frame).first(12)).error, Errc::message_too_large);
  EXPECT_EQ(HeaderCodec(std::size_t{1} << 30).decode(frame).error, Errc::message_too_large);
}

TEST(HeaderCodec, TheBoundIsThatOfTheCodecBothWays) {
  const HeaderCodec narrow(4);
  EXPECT_EQ(narrow.body_max(), 4u);
  EXPECT_EQ(narrow.decode(Bytes(kHello).first(12)).error, Errc::message_too_large);
  Buffer out(100);
  EXPECT_EQ(encode_frame(narrow, {1, 0}, bytes("hello"), out).error(), Errc::message_too_large);
  EXPECT_EQ(encode_frame(narrow, {1, 0}, bytes("hell"), out), 16u);
  EXPECT_EQ(encode_frame(narrow, {1, 0}, bytes("hell"), MutableBytes(out).first(15)).error(), Errc::buffer_too_small);
}

// A published server closes the connection at 8 KB because its buffer ends there, whatever the codec allows.
TEST(HeaderCodec, AFrameLargerThanAnyFirstBufferIsAskedForAndTaken) {
  const Buffer body(100'000, 'b');
  const Buffer stream = wire(HeaderCodec(), {7, 0}, body);
  const auto outcome = test::feed(HeaderCodec(), stream, [] { return 1448; });
  ASSERT_EQ(outcome.frames.size(), 1u);
  EXPECT_EQ(outcome.frames[0].body, body);
}

TEST(HeaderCodec, FramesBeforeABadOneAreDelivered) {
  const auto outcome = feed_whole(HeaderCodec(), kHello + kHello + bytes({1}) + kHello);
  EXPECT_EQ(outcome.frames.size(), 2u);
  EXPECT_EQ(outcome.error, Errc::protocol_error);
}

TEST(HeaderCodec, DecodingStopsWhenTheReceiverSaysSo) {
  const Buffer stream = kHello + kHello;
  HeaderCodec codec;
  int frames = 0;
  const DecodeResult result = decode_all(codec, stream, [&](const HeaderCodec::Frame&) { return ++frames < 1; });
  EXPECT_EQ(frames, 1);
  EXPECT_EQ(result.consumed, kHello.size());
  EXPECT_EQ(result.error, Errc::ok);
}

}  // namespace
}  // namespace weft::serve
