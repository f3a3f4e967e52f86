// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "weft/base/time.h"
#include "weft/topic/mesh/peers.h"
#include "weft/topic/wire/control.h"

namespace weft::topic {

// ReadinessProbes: the probes of this handle, which count the subscriptions to a topic, and those of its peers.
// A probe stands until its deadline. Each handle answers with the number of its matching subscriptions, and again when
// the number changes. The caller counts the subscriptions: due() returns the probes, sent() notes the answer.
// Owner: a MeshState. Affinity: its caller's. Cost: O(log probes) for the own ones, a step for each of a peer's.
// Invariants:
//   1. At most kPeerProbesMax probes of peers, each for at most kLongest.
//   2. A peer counts in at most kPeersMax + 1 handles of a probe, each with at most kCountMax subscriptions.
class ReadinessProbes {
 public:
  static constexpr std::size_t kPeerProbesMax = 1024;
  static constexpr Duration kLongest = std::chrono::hours(1);
  static constexpr std::uint64_t kCountMax = 262'144;  // InterestTable::kFiltersMax

  // PeerProbe: a probe of a peer.
  struct PeerProbe {
    std::string topic;
    std::uint64_t from = 0;
    std::uint64_t id = 0;
    Instant deadline;
    std::uint64_t sent = kUnsent;  // the last count that the peer got
  };
  static constexpr std::uint64_t kUnsent = ~std::uint64_t{0};

  explicit ReadinessProbes(std::uint64_t own_instance) noexcept : own_instance_(own_instance) {}

  // --- probes of this handle ---
  // Returns the message for every peer. Throws std::bad_alloc.
  [[nodiscard]] Control begin(std::uint64_t id, std::string topic, Instant deadline, Instant now);
  // Takes the topic of the probe for the message that ends it; "" if there is no such probe.
  [[nodiscard]] std::string end(std::uint64_t id) noexcept;
  [[nodiscard]] Control end_message(std::uint64_t id, std::string topic) const;
  void count_own(std::uint64_t id, std::uint64_t count) noexcept;  // of this handle's subscriptions
  [[nodiscard]] std::uint64_t sum(std::uint64_t id) const noexcept;
  [[nodiscard]] std::vector<std::pair<std::uint64_t, std::string>> own_probes() const;  // id, topic
  // The probes again, to every peer.
  [[nodiscard]] std::vector<Control> all(Instant now) const;
  // The probes again, to those of the handles that have not answered.
  [[nodiscard]] std::vector<Control> unanswered(const std::vector<std::uint64_t>& instances, Instant now) const;
  [[nodiscard]] Outcome handle_count(const Control& answer);

  // --- probes of peers ---
  // ignored: it ended. Throws std::bad_alloc: the probe may be handled again.
  [[nodiscard]] Outcome handle_probe(const Control& probe, Instant now);
  // The probes that stand: that of one peer, or with `from` 0 all. Throws std::bad_alloc.
  [[nodiscard]] std::vector<PeerProbe> due(Instant now, std::uint64_t from, std::uint64_t id);
  [[nodiscard]] Control count_message(const PeerProbe& probe, std::uint64_t count) const;
  void sent(const PeerProbe& probe, std::uint64_t count) noexcept;
  void send_again() noexcept;  // the peers may have missed the counts
  [[nodiscard]] std::size_t peer_probe_count() const noexcept { return peer_probes_.size(); }

  // A peer's counts end with it. Its probes stay until their deadlines: they came over the peer's own connection, which
  // may stand.
  void forget(std::uint64_t instance) noexcept;

 private:
  struct OwnProbe {
    std::string topic;
    Instant deadline;
    std::map<std::uint64_t, std::uint64_t> counts;  // by instance
  };
  [[nodiscard]] Control message(std::uint64_t id, const OwnProbe& probe, std::uint64_t to, Instant now) const;

  const std::uint64_t own_instance_;
  std::map<std::uint64_t, OwnProbe> own_;
  std::vector<PeerProbe> peer_probes_;
};

}  // namespace weft::topic
