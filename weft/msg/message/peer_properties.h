// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "weft/zmtp/local_end.h"

namespace weft::msg {

// The properties of the peer of each connection, by number. A message carries the number, four bytes, and no reference.
// Owner: the process. Affinity: any thread.
// Cost: a lock and an allocation for each connection, a lock for each look-up, nothing for a message.
// Invariants:
// 1. Of connections that are gone, the properties of the last kGonePeersMax stay.
using PeerId = std::uint32_t;  // 0: no peer; a number is not used again for four thousand million connections
inline constexpr std::size_t kGonePeersMax = 16'384;

[[nodiscard]] PeerId remember_peer(zmtp::Metadata properties);
void peer_gone(PeerId peer) noexcept;
// Zero-terminated; null when there is no such property. Valid until kGonePeersMax more connections have ended after
// this one.
[[nodiscard]] const char* peer_property(PeerId peer, std::string_view name) noexcept;

}  // namespace weft::msg
