// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "weft/base/result.h"
#include "weft/topic/mesh/peers.h"
#include "weft/topic/wire/control.h"

namespace weft::topic {

// Whether a handle takes this epoch from a peer. `clock`: the wall clock in us, at least 1. Epochs follow it.
[[nodiscard]] bool is_epoch(std::uint64_t epoch, std::uint64_t clock) noexcept;

// Ownership: the topics that this handle owns, its claims, and the newest known epoch of each topic.
// A roster announces an owner, with an epoch that grows with each owner. A claim begins when every reachable handle has
// sent its owned topics, and requests the topic from every peer. Of two claims at once the higher epoch wins, then the
// lower instance. The same rule ends one of two ownerships that a partition of the network made. Of two owners that
// meet for the first time the one with the lower epoch stays: it came first. The later owner decides which of the two
// cases it is: if it has noted a separation from the earlier one, it never yields to it, and its roster has that note.
// So the two never both yield.
// Owner: a MeshState. Affinity: its caller's. Cost: O(log topics), and a step for each claim.
// Invariants:
//   1. The epoch of a claim is greater than each epoch of the topic that this handle had noted before.
//   2. A topic is not both owned and claimed, and has one claim.
//   3. Owned topics and claims are at most Roster::kOwnedMax together, known epochs at most kEpochsMax.
class Ownership {
 public:
  static constexpr std::size_t kEpochsMax = 65'536;

  explicit Ownership(std::uint64_t own_instance) noexcept : own_instance_(own_instance) {}

  // --- claims of this handle ---
  // Returns the message for every peer. `ask`: our last request for rosters. Fails with conflict: a known handle owns
  // the topic or this one claims it, or this one has too many. Throws std::bad_alloc.
  [[nodiscard]] Result<Control> begin(std::string topic, std::uint64_t id, const Peers& peers, std::uint64_t clock,
                                      std::uint64_t ask);
  void cancel(std::uint64_t id) noexcept { claims_.erase(id); }
  // Whether every peer has answered, or one has refused.
  [[nodiscard]] bool decided(std::uint64_t id) const noexcept;
  // Ends the claim, and returns the epoch. `in_time`: it was decided before the deadline. Errors: conflict; timed_out;
  // would_block (a former owner was found: claim again, with a higher epoch). Throws std::bad_alloc: the claim ended.
  [[nodiscard]] Result<std::uint64_t> end(std::uint64_t id, bool in_time);
  // The claims again, each to the peers that have not answered: they may have missed it. A peer that receives a claim
  // twice answers that it is outdated, and the caller claims again, unless the peer's first answer was on its way.
  [[nodiscard]] std::vector<Control> unanswered() const;
  void give_up(const std::string& topic) noexcept { owned_.erase(topic); }

  // --- messages of peers ---
  // The answer to a peer's claim; nothing if the claim is malformed. Throws std::bad_alloc: the claim may be handled
  // again.
  [[nodiscard]] std::optional<Control> handle_claim(const Control& claim, std::uint64_t clock);
  [[nodiscard]] Outcome handle_answer(const Control& answer, std::uint64_t clock);
  // The owned topics of a peer's roster. `we_noted`: a separation from it. Returns true if this handle yielded a topic.
  bool handle_owned(std::uint64_t from, const Peers::Peer& peer, bool we_noted);
  void forget(std::uint64_t instance) noexcept;  // its answers are not awaited any more

  // --- queries ---
  struct Owned {
    std::uint64_t epoch = 0;
    std::uint64_t ask = 0;  // our last request for rosters before the claim
  };
  [[nodiscard]] const std::map<std::string, Owned>& owned() const noexcept { return owned_; }
  [[nodiscard]] std::size_t claim_count() const noexcept { return claims_.size(); }
  [[nodiscard]] std::size_t epoch_count() const noexcept { return epochs_.size(); }
  [[nodiscard]] std::uint64_t newest_epoch(const std::string& topic) const noexcept;  // 0: unknown

 private:
  struct Claim {
    std::string topic;
    std::uint64_t epoch = 0;
    std::uint64_t ask = 0;
    std::set<std::uint64_t> waiting;   // peers that have not answered
    std::set<std::uint64_t> answered;  // of the awaited ones
    bool lost = false;
    bool outdated = false;  // a peer has a later epoch
  };
  void note_epoch(const std::string& topic, std::uint64_t epoch);

  const std::uint64_t own_instance_;
  std::map<std::string, Owned> owned_;
  std::map<std::string, std::uint64_t> epochs_;
  std::map<std::uint64_t, Claim> claims_;
};

}  // namespace weft::topic
