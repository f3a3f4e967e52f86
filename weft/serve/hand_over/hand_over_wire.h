// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "weft/base/bytes.h"
#include "weft/base/endian.h"
#include "weft/base/result.h"
#include "weft/base/time.h"
#include "weft/sys/linux/descriptors.h"
#include "weft/sys/path.h"
#include "weft/sys/socket.h"

namespace weft::serve {

// A message: a kind, the size of its text (16 bits, big-endian), the text.
enum class HandOverKind : std::uint8_t {
  listener = 1,   // from the old process: a name, and the descriptor
  all = 2,        // from the old process: there are no more listeners
  confirmed = 3,  // from the new process: it serves
  released = 4,   // from the old process: it accepts no more
};

inline constexpr std::size_t kHandOverTextMax = 255;
inline constexpr std::size_t kHandOverListenersMax = 1024;

struct HandOverMessage {
  HandOverKind kind{};
  std::string text;
  sys::Fd descriptor;
};

inline Result<void> send_message(int socket, HandOverKind kind, std::string_view text, int descriptor,
                                 Instant deadline) {
  std::array<std::uint8_t, 3 + kHandOverTextMax> bytes{static_cast<std::uint8_t>(kind)};
  const std::string_view sent = text.substr(0, kHandOverTextMax);
  store_big_endian(bytes.data() + 1, static_cast<std::uint16_t>(sent.size()));
  copy_bytes(bytes.data() + 3, as_bytes(sent));
  return sys::send_with_descriptor(socket, Bytes(bytes).first(3 + sent.size()), descriptor, deadline);
}

// Errors: those of sys::receive_with_descriptor(); protocol_error (an unknown kind, a long text, a listener without a
// descriptor, or another message with one).
inline Result<HandOverMessage> receive_message(int socket, Instant deadline) {
  constexpr Error kStrange(Errc::protocol_error, "the other process sent an unknown message");
  HandOverMessage message;
  std::array<std::uint8_t, 3> head{};
  WEFT_TRY(sys::receive_with_descriptor(socket, head, &message.descriptor, deadline));
  const auto size = load_big_endian<std::uint16_t>(head.data() + 1);
  message.kind = static_cast<HandOverKind>(head[0]);
  if (message.kind < HandOverKind::listener || message.kind > HandOverKind::released || size > kHandOverTextMax ||
      message.descriptor.valid() != (message.kind == HandOverKind::listener)) {
    return kStrange;
  }
  message.text.resize(size);
  WEFT_TRY(sys::receive_with_descriptor(
      socket, MutableBytes(reinterpret_cast<std::uint8_t*>(message.text.data()), size), nullptr, deadline));
  return message;
}

// Whether the other process is of this user, or of the superuser.
[[nodiscard]] inline bool may_hand_over(int socket) noexcept {
  const auto peer = sys::peer_credentials(socket);
  return peer && (peer->uid == 0 || peer->uid == sys::user_id());
}

}  // namespace weft::serve
