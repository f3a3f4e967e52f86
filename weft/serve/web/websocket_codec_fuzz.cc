// SPDX-License-Identifier: MIT
#include <cstddef>
#include <cstdint>

#include "weft/base/assert.h"
#include "weft/base/text/utf8.h"
#include "weft/serve/web/test_websocket.h"

// The first bytes choose the bound and the cuts; the rest is the peer's stream. Checks besides the sanitizers and
// feed_websocket(): the outcome is the same whole and in pieces, fragments follow each other and keep the bound, texts
// are UTF-8, nothing comes after a close frame, and the codec's own end is a close frame that it would take.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weft::serve::web;
  if (size < 3) {
    return 0;
  }
  WebSocketLimits limits;
  limits.message_max = data[0] * 4u;
  WebSocketCodec codec(limits);
  std::uint32_t random = data[1] * 256U + data[2];
  const weft::Bytes stream(data + 3, size - 3);
  test::SeenFrames whole = test::feed_websocket(codec, stream, [&] { return stream.size(); });
  test::SeenFrames pieces = test::feed_websocket(codec, stream, [&random] {
    random = random * 1664525U + 1013904223U;
    return std::size_t{1} + (random >> 24) % 20;
  });
  whole.taken = pieces.taken = 0;
  WEFT_ASSERT(whole == pieces);
  std::string message;
  bool inside = false;
  bool ended = false;
  for (const test::SeenFrame& frame : whole.frames) {
    WEFT_ASSERT(!ended);
    ended = frame.opcode == Opcode::close;
    if (weft::net::ws::is_control(frame.opcode)) {
      WEFT_ASSERT(frame.last && frame.body.size() <= weft::net::ws::kControlBodyMax);
      continue;
    }
    WEFT_ASSERT((frame.opcode == Opcode::continuation) == inside);
    message += frame.body;
    WEFT_ASSERT(message.size() <= limits.message_max);
    WEFT_ASSERT(frame.kind != Opcode::text || !frame.last || weft::is_utf8(message));
    inside = !frame.last;
    if (frame.last) {
      message.clear();
    }
  }
  std::uint8_t last[weft::serve::kFarewellMax];
  const auto why = static_cast<weft::serve::EndCause>(data[1] % 5);
  const std::size_t said = codec.farewell(why, std::span<std::uint8_t, weft::serve::kFarewellMax>(last));
  WEFT_ASSERT(said == 4 && last[0] == 0x88 && codec.farewell(why, last) == 0);
  WEFT_ASSERT(weft::net::ws::parse_close_body(weft::Bytes(last, said).subspan(2)).problem == nullptr);
  return 0;
}
