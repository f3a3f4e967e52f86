// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/base/time.h"
#include "weft/topic/mesh/peers.h"

namespace weft::topic {

// Links: the endpoints to which this handle connects, and the state of each. The caller has the sockets: it connects,
// disconnects and scouts as the steps say.
// A scout asks the handle at a given endpoint for its instance, before the handle connects. Otherwise a handle that is
// listed under two names, or lists itself, would receive its messages twice.
// Owner: a MeshState. Affinity: its caller's. Cost: a step for each link.
// Invariants:
//   1. An instance has at most one connected link.
//   2. A link without a known instance is given.
//   3. At most kLinksMax links.
class Links {
 public:
  static constexpr std::size_t kLinksMax = Peers::kPeersMax;
  static constexpr unsigned kLearnedFailures = 3;  // then no caller waits for such a peer
  // a peer that a roster named and that does not answer
  static constexpr Duration kLearnedKept = std::chrono::seconds(60);

  struct Link {
    std::uint64_t instance = 0;  // 0: unknown
    bool given = false;          // from the options, or from add_peer(): a scout finds the handle that listens there
    bool connected = false;      // the socket connects; otherwise there is a scout, or `other_name`
    bool other_name = false;     // of this handle, or of one with another link
    bool plain = false;          // not a handle of topics: a publisher of another library
    bool up = false;
    bool inner = false;     // of a handle of this process: its inside topics are also connected
    bool failed = false;    // the last attempt, or the last connection, failed
    unsigned failures = 0;  // since it was connected, or began
    Instant down_since{};
  };

  explicit Links(std::uint64_t own_instance) noexcept : own_instance_(own_instance) {}

  [[nodiscard]] const std::map<std::string, Link>& all() const noexcept { return links_; }
  [[nodiscard]] const Link* find(const std::string& endpoint) const noexcept;
  [[nodiscard]] bool is_full() const noexcept { return links_.size() >= kLinksMax; }

  // --- steps ---
  // Step: the work of the caller for a new link.
  enum class Step : std::uint8_t { nothing, connect, scout, disconnect };
  struct Begun {
    Step step = Step::nothing;
    std::uint64_t replaced = 0;  // the former handle of this endpoint; 0: none
    bool stands = false;         // replaced: the connection stands, and the new handle has received nothing
  };
  // `instance`: the handle that listens there; 0: unknown. Throws std::bad_alloc: nothing changed.
  [[nodiscard]] Begun begin(const std::string& endpoint, std::uint64_t instance, bool given, Instant now);
  // In a full table: the endpoint of a peer that only rosters name, and that does not answer. Null: none yields.
  [[nodiscard]] const std::string* yielding(const std::string& to) const noexcept;
  // Returns the removed link. Allocates nothing.
  std::optional<Link> remove(const std::string& endpoint) noexcept;
  // The handle has no link any more: a scout takes its other names. Returns false if it has none.
  bool free_other_names(std::uint64_t instance) noexcept;
  // The connection stands, or the last attempt failed. Returns null for a link that is not connected.
  const Link* note_connection(const std::string& endpoint, bool up, Instant now) noexcept;
  // The scout found a handle; 0: a plain publisher. Returns true if the caller connects. Allocates nothing.
  bool note_scouted(const std::string& endpoint, std::uint64_t instance) noexcept;
  void note_unconnected(const std::string& endpoint) noexcept;  // the connect after the scout failed
  // The connection of a given link ended: another handle may come up there. So may one at another name of the handle
  // that ended. Returns the endpoints to scout. Throws std::bad_alloc: nothing changed.
  [[nodiscard]] std::vector<std::string> scout_again(const std::string& endpoint);
  bool unlist(const std::string& endpoint) noexcept;  // returns false for a link that is not given

  // --- handles of this process ---
  struct InprocLink {
    bool stands = false;
    bool inner = false;                  // and its inside topics
    const std::string* other = nullptr;  // the endpoint of another link to the same handle
  };
  [[nodiscard]] InprocLink inproc_link(std::uint64_t instance, const std::string& endpoint) const noexcept;
  void note_inproc_up(const std::string& endpoint) noexcept;  // an inproc connection stands at once
  void note_inner(const std::string& endpoint) noexcept;

  // --- queries ---
  // Every peer has answered this request for rosters, or a later one. A peer that only rosters name and that repeatedly
  // cannot be reached has left without a message.
  [[nodiscard]] bool settled(std::uint64_t ask, const Peers& peers) const noexcept;
  // Every reachable peer has sent its owned topics since this request.
  [[nodiscard]] bool owners_known(std::uint64_t ask, const Peers& peers) const noexcept;
  // Every reachable peer has sent its services.
  [[nodiscard]] bool services_known(const Peers& peers) const noexcept;
  [[nodiscard]] bool is_linked(std::uint64_t instance) const noexcept;
  [[nodiscard]] std::vector<std::uint64_t> linked() const;  // their instances. Throws std::bad_alloc
  // The linked peers that have not answered this request. Throws std::bad_alloc.
  [[nodiscard]] std::vector<std::uint64_t> unanswered(std::uint64_t ask, const Peers& peers) const;
  // The links whose state differs from the present connections, with the present state. Throws std::bad_alloc.
  [[nodiscard]] std::vector<std::pair<std::string, bool>> differing(const std::vector<std::string>& connected) const;
  // The endpoints without a connection, which need a scout. Throws std::bad_alloc.
  [[nodiscard]] std::vector<std::string> unconnected() const;
  // The given links whose connection ended. Throws std::bad_alloc.
  [[nodiscard]] std::vector<std::string> failed_given() const;

 private:
  const std::uint64_t own_instance_;
  std::map<std::string, Link> links_;
};

}  // namespace weft::topic
