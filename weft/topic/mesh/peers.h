// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/result.h"
#include "weft/base/time.h"
#include "weft/topic/mesh/lost_peers.h"
#include "weft/topic/wire/control.h"

namespace weft::topic {

// A connection of a peer to this handle: msg::PeerId. 0: the peer is in this process.
using PeerConnection = std::uint32_t;

// The result of a control message. malformed and refused: it had no effect. ignored: it is outdated.
enum class Outcome : std::uint8_t { taken, ignored, malformed, refused };

// RosterUpdate: a roster of a peer, parsed and checked, before it is entered.
struct RosterUpdate {
  std::uint64_t from = 0;
  PeerConnection via = 0;
  std::uint64_t revision = 0;
  Duration lease{0};
  Roster roster;                    // without the three lists of other handles
  std::size_t bytes = 0;            // of the roster's texts
  bool answered = false;            // the peer has received messages of this handle
  std::uint64_t our_ask = 0;        // our last request for rosters that it answers
  bool parted = false;              // the peer has noted a separation from this handle
  std::vector<Roster::Peer> known;  // the peers of the peer
};

// Reads the roster of a control message for the handle `own_instance`. `clock`: of epochs, see Ownership. Fails with
// protocol_error. Throws std::bad_alloc.
[[nodiscard]] Result<RosterUpdate> read_roster(const Control& control, PeerConnection via, std::uint64_t own_instance,
                                               std::uint64_t clock);

// Peers: the other handles with a known roster, the connections of each, and the handles that are gone.
// Owner: a MeshState. Affinity: its caller's. Cost: O(log peers), and the texts of a roster.
// Invariants:
//   1. A connection carries the control messages of one handle.
//   2. A peer that was lost is entered again only after a link to it stands: found().
//   3. At most kPeersMax peers, kRosterBytesMax bytes of rosters and kConnectionsMax connections.
class Peers {
 public:
  static constexpr std::size_t kPeersMax = 256;
  static constexpr std::size_t kRosterBytesMax = std::size_t{64} << 20;  // of all peers' rosters
  static constexpr std::size_t kConnectionsMax = 4096;
  static constexpr std::size_t kGoneMax = 1024;

  struct Peer {
    Roster roster;
    std::uint64_t revision = 0;
    Duration lease{0};
    Instant heard;
    bool answered = false;        // it has our subscriptions
    std::uint64_t our_ask = 0;    // our last request that it answered
    std::uint64_t their_ask = 0;  // its last request; each roster answers it
    std::size_t bytes = 0;        // of the roster's texts
    PeerConnection via = 0;       // the connection of its roster
    bool parted = false;          // by its roster, it has noted a separation from this handle
  };

  [[nodiscard]] const std::map<std::uint64_t, Peer>& all() const noexcept { return peers_; }
  [[nodiscard]] const Peer* find(std::uint64_t instance) const noexcept;
  [[nodiscard]] bool contains(std::uint64_t instance) const noexcept { return peers_.contains(instance); }
  [[nodiscard]] bool is_lost(std::uint64_t instance) const noexcept { return lost_.contains(instance); }
  [[nodiscard]] bool is_gone(std::uint64_t instance) const noexcept { return gone_.contains(instance); }
  // The handles whose connection ended, also after their return.
  [[nodiscard]] const LostPeers& parted() const noexcept { return parted_; }
  [[nodiscard]] std::size_t roster_bytes() const noexcept { return roster_bytes_; }
  [[nodiscard]] std::size_t connection_count() const noexcept { return connections_.size(); }

  // --- connections ---
  // Whether control messages of the instance are valid on this connection. One handle uses one connection. A handle
  // that connects again replaces its former connection at once if `proven`; otherwise after its former connection has
  // ended, so that no other peer takes the place of a connected handle.
  [[nodiscard]] bool may_carry(PeerConnection via, std::uint64_t instance, bool proven,
                               const std::function<bool(PeerConnection)>& is_open) const;
  // Removes the connections that are not open. Calls `lost` with the instance of each peer whose roster came over one.
  template <typename IsOpen, typename Lost>
  void end_connections(const IsOpen& is_open, Lost lost) {
    for (auto at = connections_.begin(); at != connections_.end();) {
      if (is_open(at->first)) {
        ++at;
        continue;
      }
      const auto peer = peers_.find(at->second);
      const bool carried = peer != peers_.end() && peer->second.via == at->first;
      const std::uint64_t instance = at->second;
      at = connections_.erase(at);
      if (carried) {
        lost(instance);
      }
    }
  }

  // --- rosters ---
  // taken: enter() may follow. ignored: the peer is gone. refused: beyond a bound.
  [[nodiscard]] Outcome admit(const RosterUpdate& update) const;
  // Returns true if the peer is new. Throws std::bad_alloc: the update may be entered again.
  bool enter(RosterUpdate&& update, Instant now);
  void note_ask(std::uint64_t from, std::uint64_t ask) noexcept;  // the peer requested our roster
  void forget(std::uint64_t instance) noexcept;

  // --- handles that end ---
  void lose(std::uint64_t instance) noexcept { lost_.note(instance); }
  void found(std::uint64_t instance) noexcept { lost_.found(instance); }
  // A connection to or from a peer ended.
  void part(std::uint64_t instance) noexcept {
    if (peers_.contains(instance)) {
      parted_.note(instance);
    }
  }
  // The handle ended: none of its rosters is entered any more. Throws std::bad_alloc.
  void gone(std::uint64_t instance);

  // --- presence ---
  // Calls `visit` for each peer with a valid lease, in order of their instances.
  template <typename Visit>
  void each_present(Instant now, Visit visit) const {
    for (const auto& [instance, peer] : peers_) {
      if (peer.lease > Duration::zero() && deadline_after(peer.heard, peer.lease) > now) {
        visit(instance, peer);
      }
    }
  }
  [[nodiscard]] Instant next_expiry(Instant now) const noexcept;

 private:
  std::map<std::uint64_t, Peer> peers_;
  std::size_t roster_bytes_ = 0;                         // the sum over peers_
  std::map<PeerConnection, std::uint64_t> connections_;  // each with the instance of its handle
  std::set<std::uint64_t> gone_;                         // the handles that ended
  LostPeers lost_;
  LostPeers parted_;
};

}  // namespace weft::topic
