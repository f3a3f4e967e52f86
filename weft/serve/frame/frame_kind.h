// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

namespace weft::serve {

// FrameKind: whether a newer frame replaces a queued one, for peers that do not read (SlowConsumer).
enum class FrameKind : std::uint8_t {
  event,  // the peer needs every one
  state,  // the peer needs only the newest one
};

// FrameKey: the thing whose state a frame has, such as the number of an instrument. The program numbers its keys. A
// newer frame with the same key takes the place of the queued one, see SessionOf::send_state().
enum class FrameKey : std::uint64_t {};

}  // namespace weft::serve
