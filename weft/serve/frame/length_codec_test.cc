// SPDX-License-Identifier: MIT
#include "weft/serve/frame/length_codec.h"

#include "weft/serve/frame/test_codec.h"
#include <gtest/gtest.h>

namespace weft::serve {
namespace {

using test::Buffer;
using test::bytes;
using test::wire;

TEST(LengthCodec, TheSizeIsInNetworkByteOrderAndDoesNotCountItself) {
  EXPECT_EQ(wire(LengthCodec<std::uint16_t>(), {}, bytes("abc")), bytes({0, 3, 'a', 'b', 'c'}));
  EXPECT_EQ(wire(LengthCodec<std::uint32_t>(), {}, bytes("abc")), bytes({0, 0, 0, 3, 'a', 'b', 'c'}));
  Buffer body(0x1234);
  EXPECT_EQ(wire(LengthCodec<std::uint16_t>(), {}, body)[0], 0x12);
  EXPECT_EQ(wire(LengthCodec<std::uint16_t>(), {}, body)[1], 0x34);
}

TEST(LengthCodec, AWishIsTheWholeFrame) {
  LengthCodec<std::uint32_t> codec;
  EXPECT_EQ(codec.decode(bytes({0, 0, 1})).least, 4u);
  EXPECT_EQ(codec.decode(bytes({0, 0, 1, 0})).least, 260u);
}

TEST(LengthCodec, TheBoundIsThatOfTheCodecAndNeverMoreThanTheSizeCanSay) {
  EXPECT_EQ(LengthCodec<std::uint16_t>().body_max(), 65535u);
  EXPECT_EQ(LengthCodec<std::uint32_t>().body_max(), kBodyMax);
  LengthCodec<std::uint16_t> narrow(2);
  EXPECT_EQ(narrow.decode(bytes({0, 3})).error, Errc::message_too_large);
  EXPECT_TRUE(narrow.decode(bytes({0, 2, 'a', 'b'})).complete());
  Buffer out(1 << 17);
  EXPECT_EQ(encode_frame(narrow, {}, bytes("abc"), out).error(), Errc::message_too_large);
  EXPECT_EQ(encode_frame(LengthCodec<std::uint16_t>(), {}, Buffer(65536), out).error(), Errc::message_too_large);
}

TEST(LengthCodec, AnEmptyBodyIsAFrame) {
  const auto outcome = test::feed_whole(LengthCodec<std::uint16_t>(), bytes({0, 0, 0, 1, 'x', 0, 0}));
  ASSERT_EQ(outcome.frames.size(), 3u);
  EXPECT_EQ(outcome.frames[1].body, bytes("x"));
}

}  // namespace
}  // namespace weft::serve
