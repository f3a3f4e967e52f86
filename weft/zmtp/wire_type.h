// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace weft::zmtp {

// The numbers are those of the C API and never change.
enum class WireType : std::uint8_t {
  pair = 0,
  pub = 1,
  sub = 2,
  req = 3,
  rep = 4,
  dealer = 5,
  router = 6,
  pull = 7,
  push = 8,
  xpub = 9,
  xsub = 10,
  stream = 11,
  server = 12,
  client = 13,
  radio = 14,
  dish = 15,
  gather = 16,
  scatter = 17,
  dgram = 18,
  peer = 19,
  channel = 20,
};
inline constexpr int kSocketTypeCount = 21;

// The value of the Socket-Type property: "PAIR", "PUB", ... Upper case, compared exactly.
[[nodiscard]] std::string_view socket_type_name(WireType type) noexcept;
[[nodiscard]] std::optional<WireType> parse_socket_type(std::string_view name) noexcept;

// Whether the two types may connect (RFC 28 to 31 and the RFCs of the later types). Symmetric. STREAM and
// DGRAM do not speak ZMTP and have no partner.
[[nodiscard]] bool compatible(WireType ours, WireType theirs) noexcept;

// Whether READY carries the Identity property, even when it is empty: REQ, DEALER and ROUTER.
[[nodiscard]] bool sends_identity(WireType type) noexcept;
// Whether peers of the type filter by topic: PUB and XPUB, which take filters, and SUB and XSUB, which send them.
[[nodiscard]] constexpr bool takes_filters(WireType type) noexcept {
  return type == WireType::pub || type == WireType::xpub;
}
[[nodiscard]] constexpr bool knows_filters(WireType type) noexcept {
  return takes_filters(type) || type == WireType::sub || type == WireType::xsub;
}

}  // namespace weft::zmtp
