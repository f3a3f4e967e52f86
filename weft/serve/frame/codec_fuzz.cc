// SPDX-License-Identifier: MIT
#include <cstddef>
#include <cstdint>

#include "weft/base/assert.h"
#include "weft/serve/frame/delimiter_codec.h"
#include "weft/serve/frame/header_codec.h"
#include "weft/serve/frame/length_codec.h"
#include "weft/serve/frame/numbered_codec.h"
#include "weft/serve/frame/test_codec.h"

// The first bytes of the input choose the codec, its bound and the cuts; the rest is the peer's stream. Checks
// besides the sanitizers and test::feed(): the outcome is the same whole and in pieces, bodies keep to the
// bound, and every frame encoded again gives the bytes that it was decoded from.
namespace {

using namespace weft::serve;

template <typename C>
void check(const C& codec, weft::Bytes stream, std::uint32_t random) {
  const test::Buffer whole_stream(stream.begin(), stream.end());
  const test::Outcome whole = test::feed_whole(codec, whole_stream);
  const test::Outcome pieces = test::feed(codec, stream, [&random] {
    random = random * 1664525U + 1013904223U;
    return std::size_t{1} + (random >> 24) % 20;
  });
  WEFT_ASSERT(whole == pieces);
  test::Buffer again;
  for (const test::Got& frame : whole.frames) {
    WEFT_ASSERT(frame.body.size() <= codec.body_max());
    typename C::Header header{};
    if constexpr (requires { header.id; }) {
      header = frame.header;
    }
    again = test::operator+(std::move(again), test::wire(codec, header, frame.body));
  }
  WEFT_ASSERT(again.size() <= stream.size() && std::equal(again.begin(), again.end(), stream.begin()));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 8) {
    return 0;
  }
  const std::size_t body_max = data[1] * std::size_t{data[1]};
  const std::uint32_t random = data[2] * 256U + data[3];
  const weft::Bytes rest(data + 8, size - 8);
  switch (data[0] % 5) {
    case 0: check(HeaderCodec(body_max), rest, random); break;
    case 1: check(LengthCodec<std::uint16_t>(body_max), rest, random); break;
    case 2: check(LengthCodec<std::uint32_t>(body_max), rest, random); break;
    case 3: check(NumberedCodec(body_max), rest, random); break;
    default: {
      const weft::Bytes delimiter(data + 4, 1 + data[0] / 5 % 4);
      check(DelimiterCodec::make(delimiter, body_max).value(), rest, random);
    }
  }
  return 0;
}
