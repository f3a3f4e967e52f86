// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

namespace weft::serve {

// FrameKind: whether a newer frame makes a queued one worthless, for peers that do not read (SlowConsumer).
enum class FrameKind : std::uint8_t {
  event,  // the peer needs each of them
  state,  // the peer needs the newest one only
};

}  // namespace weft::serve
