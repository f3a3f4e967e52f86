// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

namespace weft::serve {

// FrameKind: whether a newer frame replaces a queued one, for peers that do not read (SlowConsumer).
enum class FrameKind : std::uint8_t {
  event,  // the peer needs every one
  state,  // the peer needs only the newest one
};

}  // namespace weft::serve
