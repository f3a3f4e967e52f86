// SPDX-License-Identifier: MIT
#include "weft/serve/frame/numbered_codec.h"

#include "weft/serve/frame/delimiter_codec.h"
#include "weft/serve/frame/shared_frame.h"
#include "weft/serve/frame/test_codec.h"
#include <gtest/gtest.h>

namespace weft::serve {
namespace {

using test::Buffer;
using test::bytes;
using test::wire;
using test::operator+;

// version 3, flags 0x0C, id 0x01020304, number 0x05060708, 5 bytes of body
const Buffer kNumberedHello = bytes({3, 0x0C, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 5}) + bytes("hello");
constexpr FrameHeader kHeader{0x01020304, kFlagError | kFlagAuthCheck, 0x05060708};

TEST(NumberedCodec, WritesTheFieldsInNetworkByteOrder) {
  EXPECT_EQ(wire(NumberedCodec(), kHeader, bytes("hello")), kNumberedHello);
}

TEST(NumberedCodec, ReadsTheFieldsAndTheBodyInPlace) {
  const auto decoded = NumberedCodec().decode(kNumberedHello);
  ASSERT_TRUE(decoded.complete());
  EXPECT_EQ(decoded.size, kNumberedHello.size());
  EXPECT_EQ(decoded.frame.header, kHeader);
  EXPECT_EQ(decoded.frame.body.data(), kNumberedHello.data() + 16);
  EXPECT_EQ(as_text(decoded.frame.body), "hello");
}

TEST(NumberedCodec, SaysHowManyBytesItNeedsAsSoonAsThatIsKnown) {
  for (std::size_t size = 0; size < kNumberedHello.size(); ++size) {
    const auto decoded = NumberedCodec().decode(Bytes(kNumberedHello).first(size));
    EXPECT_FALSE(decoded.complete() || decoded.failed());
    EXPECT_EQ(decoded.least, size < 16 ? 16 : kNumberedHello.size()) << size;
  }
}

TEST(NumberedCodec, RefusesAnotherVersionReservedBytesAndLargeBodies) {
  EXPECT_EQ(NumberedCodec().decode(bytes({2})).error, Errc::protocol_error);
  for (const std::size_t place : {2u, 3u}) {
    Buffer frame = kNumberedHello;
    frame[place] = 1;
    EXPECT_EQ(NumberedCodec().decode(frame).error, Errc::protocol_error);
  }
  EXPECT_EQ(NumberedCodec(4).decode(kNumberedHello).error, Errc::message_too_large);
  Buffer out(100);
  EXPECT_EQ(encode_frame(NumberedCodec(4), kHeader, bytes("hello"), out).error(), Errc::message_too_large);
}

TEST(RequestNumbers, ACodecWithoutAPlaceForThemRefusesThem) {
  Buffer out(100);
  EXPECT_EQ(encode_frame(HeaderCodec(), {1, 0, 7}, bytes("x"), out).error(), Errc::invalid_argument);
  EXPECT_TRUE(encode_frame(HeaderCodec(), {1, 0, 0}, bytes("x"), out));
  static_assert(kNumbersRequests<NumberedCodec> && !kNumbersRequests<HeaderCodec> && !kNumbersRequests<DelimiterCodec>);
}

// The members of a group have requests of their own, whose numbers may be the same.
TEST(RequestNumbers, AFrameForManySessionsHasNone) {
  EXPECT_EQ(SharedFrame::encode(NumberedCodec(), {1, 0, 7}, bytes("x")).error(), Errc::invalid_argument);
  EXPECT_TRUE(SharedFrame::encode(NumberedCodec(), {1, 0}, bytes("x")));
}

}  // namespace
}  // namespace weft::serve
