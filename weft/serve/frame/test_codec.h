// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/assert.h"
#include "weft/serve/frame/frame_codec.h"
#include "weft/serve/frame/header_codec.h"

// For tests and fuzzers: feeds a codec the stream that a session reads, whole or in pieces.
namespace weft::serve::test {

using Buffer = std::vector<std::uint8_t>;

inline Buffer bytes(std::initializer_list<int> values) {
  Buffer buffer;
  for (const int value : values) {
    buffer.push_back(static_cast<std::uint8_t>(value));
  }
  return buffer;
}
inline Buffer bytes(std::string_view text) {
  const Bytes view = as_bytes(text);
  return {view.begin(), view.end()};
}
inline Buffer operator+(Buffer a, const Buffer& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// A frame as a value: header and body, copied.
struct Got {
  FrameHeader header;
  Buffer body;

  friend bool operator==(const Got&, const Got&) = default;
};
template <typename Frame>
Got copy_of(const Frame& frame) {
  Got got;
  if constexpr (requires { got.header = frame.header; }) {
    got.header = frame.header;
  }
  got.body.assign(frame.body.begin(), frame.body.end());
  return got;
}

struct Outcome {
  std::vector<Got> frames;
  Error error;

  friend bool operator==(const Outcome&, const Outcome&) = default;
};

// Works as a session does: pieces arrive, whole frames are taken out, an incomplete frame waits. next_piece()
// returns the size of the next piece. The memory of each call is exactly as large as its input, so that a
// sanitizer sees overruns. Checks besides: a wish exceeds the bytes at hand, a wish does not exceed the frame's
// final size, and views are inside the input.
template <typename C, typename NextPiece>
Outcome feed(C codec, Bytes stream, NextPiece next_piece) {
  Outcome outcome;
  Buffer held;
  std::size_t least = 1;
  while (!stream.empty()) {
    const std::size_t piece = std::min<std::size_t>(std::max<std::size_t>(next_piece(), 1), stream.size());
    held.insert(held.end(), stream.begin(), stream.begin() + static_cast<std::ptrdiff_t>(piece));
    stream = stream.subspan(piece);
    const Buffer input(held);
    const DecodeResult result = decode_all(codec, input, [&](const typename C::Frame& frame) {
      WEFT_ASSERT(frame.body.empty() || (frame.body.data() >= input.data() &&
                                         frame.body.data() + frame.body.size() <= input.data() + input.size()));
      WEFT_ASSERT(input.size() >= least);  // the first frame of this call is the one that the codec wished for
      least = 0;
      outcome.frames.push_back(copy_of(frame));
      return true;
    });
    WEFT_ASSERT(result.consumed <= input.size());
    if (!(result.error == Errc::ok)) {
      outcome.error = result.error;
      return outcome;
    }
    WEFT_ASSERT(result.least > input.size() - result.consumed);
    least = result.least;
    held.erase(held.begin(), held.begin() + static_cast<std::ptrdiff_t>(result.consumed));
  }
  return outcome;
}
template <typename C>
Outcome feed_whole(const C& codec, const Buffer& stream) {
  return feed(codec, stream, [&] { return stream.size(); });
}

// One frame in the bytes of the wire.
template <typename C>
Buffer wire(const C& codec, const typename C::Header& header, const Buffer& body) {
  Buffer out(C::kHeaderMax + body.size() + codec.trailer().size());
  out.resize(encode_frame(codec, header, body, out).value());
  return out;
}

}  // namespace weft::serve::test
