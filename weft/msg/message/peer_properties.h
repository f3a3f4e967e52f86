// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "weft/zmtp/local_end.h"

namespace weft::msg {

// What is known of the peer of each connection, by number: so a message carries four bytes of it and no reference.
// Owner: the process. Affinity: any thread. Cost: a lock and an allocation per connection, a lock per question; nothing
// per message. Bounded: of connections that are gone, the last kGoneMax are remembered.
using PeerId = std::uint32_t;  // 0: nobody is known; not used again for four thousand million connections
inline constexpr std::size_t kGonePeersMax = 16'384;

[[nodiscard]] PeerId remember_peer(zmtp::Metadata properties);
void peer_gone(PeerId peer) noexcept;
// Zero-terminated; null when there is no such property. Valid until kGonePeersMax more connections ended after this
// one.
[[nodiscard]] const char* peer_property(PeerId peer, std::string_view name) noexcept;

}  // namespace weft::msg
