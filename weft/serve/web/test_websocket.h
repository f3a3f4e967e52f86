// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/assert.h"
#include "weft/base/bytes.h"
#include "weft/serve/frame/test_codec.h"
#include "weft/serve/web/websocket_codec.h"

// For tests and fuzzers: a client's frames by hand, and frames as values.
namespace weft::serve::web::test {

// `first`: the first byte, for example 0x82: the last fragment of a binary message.
inline std::string client_frame(std::uint8_t first, std::string_view body) {
  constexpr net::ws::MaskKey kMask{0x12, 0x00, 0xFE, 0x80};
  std::uint8_t header[net::ws::kHeaderMax];
  const std::size_t size = net::ws::write_header(header, Opcode::binary, body.size(), kMask);
  header[0] = first;
  std::string bytes(as_text(Bytes(header, size)));
  for (std::size_t i = 0; i < body.size(); ++i) {
    bytes += static_cast<char>(body[i] ^ static_cast<char>(kMask[i % 4]));
  }
  return bytes;
}
// A frame of a server: `first` as above.
inline std::string server_frame(std::uint8_t first, std::string_view body) {
  std::uint8_t header[net::ws::kHeaderMax];
  const std::size_t size = net::ws::write_header(header, Opcode::binary, body.size(), std::nullopt);
  header[0] = first;
  return std::string(as_text(Bytes(header, size))).append(body);
}
inline std::string close_body(std::uint16_t status, std::string_view reason = "") {
  return std::string{static_cast<char>(status >> 8), static_cast<char>(status)}.append(reason);
}

struct SeenFrame {
  Opcode opcode{};
  Opcode kind{};
  bool last = false;
  std::string body;  // clear

  friend bool operator==(const SeenFrame&, const SeenFrame&) = default;
};
struct SeenFrames {
  std::vector<SeenFrame> frames;
  Error error;
  std::uint16_t status = 0;  // in the answer to the peer after a refusal
  std::size_t taken = 0;     // bytes that had come when the refusal showed; of the whole stream without one

  friend bool operator==(const SeenFrames&, const SeenFrames&) = default;
};

// As serve::test::feed, which compares only the 12-byte header. `taken` depends on the pieces.
template <typename NextPiece>
SeenFrames feed_websocket(WebSocketCodec codec, Bytes stream, NextPiece next_piece) {
  SeenFrames seen;
  serve::test::Buffer held;
  while (!stream.empty()) {
    const std::size_t piece = std::min<std::size_t>(std::max<std::size_t>(next_piece(), 1), stream.size());
    held.insert(held.end(), stream.begin(), stream.begin() + static_cast<std::ptrdiff_t>(piece));
    stream = stream.subspan(piece);
    seen.taken += piece;
    const serve::test::Buffer input(held);  // exactly as large as the input, so that a sanitizer sees overruns
    const DecodeResult result = decode_all(codec, input, [&](const WebSocketFrame& frame) {
      std::string body(frame.body.size(), '\0');
      net::ws::copy_masked(reinterpret_cast<std::uint8_t*>(body.data()), frame.body, frame.header.mask, 0);
      seen.frames.push_back({frame.header.opcode, frame.header.kind, frame.header.last, std::move(body)});
      return true;
    });
    WEFT_ASSERT(result.consumed <= input.size());
    if (!(result.error == Errc::ok)) {
      seen.error = result.error;
      seen.status = static_cast<std::uint16_t>(codec.refusal());
      return seen;
    }
    WEFT_ASSERT(result.least > input.size() - result.consumed);
    held.erase(held.begin(), held.begin() + static_cast<std::ptrdiff_t>(result.consumed));
    WEFT_ASSERT(held.size() <= codec.body_max() + net::ws::kHeaderMax + net::ws::kControlBodyMax);
  }
  return seen;
}
inline SeenFrames feed_websocket(const WebSocketCodec& codec, std::string_view stream) {
  return feed_websocket(codec, as_bytes(stream), [&] { return stream.size(); });
}

}  // namespace weft::serve::web::test
