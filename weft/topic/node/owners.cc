// SPDX-License-Identifier: MIT
// Node: who owns a topic. An owner is announced by its roster, with an epoch that grows with each owner. A claim begins
// when every reachable handle has sent its owned topics, and requests the topic from every peer; of two claims at once
// the higher epoch wins, then the lower instance. The same rule ends one of two ownerships that a partition of the
// network made, if both remember it. Of two owners that meet for the first time the one with the lower epoch stays: it
// came first.
#include <algorithm>
#include <chrono>
#include <new>
#include <utility>

#include "weft/msg/socket/socket_core.h"
#include "weft/sys/clock.h"
#include "weft/topic/node/node.h"

namespace weft::topic {

namespace {

constexpr const char* kTaken = "taken";  // of a claim_answer: the sender owns the topic, or its claim is better
constexpr Error kConflict(Errc::conflict, "somebody alive owns this topic");

// The epoch of an owner without a known predecessor. An unknown one may have existed nevertheless, so the time orders
// them as far as the clocks of the hosts agree.
std::uint64_t first_epoch() {
  const auto now = std::chrono::duration_cast<std::chrono::microseconds>(sys::wall_now().time_since_epoch()).count();
  return now > 0 ? static_cast<std::uint64_t>(now) : 1;
}

}  // namespace

bool is_epoch(std::uint64_t epoch) { return epoch != 0 && epoch <= first_epoch() + kEpochAhead; }

namespace {

bool beats(std::uint64_t epoch, std::uint64_t instance, std::uint64_t other_epoch, std::uint64_t other_instance) {
  return epoch != other_epoch ? epoch > other_epoch : instance < other_instance;
}

}  // namespace

void Node::note_epoch(const std::string& topic, std::uint64_t epoch) {
  if (epochs_.size() >= kEpochsMax && !epochs_.contains(topic)) {
    epochs_.erase(epochs_.begin());
  }
  std::uint64_t& newest = epochs_[topic];
  newest = std::max(newest, epoch);
}

Result<std::uint64_t> Node::begin_claim(std::string_view topic) {
  Control control{.kind = Control::Kind::claim};
  {
    std::string wire = WEFT_TRY(names_.encode(topic));
    const sync::LockGuard lock(mesh_mutex_);
    if (closed()) {
      return Error(Errc::closed, "the handle of topics was closed");
    }
    bool taken = owned_.contains(wire) || owned_.size() >= Roster::kOwnedMax;
    for (const auto& [instance, peer] : peers_) {
      for (const Roster::Owned& owned : peer.roster.owned) {
        taken |= owned.topic == wire;
      }
    }
    for (const auto& [id, claim] : claims_) {
      taken |= claim.topic == wire;
    }
    if (taken) {
      return kConflict;
    }
    const auto newest = epochs_.find(wire);
    control.number = std::max(newest == epochs_.end() ? 0 : newest->second + 1, first_epoch());
    if (control.number > kEpochMax) {
      return Error(Errc::conflict, "the epochs of this topic are used up");
    }
    control.id = next_id_++;
    control.texts = {wire};
    Claim claim;
    claim.topic = std::move(wire);
    claim.epoch = control.number;
    for (const auto& [instance, peer] : peers_) {
      claim.waiting.insert(instance);
    }
    claims_.emplace(control.id, std::move(claim));
  }
  const std::uint64_t id = control.id;
  if (const Result<void> said = say(std::move(control)); !said) {
    const sync::LockGuard lock(mesh_mutex_);
    claims_.erase(id);
    return said.error();
  }
  return id;
}

// To the peers that have not answered: they may have missed them. One that receives a claim again answers that it is
// outdated, and the caller claims again, unless the peer's first answer was on its way.
Result<void> Node::resend_claims() {
  std::vector<Control> again;
  {
    const sync::LockGuard lock(mesh_mutex_);
    for (const auto& [id, claim] : claims_) {
      for (const std::uint64_t to : claim.waiting) {
        again.push_back(
            {.kind = Control::Kind::claim, .to = to, .id = id, .number = claim.epoch, .texts = {claim.topic}});
      }
    }
  }
  for (Control& control : again) {
    WEFT_TRY(say(std::move(control)));
  }
  return {};
}

bool Node::claim_decided(std::uint64_t claim) const {
  const auto found = claims_.find(claim);
  return found == claims_.end() || found->second.lost || found->second.outdated || found->second.waiting.empty();
}

// would_block: another owner was found, which has gone; claim again, with a higher epoch.
Result<std::uint64_t> Node::end_claim(std::uint64_t claim, bool in_time) {
  std::uint64_t epoch = 0;
  {
    const sync::LockGuard lock(mesh_mutex_);
    const auto found = claims_.find(claim);
    if (found == claims_.end() || found->second.lost) {
      claims_.erase(claim);
      return kConflict;
    }
    if (found->second.outdated) {
      claims_.erase(found);
      return Errc::would_block;
    }
    if (!in_time) {
      claims_.erase(found);
      return Error(Errc::timed_out, "a peer has not answered to the claim");
    }
    const Claim won = std::move(found->second);
    claims_.erase(found);  // also when memory runs out below: the topic is not owned then, and may be claimed again
    epoch = won.epoch;
    note_epoch(won.topic, epoch);
    owned_[won.topic] = epoch;
    ++revision_;
  }
  announce();
  return epoch;
}

Result<void> Node::handle_claim(const Control& control) {
  if (control.texts.size() != 1 || control.texts.front().empty() || control.texts.front().size() > Roster::kNameMax ||
      !is_epoch(control.number)) {
    ++counters_.control_malformed;
    return {};
  }
  const std::string& topic = control.texts.front();
  std::uint64_t objection = 0;
  bool taken = false;
  {
    const sync::LockGuard lock(mesh_mutex_);
    if (const auto owned = owned_.find(topic); owned != owned_.end()) {
      objection = owned->second;
    }
    for (auto& [id, claim] : claims_) {
      if (claim.topic != topic) {
        continue;
      }
      if (beats(claim.epoch, instance_, control.number, control.from)) {
        objection = std::max(objection, claim.epoch);
      } else {
        claim.lost = true;
      }
    }
    taken = objection != 0;
    if (const auto known = epochs_.find(topic); known != epochs_.end() && known->second >= control.number) {
      objection = std::max(objection, known->second);  // the claimer did not know of an owner that is gone
    }
    note_epoch(topic, control.number);  // the claimer may own the topic and be gone before its roster comes
  }
  Control answer{.kind = Control::Kind::claim_answer, .to = control.from, .id = control.id, .number = objection};
  if (taken) {
    answer.texts = {kTaken};
  }
  mesh_changed();
  return say(std::move(answer));
}

void Node::handle_claim_answer(const Control& control) {
  if (control.number != 0 && !is_epoch(control.number)) {
    ++counters_.control_malformed;
    return;
  }
  {
    const sync::LockGuard lock(mesh_mutex_);
    const auto found = claims_.find(control.id);
    if (found == claims_.end()) {
      return;
    }
    // A claim that was sent again is answered twice, and the second answer has the claim's own epoch.
    const bool again = found->second.answered.contains(control.from);
    found->second.answered.insert(found->second.waiting.extract(control.from));  // allocates nothing
    const bool owned = control.texts.size() == 1 && control.texts.front() == kTaken;
    if (control.number != 0) {
      found->second.lost |= owned;
      found->second.outdated |= !again && !owned && control.number >= found->second.epoch;
      note_epoch(found->second.topic, control.number);
    }
  }
  mesh_changed();
}

void Node::note_owned(std::uint64_t from, const Peer& peer) {
  for (const Roster::Owned& theirs : peer.roster.owned) {
    note_epoch(theirs.topic, theirs.epoch);
    for (auto& [id, claim] : claims_) {
      claim.lost |= claim.topic == theirs.topic;  // it lives, and owns the topic
    }
    const auto ours = owned_.find(theirs.topic);
    if (ours == owned_.end()) {
      continue;
    }
    const bool theirs_stays = peer.parted ? beats(theirs.epoch, from, ours->second, instance_)
                                          : !beats(theirs.epoch, from, ours->second, instance_);
    if (theirs_stays) {
      owned_.erase(ours);
      ++revision_;
    }
  }
}

bool Node::owners_known(std::uint64_t ask) const {
  return std::all_of(links_.begin(), links_.end(), [&](const auto& each) {
    in_mesh();
    const Link& link = each.second;
    const auto peer = peers_.find(link.instance);
    return link.other_name || link.plain || link.failed ||
           (link.up && peer != peers_.end() && peer->second.our_ask >= ask);
  });
}

void Node::give_up_ownership(const std::string& wire) noexcept {
  {
    const sync::LockGuard lock(mesh_mutex_);
    if (owned_.erase(wire) == 0) {
      return;
    }
    ++revision_;
  }
  announce();
}

bool Node::owns(const std::string& wire, std::uint64_t epoch) const {
  const sync::LockGuard lock(mesh_mutex_);
  const auto found = owned_.find(wire);
  return found != owned_.end() && found->second == epoch;
}

bool Node::owns_now(std::string_view topic) const {
  const auto wire = names_.encode(topic);
  const sync::LockGuard lock(mesh_mutex_);
  return wire && owned_.contains(*wire);
}

bool Node::is_owned(std::string_view topic) const {
  const auto wire = names_.encode(topic);
  if (!wire) {
    return false;
  }
  const sync::LockGuard lock(mesh_mutex_);
  if (owned_.contains(*wire)) {
    return true;
  }
  return std::any_of(peers_.begin(), peers_.end(), [&](const auto& each) {
    const auto& owned = each.second.roster.owned;
    return std::any_of(owned.begin(), owned.end(), [&](const auto& one) { return one.topic == *wire; });
  });
}

Result<std::vector<std::string>> Node::owned_topics(std::string_view filter) const {
  const Filter wire = WEFT_TRY(names_.filter(filter));
  std::set<std::string> found;
  const sync::LockGuard lock(mesh_mutex_);
  const auto take = [&](const std::string& topic) {
    if (wire.matches(topic)) {
      found.insert(names_.decode(topic));
    }
  };
  for (const auto& [topic, epoch] : owned_) {
    take(topic);
  }
  for (const auto& [instance, peer] : peers_) {
    for (const Roster::Owned& owned : peer.roster.owned) {
      take(owned.topic);
    }
  }
  return std::vector<std::string>(found.begin(), found.end());
}

}  // namespace weft::topic
