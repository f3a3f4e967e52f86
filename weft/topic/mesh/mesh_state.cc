// SPDX-License-Identifier: MIT
#include "weft/topic/mesh/mesh_state.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace weft::topic {

MeshState::MeshState(Self self)
    : self_(std::move(self)),
      links_(self_.instance),
      ownership_(self_.instance),
      readiness_(self_.instance),
      requests_(self_.instance) {}

// --- control messages ---

MeshState::Reaction MeshState::handle(const Control& control, PeerConnection via, const IsOpen& is_open, Times times) {
  Reaction reaction;
  if (control.from == self_.instance) {
    reaction.outcome = Outcome::ignored;
    return reaction;
  }
  if (!peers_.may_carry(via, control.from, self_.secret, is_open)) {
    reaction.outcome = Outcome::refused;
    return reaction;
  }
  switch (control.kind) {
    case Control::Kind::roster_wanted:
      peers_.note_ask(control.from, control.id);
      reaction.roster_to = control.from;
      break;
    case Control::Kind::probe:
      reaction.outcome = readiness_.handle_probe(control, times.now);
      reaction.count = reaction.outcome == Outcome::taken;
      break;
    case Control::Kind::ready:
      // The late count of a lost handle would stay for ever. One that comes back is probed again.
      reaction.outcome = peers_.is_lost(control.from) ? Outcome::ignored : readiness_.handle_count(control);
      reaction.changed = reaction.outcome == Outcome::taken;
      break;
    case Control::Kind::claim:
      reaction.send = ownership_.handle_claim(control, times.clock);
      reaction.outcome = reaction.send ? Outcome::taken : Outcome::malformed;
      reaction.changed = reaction.send.has_value();
      break;
    case Control::Kind::claim_answer:
      reaction.outcome = ownership_.handle_answer(control, times.clock);
      reaction.changed = reaction.outcome == Outcome::taken;
      break;
    default: reaction.outcome = Outcome::ignored; break;
  }
  return reaction;
}

MeshState::Admission MeshState::admit_roster(RosterUpdate& update, const IsOpen& is_open) const {
  if (update.from == self_.instance) {
    return {Outcome::ignored, false};
  }
  if (!peers_.may_carry(update.via, update.from, self_.secret, is_open)) {
    return {Outcome::refused, false};
  }
  if (!self_.names_peers) {
    update.known.clear();
  }
  // A roster comes over the peer's connection, the end of a peer over our own one: neither waits for the other. So the
  // roster of a handle that was lost waits until a link to it stands again. Then the two exchange all.
  return {peers_.admit(update), peers_.is_lost(update.from)};
}

MeshState::Reaction MeshState::enter_roster(RosterUpdate&& update, Instant now) {
  const std::uint64_t from = update.from;
  Reaction reaction;
  const bool fresh = peers_.enter(std::move(update), now);
  if (fresh) {
    requests_.forget(from);  // those of an earlier connection of the peer, which may have ended before it had them
  }
  const Peers::Peer& peer = *peers_.find(from);
  const bool yielded = ownership_.handle_owned(from, peer, peers_.parted().contains(from));
  revision_ += yielded ? 1 : 0;
  if (yielded) {
    reaction.roster_to = 0;  // the others have it as an owner
  } else if (fresh) {
    reaction.roster_to = self_.names_peers ? 0 : from;  // the others learn of the new peer
  }
  reaction.changed = true;
  return reaction;
}

// --- messages to peers ---

Control MeshState::roster(std::uint64_t to) const {
  Roster own;
  own.node = self_.node;
  own.endpoint = self_.endpoint;
  own.ask = ask_;
  requests_.append_services(own.services);
  for (const auto& [topic, owned] : ownership_.owned()) {
    own.owned.push_back({topic, owned.epoch});
  }
  for (const auto& [instance, peer] : peers_.all()) {
    if (self_.names_peers && !peer.roster.endpoint.empty() && own.peers.size() < Roster::kPeersMax) {
      own.peers.push_back({instance, peer.roster.endpoint});
    }
    if (own.heard.size() < Roster::kPeersMax) {
      own.heard.push_back({instance, peer.their_ask});
    }
  }
  peers_.parted().each([&own](std::uint64_t instance) { own.parted.push_back(instance); });
  return {.kind = Control::Kind::roster,
          .from = self_.instance,
          .to = to,
          .id = revision_,
          .number = static_cast<std::uint64_t>(self_.presence.count()),
          .texts = roster_texts(own)};
}

Control MeshState::roster_request(std::uint64_t to) const {
  return {.kind = Control::Kind::roster_wanted, .from = self_.instance, .to = to, .id = ask_};
}

void MeshState::request_exchange(std::uint64_t to, bool full) noexcept {
  exchange_full_ |= full;
  exchange_to_ = !exchange_requested_ || exchange_to_ == to ? to : 0;
  exchange_requested_ = true;
}

std::optional<MeshState::Exchange> MeshState::take_exchange() noexcept {
  if (!std::exchange(exchange_requested_, false)) {
    return std::nullopt;
  }
  const Exchange exchange{exchange_to_, std::exchange(exchange_full_, false)};
  if (exchange.full) {
    readiness_.send_again();
  }
  return exchange;
}

std::vector<Control> MeshState::exchange_messages(std::uint64_t to, Instant now) const {
  std::vector<Control> messages{roster_request(to)};
  std::vector<Control> probes = readiness_.all(now);
  std::vector<Control> claims = ownership_.unanswered();
  std::move(probes.begin(), probes.end(), std::back_inserter(messages));
  std::move(claims.begin(), claims.end(), std::back_inserter(messages));
  return messages;
}

