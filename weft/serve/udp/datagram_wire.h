// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "weft/base/bytes.h"
#include "weft/base/endian.h"

namespace weft::serve {

// A datagram of a session: one byte of kind, 8 bytes of cookie (big-endian), then the payload of `data`; the others
// ignore theirs. docs/udp-server.md has the handshake.
enum class DatagramKind : std::uint8_t {
  hello = 1,      // client: asks for a cookie; its own cookie is ignored
  challenge = 2,  // server: the cookie of the address
  open = 3,       // client: begins the session, and keeps it alive
  opened = 4,     // server: the session is there
  data = 5,       // either
  close = 6,      // either: the session ended, or there is none
};

inline constexpr std::size_t kDatagramHeader = 9;

struct ParsedDatagram {
  DatagramKind kind;
  std::uint64_t cookie;
  Bytes payload;
};

// No value: too short, or of an unknown kind.
[[nodiscard]] inline std::optional<ParsedDatagram> parse_datagram(Bytes bytes) noexcept {
  if (bytes.size() < kDatagramHeader || bytes[0] < static_cast<std::uint8_t>(DatagramKind::hello) ||
      bytes[0] > static_cast<std::uint8_t>(DatagramKind::close)) {
    return std::nullopt;
  }
  return ParsedDatagram{static_cast<DatagramKind>(bytes[0]), load_big_endian<std::uint64_t>(bytes.data() + 1),
                        bytes.subspan(kDatagramHeader)};
}

inline void write_datagram_header(std::uint8_t* to, DatagramKind kind, std::uint64_t cookie) noexcept {
  *to = static_cast<std::uint8_t>(kind);
  store_big_endian(to + 1, cookie);
}

}  // namespace weft::serve
