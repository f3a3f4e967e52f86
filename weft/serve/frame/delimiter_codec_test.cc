// SPDX-License-Identifier: MIT
#include "weft/serve/frame/delimiter_codec.h"

#include "weft/serve/frame/test_codec.h"
#include <gtest/gtest.h>

namespace weft::serve {
namespace {

using test::Buffer;
using test::bytes;
using test::feed_whole;
using test::Got;
using test::wire;

DelimiterCodec ending_in(std::string_view delimiter, std::size_t body_max = kBodyMax) {
  return DelimiterCodec::make(as_bytes(delimiter), body_max).value();
}

TEST(DelimiterCodec, LinesEndWithANewlineThatIsNotInThem) {
  const auto outcome = feed_whole(DelimiterCodec(), bytes("one\n\ntwo\r\nthr"));
  EXPECT_EQ(outcome.frames, (std::vector<Got>{{{}, bytes("one")}, {{}, {}}, {{}, bytes("two\r")}}));
  EXPECT_EQ(wire(DelimiterCodec(), {}, bytes("one")), bytes("one\n"));
}

TEST(DelimiterCodec, SeveralBytesAreADelimiterOnlyTogether) {
  const auto outcome = feed_whole(ending_in("\r\n"), bytes("a\rb\nc\r\nd\r\r\n"));
  EXPECT_EQ(outcome.frames, (std::vector<Got>{{{}, bytes("a\rb\nc")}, {{}, bytes("d\r")}}));
}

TEST(DelimiterCodec, OneByteAtATimeADelimiterIsFoundAcrossPieces) {
  const Buffer stream = bytes("ab--a-b--abab--ab");
  const auto codec = ending_in("--ab");
  EXPECT_EQ(test::feed(codec, stream, [] { return 1; }), feed_whole(codec, stream));
  EXPECT_EQ(feed_whole(codec, stream).frames.size(), 2u);
}

// The codec searches no byte twice: a delimiter written into the searched part later is not found.
TEST(DelimiterCodec, NoByteIsSearchedTwice) {
  DelimiterCodec codec;
  Buffer input = bytes("aaaa");
  EXPECT_EQ(codec.decode(input).least, 5u);
  input[0] = '\n';
  input.push_back('a');
  EXPECT_EQ(codec.decode(input).least, 6u);
  input.push_back('\n');
  EXPECT_EQ(codec.decode(input).frame.body.size(), 5u);
  EXPECT_EQ(codec.decode(input).frame.body.size(), 0u);  // and the next frame is searched from its beginning
}

TEST(DelimiterCodec, OnlyTheBeginningOfADelimiterIsSearchedAgain) {
  auto codec = ending_in("xyz");
  Buffer input = bytes("xyz_xy");
  input[2] = '_';
  EXPECT_FALSE(codec.decode(input).complete());
  input[2] = 'z';  // in the part that was searched already
  input.push_back('z');
  EXPECT_EQ(codec.decode(input).frame.body.size(), 4u);
}

TEST(DelimiterCodec, ABodyOfTheBoundIsTakenAndALongerOneRefusedHoweverItIsCut) {
  for (const std::size_t piece : {1u, 2u, 3u, 100u}) {
    const auto next = [=] { return piece; };
    const auto codec = ending_in("\r\n", 4);
    EXPECT_EQ(test::feed(codec, bytes("1234\r\n"), next).frames.size(), 1u) << piece;
    EXPECT_EQ(test::feed(codec, bytes("12345\r\n"), next).error, Errc::message_too_large) << piece;
    EXPECT_EQ(test::feed(codec, bytes("1234\r"), next).error, Errc::ok) << piece;
    EXPECT_EQ(test::feed(codec, bytes("12345\r"), next).error, Errc::message_too_large) << piece;
  }
}

TEST(DelimiterCodec, ABodyThatWouldBecomeTwoFramesIsNotSent) {
  Buffer out(64);
  EXPECT_EQ(encode_frame(DelimiterCodec(), {}, bytes("a\nb"), out).error(), Errc::invalid_argument);
  EXPECT_EQ(encode_frame(ending_in("aba"), {}, bytes("xab"), out).error(), Errc::invalid_argument);  // xab|aba
  EXPECT_EQ(encode_frame(ending_in("aba"), {}, bytes("xb"), out), 5u);
  EXPECT_EQ(encode_frame(DelimiterCodec(2), {}, bytes("abc"), out).error(), Errc::message_too_large);
}

TEST(DelimiterCodec, ADelimiterHasOneToEightBytes) {
  EXPECT_EQ(DelimiterCodec::make({}).error(), Errc::invalid_argument);
  EXPECT_EQ(DelimiterCodec::make(as_bytes("123456789")).error(), Errc::invalid_argument);
  EXPECT_TRUE(DelimiterCodec::make(as_bytes("12345678")).has_value());
}

}  // namespace
}  // namespace weft::serve
