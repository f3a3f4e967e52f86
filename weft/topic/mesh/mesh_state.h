// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/result.h"
#include "weft/base/time.h"
#include "weft/topic/mesh/links.h"
#include "weft/topic/mesh/ownership.h"
#include "weft/topic/mesh/peers.h"
#include "weft/topic/mesh/readiness.h"
#include "weft/topic/mesh/requests.h"
#include "weft/topic/mesh/resend.h"
#include "weft/topic/wire/control.h"

namespace weft::topic {

// MeshState: a handle among the other handles of its fleet, as a function of events: control messages, connections that
// begin and end, and calls of the program. It has no socket, no lock and no clock: the caller gives the time, sends the
// returned messages, and connects and disconnects for it.
// Owner: a Node, or a simulation. Affinity: one thread at a time; of a Node: its mesh lock. Cost: those of its parts.
// After std::bad_alloc a message may be handled, and a step may be made, again.
// Invariants: those of its parts.
class MeshState {
 public:
  // Self: the handle itself, as its roster describes it.
  struct Self {
    std::uint64_t instance = 0;
    std::string node{};        // its name
    std::string endpoint{};    // to which peers connect; empty: none
    Duration presence{0};      // its lease
    bool names_peers = false;  // of a tcp fleet: peers send each other the endpoints of further peers
    bool secret = false;       // a connection that carries a message has shown the fleet's secret
  };
  // Times: `clock` is the wall clock in us, at least 1, which epochs follow.
  struct Times {
    Instant now;
    std::uint64_t clock = 1;
  };
  using IsOpen = std::function<bool(PeerConnection)>;

  explicit MeshState(Self self);

  // --- control messages ---
  // Reaction: the work that a message leaves to the caller.
  struct Reaction {
    Outcome outcome = Outcome::taken;
    std::optional<Control> send{};
    std::optional<std::uint64_t> roster_to{};  // request_exchange() with it
    bool count = false;                        // count the subscriptions for the probe of this message
    bool changed = false;                      // a wait may have come true
  };
  // Every kind except a roster. Throws std::bad_alloc: handle it again.
  [[nodiscard]] Reaction handle(const Control& control, PeerConnection via, const IsOpen& is_open, Times times);
  // A roster has two steps, so that each entered peer has a link: between them the caller links the sender, and the
  // peers that the roster names.
  struct Admission {
    Outcome outcome = Outcome::taken;
    bool lost = false;  // link the sender only: its roster comes again when the link stands
  };
  [[nodiscard]] Admission admit_roster(RosterUpdate& update, const IsOpen& is_open) const;
  [[nodiscard]] Reaction enter_roster(RosterUpdate&& update, Instant now);

  // --- messages to peers ---
  [[nodiscard]] Control roster(std::uint64_t to) const;              // 0: every peer. Throws std::bad_alloc
  [[nodiscard]] Control roster_request(std::uint64_t to) const;      // for the present ask()
  [[nodiscard]] std::uint64_t ask() const noexcept { return ask_; }  // our last request for rosters
  std::uint64_t next_ask() noexcept { return ++ask_; }
  std::uint64_t next_id() noexcept { return next_id_++; }
  // One roster answers all requests of a turn of the caller's loop. `full`: with the messages that the peer of a new
  // connection lacks, too: the request for its roster, probes and claims.
  void request_exchange(std::uint64_t to, bool full) noexcept;
  struct Exchange {
    std::uint64_t to = 0;
    bool full = false;
  };
  [[nodiscard]] std::optional<Exchange> take_exchange() noexcept;  // the requested one
  // Of a full exchange, the messages after the roster and before the counts of probes.
  [[nodiscard]] std::vector<Control> exchange_messages(std::uint64_t to, Instant now) const;
  // The next messages for peers that missed some, at most `window`; counts of probes may follow them. A peer that has
  // answered gets no second request: one that does not read costs each handle of the fleet a roster from time to time,
  // and no answers. Throws std::bad_alloc: take the turn again.
  [[nodiscard]] std::vector<Control> resend_turn(std::size_t window, Instant now);
  [[nodiscard]] Resend& resend() noexcept { return resend_; }

