// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "weft/base/bytes.h"
#include "weft/base/error.h"

namespace weft::net::ws {

// WebSocket framing (RFC 6455 section 5): pure functions of bytes. The reserved bits are errors, except the first one
// where both ends agreed on permessage-deflate (RFC 7692): it stands in the first frame of a compressed message.

enum class Opcode : std::uint8_t { continuation = 0, text = 1, binary = 2, close = 8, ping = 9, pong = 10 };
[[nodiscard]] constexpr bool is_control(Opcode opcode) noexcept { return static_cast<std::uint8_t>(opcode) >= 8; }

using MaskKey = std::array<std::uint8_t, 4>;

inline constexpr std::size_t kHeaderMax = 14;  // flags and opcode, size of 1 + 8 bytes, mask
inline constexpr std::size_t kControlBodyMax = 125;
inline constexpr std::uint8_t kCompressedBit = 0x40;  // in the first byte of a frame

struct WsFrameHeader {
  bool last = true;  // of its message
  Opcode opcode = Opcode::binary;
  std::uint8_t header_size = 0;
  std::uint64_t body_size = 0;
  std::optional<MaskKey> mask{};
  bool compressed = false;  // the message that begins with this frame
};

struct Parsed {
  ParseStatus status = ParseStatus::need_more;
  StaticText problem = "";  // malformed: the broken rule
};

// Reads the header at the front of `input`. `masked`: whether the peer's frames must be masked; a server's peer masks.
// A broken rule is reported from the first byte that shows it. `out` is written only when complete. `deflate`: whether
// the ends agreed on permessage-deflate.
[[nodiscard]] Parsed parse_header(Bytes input, bool masked, WsFrameHeader& out, bool deflate = false) noexcept;

// Writes the header of a whole message or control frame and returns its size. `to` has room for kHeaderMax.
std::size_t write_header(std::uint8_t* to, Opcode opcode, std::uint64_t body_size,
                         const std::optional<MaskKey>& mask) noexcept;

// Copies `from`, which begins `offset` bytes into the frame's body, with the mask put on or taken off. `to` is
// from.data(), or apart from `from`.
void copy_masked(std::uint8_t* to, Bytes from, MaskKey mask, std::uint64_t offset) noexcept;

}  // namespace weft::net::ws
