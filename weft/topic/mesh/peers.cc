// SPDX-License-Identifier: MIT
#include "weft/topic/mesh/peers.h"

#include <algorithm>
#include <utility>

#include "weft/topic/mesh/ownership.h"

namespace weft::topic {

const Peers::Peer* Peers::find(std::uint64_t instance) const noexcept {
  const auto found = peers_.find(instance);
  return found == peers_.end() ? nullptr : &found->second;
}

bool Peers::may_carry(PeerConnection via, std::uint64_t instance, bool proven,
                      const std::function<bool(PeerConnection)>& is_open) const {
  if (via == 0) {
    return true;
  }
  if (const auto carried = connections_.find(via); carried != connections_.end()) {
    return carried->second == instance;
  }
  const Peer* const peer = find(instance);
  return proven || peer == nullptr || peer->via == 0 || !is_open(peer->via);
}

Result<RosterUpdate> read_roster(const Control& control, PeerConnection via, std::uint64_t own_instance,
                                 std::uint64_t clock) {
  RosterUpdate update;
  update.roster = WEFT_TRY(parse_roster(control.texts));
  Roster& roster = update.roster;
  if (std::any_of(roster.owned.begin(), roster.owned.end(),
                  [&](const Roster::Owned& owned) { return !is_epoch(owned.epoch, clock); })) {
    return Error(Errc::protocol_error, "an epoch of a roster is out of bounds");
  }
  update.from = control.from;
  update.via = via;
  update.revision = control.id;
  update.lease = Duration(static_cast<Duration::rep>(std::min<std::uint64_t>(control.number, INT64_MAX)));
  for (const std::string& text : control.texts) {
    update.bytes += text.size();
  }
  const auto us = std::find_if(roster.heard.begin(), roster.heard.end(),
                               [&](const Roster::Heard& heard) { return heard.instance == own_instance; });
  update.answered = us != roster.heard.end();
  update.our_ask = update.answered ? us->ask : 0;
  update.parted = std::find(roster.parted.begin(), roster.parted.end(), own_instance) != roster.parted.end();
  update.known = std::exchange(roster.peers, {});
  roster.heard = {};
  roster.parted = {};
  return update;
}

Outcome Peers::admit(const RosterUpdate& update) const {
  if (gone_.contains(update.from)) {
    return Outcome::ignored;
  }
  const Peer* const known = find(update.from);
  const std::size_t before = known == nullptr ? 0 : known->bytes;
  const bool over = (known == nullptr && peers_.size() >= kPeersMax) ||
                    roster_bytes_ - before + update.bytes > kRosterBytesMax ||
                    (update.via != 0 && !connections_.contains(update.via) && connections_.size() >= kConnectionsMax);
  return over ? Outcome::refused : Outcome::taken;
}

bool Peers::enter(RosterUpdate&& update, Instant now) {
  if (update.via != 0) {
    connections_[update.via] = update.from;
  }
  const auto [place, fresh] = peers_.try_emplace(update.from);
  Peer& peer = place->second;
  peer.via = update.via;
  peer.their_ask = std::max(peer.their_ask, update.roster.ask);
  if (update.revision >= peer.revision) {
    peer.revision = update.revision;
    peer.parted = update.parted;
    peer.roster = std::move(update.roster);
    peer.lease = update.lease;
    roster_bytes_ += update.bytes - peer.bytes;
    peer.bytes = update.bytes;
  }
  peer.heard = now;
  peer.answered |= update.answered;
  peer.our_ask = std::max(peer.our_ask, update.our_ask);
  return fresh;
}

void Peers::note_ask(std::uint64_t from, std::uint64_t ask) noexcept {
  if (const auto peer = peers_.find(from); peer != peers_.end()) {
    peer->second.their_ask = std::max(peer->second.their_ask, ask);
  }
}

void Peers::forget(std::uint64_t instance) noexcept {
  if (const auto found = peers_.find(instance); found != peers_.end()) {
    roster_bytes_ -= found->second.bytes;
    peers_.erase(found);
  }
}

void Peers::gone(std::uint64_t instance) {
  lost_.note(instance);
  if (gone_.size() >= kGoneMax) {
    gone_.clear();  // handles that left long ago are in no roster any longer
  }
  gone_.insert(instance);
}

Instant Peers::next_expiry(Instant now) const noexcept {
  Instant next = kNever;
  for (const auto& [instance, peer] : peers_) {
    const Instant ends = deadline_after(peer.heard, peer.lease);
    if (peer.lease > Duration::zero() && ends > now) {
      next = std::min(next, ends);
    }
  }
  return next;
}

}  // namespace weft::topic