  // --- connections ---
  struct LinkChange {
    bool known = false;  // the endpoint has a connected link
    std::uint64_t instance = 0;
    bool given = false;
    bool outdated = false;  // of a tcp fleet: rosters named it, and it has not answered for a minute
  };
  [[nodiscard]] LinkChange handle_link(const std::string& endpoint, bool up, Instant now) noexcept;
  // Throws std::bad_alloc: nothing changed.
  [[nodiscard]] Links::Begun begin_link(const std::string& endpoint, std::uint64_t instance, bool given, Instant now);
  // An inproc connection stands at once. Returns false if there is no such link.
  bool handle_inproc_up(const std::string& endpoint, std::uint64_t instance) noexcept;
  // The same for the endpoint of a handle that another one named, or whose connection ended: it may be outdated, and
  // replaces no other handle. One that listens there sends its own roster.
  [[nodiscard]] Links::Begun begin_named_link(const std::string& endpoint, std::uint64_t instance, Instant now);
  struct Removed {
    bool known = false;   // there was such a link
    bool scouts = false;  // Links::unconnected() has other names of its handle
  };
  // `replaced`: another connection to the same handle takes its place.
  Removed remove_link(const std::string& endpoint, bool replaced) noexcept;
  void abandon_link(const std::string& endpoint) noexcept { (void)links_.remove(endpoint); }  // it did not begin
  // Connections of peers to this handle ended. Returns the peers that are forgotten and still linked: they get a full
  // exchange. Throws std::bad_alloc.
  struct Ended {
    bool forgot = false;
    std::vector<std::uint64_t> linked;
  };
  [[nodiscard]] Ended end_connections(const IsOpen& is_open);
  void handle_gone(std::uint64_t instance);  // the handle closed. Throws std::bad_alloc
  // A roster came over a server: no connection shows the handle's end. Forgets those of them whose lease has passed.
  // Throws std::bad_alloc.
  void handle_leased(std::uint64_t instance, Instant now);
  void handle_silent(std::uint64_t instance) noexcept;  // it left, or its lease passed; it may come again
  void handle_lost(std::uint64_t instance) noexcept;    // the same, without memory to note it

  // --- calls of the program ---
  [[nodiscard]] Result<Control> begin_claim(std::string topic, std::uint64_t clock);  // Control::id names the claim
  [[nodiscard]] Result<std::uint64_t> end_claim(std::uint64_t claim, bool in_time);
  bool give_up(const std::string& topic) noexcept;  // returns false if the handle does not own it
  // Errors: unreachable; would_block (a peer has not sent its services); those of Requests::choose().
  [[nodiscard]] Result<std::vector<Requests::Member>> choose_members(std::string_view topic);
  [[nodiscard]] Result<void> serve(std::uint64_t id, std::string topic, std::string group);
  bool stop_serving(std::uint64_t id) noexcept;
  [[nodiscard]] bool is_owned(const std::string& topic) const noexcept;  // by a known handle
  // Calls `visit` with each owned topic of each known handle.
  template <typename Visit>
  void each_owned(Visit visit) const {
    for (const auto& [topic, owned] : ownership_.owned()) {
      visit(topic);
    }
    for (const auto& [instance, peer] : peers_.all()) {
      for (const Roster::Owned& owned : peer.roster.owned) {
        visit(owned.topic);
      }
    }
  }
  [[nodiscard]] bool settled(std::uint64_t ask) const noexcept { return links_.settled(ask, peers_); }
  [[nodiscard]] bool owners_known(std::uint64_t ask) const noexcept { return links_.owners_known(ask, peers_); }
  [[nodiscard]] bool services_known() const noexcept { return links_.services_known(peers_); }
  [[nodiscard]] bool served(std::string_view topic) const noexcept { return requests_.served(topic, peers_); }

  void set_endpoint(std::string endpoint) { self_.endpoint = std::move(endpoint); }
  [[nodiscard]] const Self& self() const noexcept { return self_; }
  [[nodiscard]] const Peers& peers() const noexcept { return peers_; }
  [[nodiscard]] const Ownership& ownership() const noexcept { return ownership_; }
  [[nodiscard]] Ownership& ownership() noexcept { return ownership_; }
  [[nodiscard]] ReadinessProbes& readiness() noexcept { return readiness_; }
  [[nodiscard]] const ReadinessProbes& readiness() const noexcept { return readiness_; }
  [[nodiscard]] Requests& requests() noexcept { return requests_; }
  [[nodiscard]] Links& links() noexcept { return links_; }
  [[nodiscard]] const Links& links() const noexcept { return links_; }

 private:
  void forget(std::uint64_t instance) noexcept;
  void forget_roster(std::uint64_t instance) noexcept;  // its replies may still come

  Self self_;
  Peers peers_;
  Links links_;
  Ownership ownership_;
  ReadinessProbes readiness_;
  Requests requests_;
  Resend resend_;
  std::uint64_t revision_ = 1;  // of our roster
  std::uint64_t ask_ = 1;
  std::uint64_t next_id_ = 1;
  std::set<std::uint64_t> leased_;  // see handle_leased()
  bool exchange_requested_ = false;
  bool exchange_full_ = false;
  std::uint64_t exchange_to_ = 0;
};

}  // namespace weft::topic