std::vector<Control> MeshState::resend_turn(std::size_t window, Instant now) {
  if (resend_.begins()) {
    readiness_.send_again();
  }
  std::vector<Control> owed{roster(0)};
  for (const std::uint64_t to : links_.unanswered(ask_, peers_)) {
    owed.push_back(roster_request(to));
  }
  std::vector<Control> probes = readiness_.unanswered(links_.linked(), now);
  std::vector<Control> claims = ownership_.unanswered();
  std::move(probes.begin(), probes.end(), std::back_inserter(owed));
  std::move(claims.begin(), claims.end(), std::back_inserter(owed));
  return resend_.turn(std::move(owed), window);
}

// --- connections ---

void MeshState::handle_leased(std::uint64_t instance, Instant now) {
  std::erase_if(leased_, [&](std::uint64_t each) {
    const Peers::Peer* const peer = peers_.find(each);
    const bool silent = peer == nullptr || deadline_after(peer->heard, peer->lease) <= now;
    if (silent) {
      forget(each);
    }
    return silent;
  });
  leased_.insert(instance);
}

void MeshState::handle_silent(std::uint64_t instance) noexcept {
  leased_.erase(instance);
  forget(instance);
}

void MeshState::forget(std::uint64_t instance) noexcept {
  forget_roster(instance);
  requests_.forget(instance);
}

void MeshState::forget_roster(std::uint64_t instance) noexcept {
  peers_.forget(instance);
  ownership_.forget(instance);
  readiness_.forget(instance);
}

MeshState::LinkChange MeshState::handle_link(const std::string& endpoint, bool up, Instant now) noexcept {
  const Links::Link* const link = links_.note_connection(endpoint, up, now);
  if (link == nullptr) {
    return {};
  }
  const std::uint64_t instance = link->instance;
  LinkChange change{true, instance, link->given, false};
  if (up) {
    peers_.found(instance);
  } else if (instance != 0) {
    peers_.lose(instance);
    peers_.part(instance);
    forget(instance);
    change.outdated = !link->given && self_.names_peers && now - link->down_since > Links::kLearnedKept;
  }
  return change;
}

Links::Begun MeshState::begin_link(const std::string& endpoint, std::uint64_t instance, bool given, Instant now) {
  if (instance != 0 && peers_.is_gone(instance)) {
    return {};
  }
  const Links::Begun begun = links_.begin(endpoint, instance, given, now);
  if (begun.replaced != 0) {
    forget(begun.replaced);
  }
  return begun;
}

Links::Begun MeshState::begin_named_link(const std::string& endpoint, std::uint64_t instance, Instant now) {
  return links_.find(endpoint) != nullptr ? Links::Begun() : begin_link(endpoint, instance, false, now);
}

bool MeshState::handle_inproc_up(const std::string& endpoint, std::uint64_t instance) noexcept {
  if (links_.find(endpoint) == nullptr) {
    return false;
  }
  peers_.found(instance);
  links_.note_inproc_up(endpoint);
  return true;
}

MeshState::Removed MeshState::remove_link(const std::string& endpoint, bool replaced) noexcept {
  const std::optional<Links::Link> link = links_.remove(endpoint);
  Removed removed{link.has_value(), false};
  if (link && link->instance != 0 && !link->other_name && !replaced) {
    forget(link->instance);
    removed.scouts = links_.free_other_names(link->instance);
  }
  return removed;
}

MeshState::Ended MeshState::end_connections(const IsOpen& is_open) {
  Ended ended;
  ended.linked.reserve(peers_.all().size());  // no loss below lacks memory
  peers_.end_connections(is_open, [&](std::uint64_t instance) {
    ended.forgot = true;
    peers_.part(instance);
    forget_roster(instance);
    if (links_.is_linked(instance)) {
      ended.linked.push_back(instance);  // its replies may still come over the link
    } else {
      requests_.forget(instance);
    }
  });
  return ended;
}

void MeshState::handle_gone(std::uint64_t instance) { peers_.gone(instance); }

void MeshState::handle_lost(std::uint64_t instance) noexcept {
  peers_.lose(instance);
  forget(instance);
}

// --- calls of the program ---

Result<Control> MeshState::begin_claim(std::string topic, std::uint64_t clock) {
  return ownership_.begin(std::move(topic), next_id(), peers_, clock, ask_);
}

Result<std::uint64_t> MeshState::end_claim(std::uint64_t claim, bool in_time) {
  const Result<std::uint64_t> epoch = ownership_.end(claim, in_time);
  revision_ += epoch ? 1 : 0;
  return epoch;
}

bool MeshState::give_up(const std::string& topic) noexcept {
  if (!ownership_.owned().contains(topic)) {
    return false;
  }
  ownership_.give_up(topic);
  ++revision_;
  return true;
}

Result<std::vector<Requests::Member>> MeshState::choose_members(std::string_view topic) {
  std::vector<Requests::Member> members = WEFT_TRY(requests_.choose(topic, peers_));
  if (members.empty()) {
    return services_known() ? Error(Errc::unreachable, "nobody serves this topic") : Error(Errc::would_block);
  }
  return members;
}

Result<void> MeshState::serve(std::uint64_t id, std::string topic, std::string group) {
  WEFT_TRY(requests_.serve(id, std::move(topic), std::move(group)));
  ++revision_;
  return {};
}

bool MeshState::stop_serving(std::uint64_t id) noexcept {
  const bool stopped = requests_.stop_serving(id);
  revision_ += stopped ? 1 : 0;
  return stopped;
}

bool MeshState::is_owned(const std::string& topic) const noexcept {
  bool found = false;
  each_owned([&](const std::string& owned) { found |= owned == topic; });
  return found;
}

}  // namespace weft::topic
