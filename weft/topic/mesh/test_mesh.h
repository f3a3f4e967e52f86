// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "weft/topic/mesh/peers.h"

namespace weft::topic {

inline constexpr Instant kMeshStart{std::chrono::hours(1)};
inline constexpr std::uint64_t kMeshClock = 1'000'000;

// The update of a peer that has answered, over a connection of its own.
inline RosterUpdate update_of(std::uint64_t from, Roster roster = {}, std::uint64_t revision = 1) {
  RosterUpdate update;
  update.from = from;
  update.via = static_cast<PeerConnection>(from);
  update.revision = revision;
  update.roster = std::move(roster);
  update.answered = true;
  return update;
}

inline Peers peers_of(const std::vector<std::uint64_t>& instances) {
  Peers peers;
  for (const std::uint64_t instance : instances) {
    peers.enter(update_of(instance), kMeshStart);
  }
  return peers;
}

}  // namespace weft::topic
