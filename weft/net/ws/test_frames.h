// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "weft/net/ws/frame.h"

// WebSocket frames by hand.
namespace weft::net::ws::test {

// `first`: the first byte, for example 0x82: the last fragment of a binary message.
inline std::string frame(bool masked, std::uint8_t first, std::string_view body) {
  constexpr MaskKey kMask{0x12, 0x00, 0xFE, 0x80};
  std::uint8_t header[kHeaderMax];
  const std::size_t size =
      write_header(header, Opcode::binary, body.size(), masked ? std::optional(kMask) : std::nullopt);
  header[0] = first;
  std::string bytes(as_text(Bytes(header, size)));
  for (std::size_t i = 0; i < body.size(); ++i) {
    bytes += static_cast<char>(masked ? body[i] ^ static_cast<char>(kMask[i % 4]) : body[i]);
  }
  return bytes;
}

// A message of ZWS in one frame.
inline std::string message(bool masked, std::uint8_t flags, std::string_view body) {
  return frame(masked, 0x82, std::string(1, static_cast<char>(flags)).append(body));
}

}  // namespace weft::net::ws::test
