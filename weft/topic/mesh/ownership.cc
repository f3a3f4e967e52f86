// SPDX-License-Identifier: MIT
#include "weft/topic/mesh/ownership.h"

#include <algorithm>
#include <utility>

namespace weft::topic {

namespace {

constexpr const char* kTaken = "taken";  // of a claim_answer: the sender owns the topic, or its claim is better
constexpr Error kConflict(Errc::conflict, "somebody alive owns this topic");

bool beats(std::uint64_t epoch, std::uint64_t instance, std::uint64_t other_epoch, std::uint64_t other_instance) {
  return epoch != other_epoch ? epoch > other_epoch : instance < other_instance;
}

}  // namespace

bool is_epoch(std::uint64_t epoch, std::uint64_t clock) noexcept { return epoch != 0 && epoch <= clock + kEpochAhead; }

void Ownership::note_epoch(const std::string& topic, std::uint64_t epoch) {
  if (epochs_.size() >= kEpochsMax && !epochs_.contains(topic)) {
    epochs_.erase(epochs_.begin());
  }
  std::uint64_t& newest = epochs_[topic];
  newest = std::max(newest, epoch);
}

std::uint64_t Ownership::newest_epoch(const std::string& topic) const noexcept {
  const auto newest = epochs_.find(topic);
  return newest == epochs_.end() ? 0 : newest->second;
}

Result<Control> Ownership::begin(std::string topic, std::uint64_t id, const Peers& peers, std::uint64_t clock,
                                 std::uint64_t ask) {
  const auto has = [&](const auto& owned) { return owned.topic == topic; };
  const bool of_peer = std::any_of(peers.all().begin(), peers.all().end(), [&](const auto& each) {
    const auto& owned = each.second.roster.owned;
    return std::any_of(owned.begin(), owned.end(), has);
  });
  const bool claimed =
      std::any_of(claims_.begin(), claims_.end(), [&](const auto& each) { return each.second.topic == topic; });
  if (of_peer || claimed || owned_.contains(topic) || owned_.size() + claims_.size() >= Roster::kOwnedMax) {
    return kConflict;
  }
  // The epoch of an owner without a known predecessor. An unknown one may have existed nevertheless, so the time orders
  // them as far as the clocks of the hosts agree.
  const std::uint64_t epoch = std::max(newest_epoch(topic) + 1, clock);
  if (epoch > kEpochMax) {
    return Error(Errc::conflict, "the epochs of this topic are used up");
  }
  Control control{.kind = Control::Kind::claim, .from = own_instance_, .id = id, .number = epoch, .texts = {topic}};
  Claim claim;
  claim.topic = std::move(topic);
  claim.epoch = epoch;
  claim.ask = ask;
  for (const auto& [instance, peer] : peers.all()) {
    claim.waiting.insert(instance);
  }
  claims_.emplace(id, std::move(claim));
  return control;
}

std::vector<Control> Ownership::unanswered() const {
  std::vector<Control> again;
  for (const auto& [id, claim] : claims_) {
    for (const std::uint64_t to : claim.waiting) {
      again.push_back({.kind = Control::Kind::claim,
                       .from = own_instance_,
                       .to = to,
                       .id = id,
                       .number = claim.epoch,
                       .texts = {claim.topic}});
    }
  }
  return again;
}

bool Ownership::decided(std::uint64_t id) const noexcept {
  const auto found = claims_.find(id);
  return found == claims_.end() || found->second.lost || found->second.outdated || found->second.waiting.empty();
}

Result<std::uint64_t> Ownership::end(std::uint64_t id, bool in_time) {
  const auto found = claims_.find(id);
  if (found == claims_.end()) {
    return kConflict;
  }
  const Claim claim = std::move(found->second);
  claims_.erase(found);
  if (claim.lost) {
    return kConflict;
  }
  if (claim.outdated) {
    return Errc::would_block;
  }
  if (!in_time) {
    return Error(Errc::timed_out, "a peer has not answered to the claim");
  }
  note_epoch(claim.topic, claim.epoch);
  owned_[claim.topic] = {claim.epoch, claim.ask};
  return claim.epoch;
}

std::optional<Control> Ownership::handle_claim(const Control& claim, std::uint64_t clock) {
  if (claim.texts.size() != 1 || claim.texts.front().empty() || claim.texts.front().size() > Roster::kNameMax ||
      !is_epoch(claim.number, clock)) {
    return std::nullopt;
  }
  const std::string& topic = claim.texts.front();
  std::uint64_t objection = 0;
  if (const auto owned = owned_.find(topic); owned != owned_.end()) {
    objection = owned->second.epoch;
  }
  for (auto& [id, ours] : claims_) {
    if (ours.topic != topic) {
      continue;
    }
    if (beats(ours.epoch, own_instance_, claim.number, claim.from)) {
      objection = std::max(objection, ours.epoch);
    } else {
      ours.lost = true;
    }
  }
  const bool taken = objection != 0;
  if (const std::uint64_t known = newest_epoch(topic); known >= claim.number) {
    objection = std::max(objection, known);  // the peer did not know of an owner that is gone
  }
  note_epoch(topic, claim.number);  // the peer may own the topic and be gone before its roster comes
  Control answer{.kind = Control::Kind::claim_answer,
                 .from = own_instance_,
                 .to = claim.from,
                 .id = claim.id,
                 .number = objection};
  if (taken) {
    answer.texts = {kTaken};
  }
  return answer;
}

Outcome Ownership::handle_answer(const Control& answer, std::uint64_t clock) {
  if (answer.number != 0 && !is_epoch(answer.number, clock)) {
    return Outcome::malformed;
  }
  const auto found = claims_.find(answer.id);
  if (found == claims_.end()) {
    return Outcome::ignored;
  }
  Claim& claim = found->second;
  // A claim that was sent again is answered twice, and the second answer has the claim's own epoch.
  const bool again = claim.answered.contains(answer.from);
  claim.answered.insert(claim.waiting.extract(answer.from));  // allocates nothing
  const bool owned = answer.texts.size() == 1 && answer.texts.front() == kTaken;
  if (answer.number != 0) {
    claim.lost |= owned;
    claim.outdated |= !again && !owned && answer.number >= claim.epoch;
    note_epoch(claim.topic, answer.number);
  }
  return Outcome::taken;
}

bool Ownership::handle_owned(std::uint64_t from, const Peers::Peer& peer, bool we_noted) {
  bool yielded = false;
  for (const Roster::Owned& theirs : peer.roster.owned) {
    note_epoch(theirs.topic, theirs.epoch);
    for (auto& [id, claim] : claims_) {
      claim.lost |= claim.topic == theirs.topic;  // its owner lives
    }
    const auto ours = owned_.find(theirs.topic);
    if (ours == owned_.end() || peer.our_ask < ours->second.ask) {
      continue;  // a roster of before our claim may be outdated; the peer's answer to our request is on its way
    }
    const bool theirs_is_later = beats(theirs.epoch, from, ours->second.epoch, own_instance_);
    if (theirs_is_later ? peer.parted : !we_noted) {
      give_up(theirs.topic);
      yielded = true;
    }
  }
  return yielded;
}

void Ownership::forget(std::uint64_t instance) noexcept {
  for (auto& [id, claim] : claims_) {
    claim.waiting.erase(instance);
  }
}

}  // namespace weft::topic
