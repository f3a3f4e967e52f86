// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "capi/handles.h"
#include "weft/msg/socket/socket_core.h"

namespace weft::capi {

// What the calls that send and receive share. A size as the interface has it.
[[nodiscard]] inline int clamped(std::size_t size) noexcept {
  return static_cast<int>(std::min<std::size_t>(size, INT32_MAX));
}

// What is left to do when a part cannot be sent or received at once: errno is set when that fails too.
[[nodiscard]] bool send_part_slowly(SocketHandle& handle, msg::Outbound& part, int flags);
[[nodiscard]] bool receive_part_slowly(SocketHandle& handle, msg::Inbound& part, int flags);

[[nodiscard]] inline bool send_part(SocketHandle& handle, msg::Outbound& part, int flags) {
  return handle.core->send_now(part) || send_part_slowly(handle, part, flags);
}
// Its size; -1: errno is set.
[[nodiscard]] inline int receive_part(SocketHandle& handle, msg::Inbound& part, int flags) {
  if (!handle.core->receive_now(part) && !receive_part_slowly(handle, part, flags)) {
    return -1;
  }
  handle.more = part.more;
  return clamped(part.size);
}

}  // namespace weft::capi
