// SPDX-License-Identifier: MIT
// Node: the messages between handles.
#include <algorithm>
#include <new>
#include <utility>

#include "weft/msg/socket/socket_core.h"
#include "weft/net/endpoint.h"
#include "weft/sys/clock.h"
#include "weft/topic/node/node.h"

namespace weft::topic {

// A peer that misses the message is not an error: the socket counts it for statistics(). One that misses it for lack of
// memory, or because it does not read, gets it again.
Result<void> Node::say(Control control) noexcept {
  control.from = instance_;
  const Result<Missed> said = try_say(control);
  if (!said) {
    return said.error();
  }
  if (*said != Missed::nothing) {
    // mend() and retell() make up for all others: each has a state, which the next one has, too.
    if (control.kind == Control::Kind::claim_answer) {
      (void)msg::or_no_memory([&]() -> Result<void> {
        const sync::LockGuard lock(mesh_mutex_);
        if (unsaid_.size() < kUnsaidMax) {
          unsaid_.push_back({std::move(control), 0});
        }
        return {};
      });
    }
    again_soon(*said);
  }
  return {};
}

Result<Node::Missed> Node::try_say(const Control& control) noexcept {
  const auto missed = [this]() -> std::pair<std::uint64_t, std::uint64_t> {
    const auto numbers = in_.statistics();
    return {numbers ? numbers->dropped_no_memory : 0, numbers ? numbers->dropped_full : 0};
  };
  const auto before = missed();
  const Result<void> said = msg::or_no_memory([&]() -> Result<void> {
    const std::string bytes = WEFT_TRY(encode_control(control));
    const Result<void> sent = in_.try_send(as_bytes(bytes));
    return !sent && sent.error() != Errc::would_block ? sent : Result<void>();
  });
  if (!said) {
    counters_.control_unsent += said.error() == Errc::resource_exhausted ? 1 : 0;
    return said.error();
  }
  const auto after = missed();
  if (after.first != before.first) {
    return Missed::no_memory;
  }
  return after.second == before.second ? Missed::nothing : Missed::full;
}

// A peer that reads nothing for longer than the tries take asks for nothing either.
void Node::say_unsaid() {
  std::vector<Unsaid> all = with_mesh([this] {
    in_mesh();
    return std::exchange(unsaid_, {});
  });
  for (Unsaid& each : all) {
    const Result<Missed> said = try_say(each.control);
    if ((said && *said == Missed::nothing) || ++each.tries >= kUnsaidTries) {
      continue;
    }
    {
      const sync::LockGuard lock(mesh_mutex_);
      unsaid_.push_back(std::move(each));
    }
    again_soon(said ? *said : Missed::no_memory);
  }
}

Roster Node::roster() const {
  Roster own;
  own.node = node_name_;
  own.endpoint = endpoint_;
  own.ask = ask_;
  for (const Service& service : services_) {
    own.services.push_back({service.topic, service.group});
  }
  for (const auto& [topic, epoch] : owned_) {
    own.owned.push_back({topic, epoch});
  }
  if (fleet_.kind == Fleet::Kind::tcp) {
    for (const auto& [instance, peer] : peers_) {
      if (!peer.roster.endpoint.empty() && own.peers.size() < Roster::kPeersMax) {
        own.peers.push_back({instance, peer.roster.endpoint});
      }
    }
  }
  for (const auto& [instance, peer] : peers_) {
    if (own.heard.size() < Roster::kPeersMax) {
      own.heard.push_back({instance, peer.their_ask});
    }
  }
  parted_.each([&own](std::uint64_t instance) { own.parted.push_back(instance); });
  return own;
}

void Node::tell_roster(std::uint64_t to) noexcept {
  const Result<void> told = msg::or_no_memory([&] {
    Control control{.kind = Control::Kind::roster, .to = to};
    {
      const sync::LockGuard lock(mesh_mutex_);
      control.id = revision_;
      control.number = static_cast<std::uint64_t>(options_.presence.count());
      control.texts = roster_texts(roster());
    }
    return say(std::move(control));
  });
  if (!told && told.error() == Errc::resource_exhausted) {
    mend_soon();
  }
}

// A message of an XSUB goes to every peer; one that is for another handle costs its receiver a glance at it. A roster
// names the peers from which this handle has received words. So one roster answers all that a turn of the loop brought,
// and greets each new connection: handles that come at once, or a peer that asks again and again, cost a roster a turn.
bool Node::tell_soon(std::uint64_t to, bool greet) noexcept {
  {
    const sync::LockGuard lock(mesh_mutex_);
    greets_ |= greet;
    tells_to_ = !tells_ || tells_to_ == to ? to : 0;
    if (std::exchange(tells_, true)) {
      return true;
    }
  }
  try {
    loop_->post([weak = weak_from_this()] {
      if (const auto node = weak.lock(); node != nullptr && !node->closed()) {
        node->tell_now();
      }
    });
  } catch (const std::bad_alloc&) {
    {
      const sync::LockGuard lock(mesh_mutex_);
      tells_ = false;  // the next one sends it
    }
    mend_soon();
    return false;
  }
  return true;
}

void Node::tell_now() noexcept {
  bool greet = false;
  std::uint64_t to = 0;
  {
    const sync::LockGuard lock(mesh_mutex_);
    tells_ = false;
    to = tells_to_;
    greet = std::exchange(greets_, false);
    for (PeerProbe& probe : peer_probes_) {
      probe.told = greet ? ~std::uint64_t{0} : probe.told;
    }
  }
  tell_roster(to);
  const auto greeted = [&]() -> Result<void> {
    WEFT_TRY(want_rosters(to));
    WEFT_TRY(resend_probes());
    WEFT_TRY(resend_claims());
    return answer_probes();
  };
  if (greet && !msg::or_no_memory(greeted)) {
    mend_soon();  // greets again
  }
}

Result<void> Node::want_rosters(std::uint64_t to) noexcept {
  Control control{.kind = Control::Kind::roster_wanted, .to = to};
  {
    const sync::LockGuard lock(mesh_mutex_);
    control.id = ask_;
  }
  return say(std::move(control));
}
// A handle of this process whose loop has not linked it, and a handle of another process that found this one but has
// sent nothing, come first.
Result<std::uint64_t> Node::ask_rosters() {
  if (closed()) {
    return Error(Errc::closed, "the handle of topics was closed");
  }
  WEFT_TRY(ProcessFleets::instance().meet_all(*this));
  if (fleet_.kind == Fleet::Kind::local) {
    WEFT_TRY(read_directory(false));
  }
  const std::uint64_t ask = with_mesh([this] {
    in_mesh();
    return ++ask_;
  });
  WEFT_TRY(want_rosters(0));
  return ask;
}

void Node::Out::handle_event(const sys::PollEvent& /*event*/) { node.handle_out(); }

void Node::handle_out() {
  msg::SocketCore& out = *out_.core();
  unsigned count = 0;
  for (; count < kPumpMost && held_.empty(); ++count) {
    Message message;
    msg::Inbound part{&message, {}};
    if (!out.recv(part, msg::Timeout::none())) {
      break;
    }
    const Bytes bytes = message.bytes();
    if (!part.more && (bytes.empty() || bytes.front() <= 1)) {
      continue;  // a peer subscribed, or took it back
    }
    if (!take_control(message)) {
      hold(std::move(message));  // and the messages after it wait
      break;
    }
  }
  if (async()) {
    room_.pulse();
  }
  if (out.closed() || out.terminated()) {
    loop_->unwatch(std::exchange(out_watch_, 0));
  } else if (count == kPumpMost) {
    try {
      loop_->post([weak = weak_from_this()] {
        if (const auto node = weak.lock(); node != nullptr && !node->closed()) {
          node->handle_out();
        }
      });
    } catch (const std::bad_alloc&) {
      mend_soon();  // reads on
    }
  }
}

bool Node::take_control(Message& message) noexcept {
  const Bytes bytes = message.bytes();
  if (const std::uint64_t to = control_addressee(bytes); to != 0 && to != instance_) {
    return true;
  }
  const Result<void> taken = msg::or_no_memory([&]() -> Result<void> {
    auto control = decode_control(bytes);
    if (!control) {
      ++counters_.control_malformed;
      return {};
    }
    if (!is_proven(message)) {
      ++counters_.control_refused;
      return {};
    }
    const char* const host = control->kind == Control::Kind::roster ? message.peer_property("Peer-Address") : nullptr;
    return handle_control(*std::move(control), host == nullptr ? std::string_view() : std::string_view(host),
                          message.origin().peer);
  });
  return taken || taken.error() != Errc::resource_exhausted;
}

Result<void> Node::handle_control(Control&& control, std::string_view from_host, msg::PeerId via) {
  if (control.from == instance_) {
    return {};
  }
  if (!with_mesh([&] {
        in_mesh();
        return speaks_for(via, control.from);
      })) {
    ++counters_.control_refused;
    return {};
  }
  switch (control.kind) {
    case Control::Kind::roster: return handle_roster(std::move(control), from_host, via);
    case Control::Kind::roster_wanted: {
      const sync::LockGuard lock(mesh_mutex_);
      if (const auto peer = peers_.find(control.from); peer != peers_.end()) {
        peer->second.their_ask = std::max(peer->second.their_ask, control.id);
      }
    }
      (void)tell_soon(control.from, false);
      return {};
    case Control::Kind::probe: return handle_probe(control);
    case Control::Kind::ready: handle_ready(control); return {};
    case Control::Kind::claim: return handle_claim(control);
    case Control::Kind::claim_answer: handle_claim_answer(control); return {};
    default: return {};
  }
}

namespace {

// A handle that listens on every interface does not know its address; its peers see it.
std::string seen_endpoint(const std::string& endpoint, std::string_view from_host) {
  const auto parsed = net::parse_endpoint(endpoint, true);
  const bool is_tcp =
      parsed && (parsed->transport == net::Transport::tcp || parsed->transport == net::Transport::tls_tcp);
  if (!is_tcp || from_host.empty()) {
    return endpoint;
  }
  if (!parsed->wildcard && parsed->host != "0.0.0.0" && parsed->host != "::") {
    return endpoint;
  }
  net::Endpoint seen = *parsed;
  seen.wildcard = false;
  seen.host = from_host;
  return seen.text();
}

}  // namespace

// Checks the endpoints that a peer sends for itself or for another one: a peer names endpoints of its fleet's kind
// only.
bool Node::is_of_fleet(std::uint64_t instance, const std::string& endpoint) const {
  if (fleet_.kind == Fleet::Kind::local) {
    return directory_->instance_at(endpoint) == instance;
  }
  const auto parsed = net::parse_endpoint(endpoint, false);
  const net::Transport transport = fleet_.tls ? net::Transport::tls_tcp : net::Transport::tcp;
  return fleet_.kind == Fleet::Kind::tcp && parsed && parsed->transport == transport;
}

// A roster named a peer.
Result<void> Node::learn(std::uint64_t instance, const std::string& endpoint) {
  if (instance == instance_ || endpoint.empty()) {
    return {};
  }
  if (is_of_fleet(instance, endpoint)) {
    return connect_link(endpoint, instance, false);
  }
  ++counters_.control_refused;
  return {};
}

Result<void> Node::handle_roster(Control&& control, std::string_view from_host, msg::PeerId via) {
  auto parsed = parse_roster(control.texts);
  if (!parsed || std::any_of(parsed->owned.begin(), parsed->owned.end(),
                             [](const Roster::Owned& owned) { return !is_epoch(owned.epoch); })) {
    ++counters_.control_malformed;
    return {};
  }
  std::size_t bytes = 0;
  for (const std::string& text : control.texts) {
    bytes += text.size();
  }
  parsed->endpoint = seen_endpoint(parsed->endpoint, from_host);
  const auto us = std::find_if(parsed->heard.begin(), parsed->heard.end(),
                               [&](const Roster::Heard& heard) { return heard.instance == instance_; });
  const bool answered = us != parsed->heard.end();
  const std::uint64_t our_ask = answered ? us->ask : 0;
  const std::uint64_t their_ask = parsed->ask;
  const std::string endpoint = parsed->endpoint;
  std::vector<Roster::Peer> others = std::exchange(parsed->peers, {});
  if (fleet_.kind != Fleet::Kind::tcp) {
    others.clear();
  }
  parsed->heard = {};
  const std::vector<std::uint64_t> apart = std::exchange(parsed->parted, {});
  const bool parted_from_us = std::find(apart.begin(), apart.end(), instance_) != apart.end();
  bool fresh = false;
  bool lost = false;
  {
    const sync::LockGuard lock(mesh_mutex_);
    if (gone_.contains(control.from)) {
      return {};
    }
    lost = lost_.contains(control.from);
    const auto known = peers_.find(control.from);
    const std::size_t before = known == peers_.end() ? 0 : known->second.bytes;
    if ((known == peers_.end() && peers_.size() >= kPeersMax) || roster_bytes_ - before + bytes > kRosterBytesMax ||
        (via != 0 && !voices_.contains(via) && voices_.size() >= kVoicesMax)) {
      ++counters_.control_refused;
      return {};
    }
  }
  // A roster comes over the peer's connection, the end of a peer over our own one: neither waits for the other. So the
  // roster of a handle that was lost waits until a connection to it stands again; that greets it, and it answers.
  // And whoever is entered is linked: a peer without a link would not hear this handle.
  if (const auto learned = learn(control.from, endpoint);
      lost || (!learned && learned.error() == Errc::resource_exhausted)) {
    return learned;
  }
  for (const Roster::Peer& other : others) {
    if (const auto learned = learn(other.instance, other.endpoint);
        !learned && learned.error() == Errc::resource_exhausted) {
      return learned;
    }
  }
  {
    const sync::LockGuard lock(mesh_mutex_);
    const auto known = peers_.find(control.from);
    fresh = known == peers_.end();
    const std::size_t before = fresh ? 0 : known->second.bytes;
    if (via != 0) {
      voices_[via] = control.from;
    }
    Peer& peer = fresh ? peers_[control.from] : known->second;
    peer.via = via;
    peer.parted = parted_from_us && parted_.contains(control.from);
    if (control.id >= peer.revision) {
      peer.revision = control.id;
      peer.roster = *std::move(parsed);
      peer.lease = Duration(static_cast<Duration::rep>(std::min<std::uint64_t>(control.number, INT64_MAX)));
      roster_bytes_ += bytes - before;
      peer.bytes = bytes;
    }
    peer.heard = sys::now();
    peer.answered |= answered;
    peer.our_ask = std::max(peer.our_ask, our_ask);
    peer.their_ask = std::max(peer.their_ask, their_ask);
    note_owned(control.from, peer);
  }
  if (fresh) {
    // Of a tcp fleet the others hear of the new one.
    (void)tell_soon(fleet_.kind == Fleet::Kind::tcp ? 0 : control.from, false);
  }
  mesh_changed();
  return {};
}

}  // namespace weft::topic
