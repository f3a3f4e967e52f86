// SPDX-License-Identifier: MIT
#include <rapidcheck.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "weft/serve/frame/delimiter_codec.h"
#include "weft/serve/frame/header_codec.h"
#include "weft/serve/frame/length_codec.h"
#include "weft/serve/frame/numbered_codec.h"
#include "weft/serve/frame/test_codec.h"
#include <gtest/gtest.h>

namespace weft::serve {
namespace {

using test::Buffer;
using test::Got;
using test::Outcome;
using test::operator+;

// Every run uses the same cases.
[[maybe_unused]] const int kSeededForCodecs = setenv("RC_PARAMS", "seed=6", 0);

template <typename C>
typename C::Header any_header() {
  if constexpr (std::same_as<typename C::Header, FrameHeader>) {
    return {*rc::gen::arbitrary<std::uint32_t>(), *rc::gen::arbitrary<std::uint8_t>(),
            kNumbersRequests<C> ? *rc::gen::arbitrary<std::uint32_t>() : 0};
  } else {
    return {};
  }
}

// Any bodies, in frames, cut anywhere, are decoded unchanged. `letters`: the bytes that bodies consist of.
template <typename C>
void check_round_trip(const C& codec, std::string_view letters) {
  EXPECT_TRUE(rc::check([&](const std::vector<std::uint8_t>& picks) {
    Buffer stream;
    std::vector<Got> sent;
    Buffer body;
    for (const std::uint8_t pick : picks) {
      if (pick % 5 != 0) {
        body.push_back(static_cast<std::uint8_t>(letters[pick % letters.size()]));
        continue;
      }
      const auto header = any_header<C>();
      Buffer out(C::kHeaderMax + body.size() + codec.trailer().size());
      if (encode_frame(codec, header, body, out)) {
        stream = stream + out;
        sent.push_back(test::copy_of(typename C::Frame{header, body}));
      }
      body.clear();
    }
    const Outcome whole = test::feed_whole(codec, stream);
    RC_ASSERT(whole.error == Errc::ok);
    RC_ASSERT(whole.frames == sent);
    RC_ASSERT(test::feed(codec, stream, [] { return *rc::gen::inRange<std::size_t>(1, 9); }) == whole);
    RC_ASSERT(test::feed(codec, stream, [] { return 1; }) == whole);
  }));
}

TEST(CodecProperty, HeaderCodecGivesBackWhatItTook) { check_round_trip(HeaderCodec(20), "abc"); }
TEST(CodecProperty, NumberedCodecGivesBackWhatItTook) { check_round_trip(NumberedCodec(20), "abc"); }
TEST(CodecProperty, LengthCodecGivesBackWhatItTook) {
  check_round_trip(LengthCodec<std::uint16_t>(20), "abc");
  check_round_trip(LengthCodec<std::uint32_t>(20), "abc");
}
TEST(CodecProperty, DelimiterCodecGivesBackWhatItTook) {
  check_round_trip(DelimiterCodec(20), "ab");
  check_round_trip(DelimiterCodec::make(as_bytes("ab"), 20).value(), "ab");
  check_round_trip(DelimiterCodec::make(as_bytes("abaab"), 20).value(), "ab");
}

// The header as the format describes it, read byte by byte.
Outcome header_model(Bytes stream, std::size_t body_max) {
  Outcome outcome;
  std::size_t at = 0;
  while (at < stream.size()) {
    const Bytes rest = stream.subspan(at);
    if (rest[0] != 2) {
      outcome.error = Errc::protocol_error;
      return outcome;
    }
    if (rest.size() < 12) {
      return outcome;
    }
    std::size_t size = 0;
    for (int i = 6; i < 10; ++i) {
      size = size * 256 + rest[static_cast<std::size_t>(i)];
    }
    if (size > body_max) {
      outcome.error = Errc::message_too_large;
      return outcome;
    }
    if (rest[10] != 0 || rest[11] != 0) {
      outcome.error = Errc::protocol_error;
      return outcome;
    }
    if (rest.size() < 12 + size) {
      return outcome;
    }
    std::uint32_t id = 0;
    for (int i = 2; i < 6; ++i) {
      id = id * 256 + rest[static_cast<std::size_t>(i)];
    }
    outcome.frames.push_back(
        {{id, rest[1]}, Buffer(rest.begin() + 12, rest.begin() + 12 + static_cast<std::ptrdiff_t>(size))});
    at += 12 + size;
  }
  return outcome;
}

TEST(CodecProperty, AnyBytesGiveWhatTheDescriptionOfTheHeaderSays) {
  EXPECT_TRUE(rc::check([] {
    // Nearly right headers, so that all branches are taken.
    Buffer stream;
    const int count = *rc::gen::inRange(0, 6);
    for (int i = 0; i < count; ++i) {
      const auto mostly = [](int usual) {
        return *rc::gen::inRange(0, 20) == 0 ? *rc::gen::arbitrary<std::uint8_t>() : static_cast<std::uint8_t>(usual);
      };
      const int size = *rc::gen::inRange(0, 12);
      for (const int value : {2, 0, 0, 0, 0, 7, 0, 0, 0, size, 0, 0}) {
        stream.push_back(mostly(value));
      }
      stream.insert(stream.end(), static_cast<std::size_t>(size), static_cast<std::uint8_t>(*rc::gen::inRange(0, 4)));
    }
    const Outcome expected = header_model(stream, 10);
    RC_ASSERT(test::feed_whole(HeaderCodec(10), stream) == expected);
    RC_ASSERT(test::feed(HeaderCodec(10), stream, [] { return 1; }) == expected);
  }));
}

// Lines as std::string::find() finds them.
Outcome delimiter_model(const std::string& stream, const std::string& delimiter, std::size_t body_max) {
  Outcome outcome;
  std::size_t at = 0;
  for (;;) {
    const std::size_t end = stream.find(delimiter, at);
    if ((end == std::string::npos ? stream.size() - at >= body_max + delimiter.size() : end - at > body_max)) {
      outcome.error = Errc::message_too_large;
      return outcome;
    }
    if (end == std::string::npos) {
      return outcome;
    }
    outcome.frames.push_back({{}, test::bytes(std::string_view(stream).substr(at, end - at))});
    at = end + delimiter.size();
  }
}

TEST(CodecProperty, AnyBytesGiveTheLinesThatASearchFinds) {
  EXPECT_TRUE(rc::check([] {
    const auto letters = rc::gen::elementOf(std::string("ab"));
    const auto stream = *rc::gen::container<std::string>(letters);
    auto delimiter = *rc::gen::nonEmpty(rc::gen::container<std::string>(letters));
    delimiter.resize(std::min<std::size_t>(delimiter.size(), 4));
    const auto body_max = *rc::gen::inRange<std::size_t>(0, 20);
    const Outcome expected = delimiter_model(stream, delimiter, body_max);
    const auto codec = DelimiterCodec::make(as_bytes(delimiter), body_max).value();
    RC_ASSERT(test::feed_whole(codec, test::bytes(stream)) == expected);
    RC_ASSERT(test::feed(codec, test::bytes(stream), [] { return *rc::gen::inRange<std::size_t>(1, 5); }) == expected);
  }));
}

}  // namespace
}  // namespace weft::serve
