// SPDX-License-Identifier: MIT
// Node: the messages between handles.
#include <algorithm>
#include <new>
#include <utility>

#include "weft/base/no_memory.h"
#include "weft/msg/message/monitor.h"
#include "weft/msg/socket/socket_core.h"
#include "weft/net/stream/endpoint.h"
#include "weft/sys/clock.h"
#include "weft/topic/node/node.h"

namespace weft::topic {

// A peer that misses the message is not an error: the socket counts it for statistics(), and the peer gets it again.
Result<void> Node::send_control(const Control& control) noexcept {
  const Result<bool> sent = try_send_control(control);
  if (!sent) {
    return sent.error();
  }
  if (!*sent) {
    (void)or_no_memory([&]() -> Result<void> {
      with_mesh([&](MeshState& mesh) { mesh.resend().note_missed(control); });
      return {};
    });
    resend_soon();
  }
  return {};
}

Result<bool> Node::try_send_control(const Control& control) noexcept {
  const std::uint64_t before = sockets_.control_missed();
  const Result<void> sent = or_no_memory([&]() -> Result<void> {
    const std::string bytes = WEFT_TRY(encode_control(control));
    if (gate_ != nullptr) {
      gate_->send_control(control.to, bytes);
    }
    const Result<void> tried = sockets_.in().try_send(as_bytes(bytes));
    return !tried && tried.error() != Errc::would_block ? tried : Result<void>();
  });
  if (!sent) {
    counters_.control_unsent += sent.error() == Errc::resource_exhausted ? 1 : 0;
    return sent.error();
  }
  return sockets_.control_missed() == before;
}

Result<void> Node::send_all(const std::vector<Control>& controls) noexcept {
  for (const Control& control : controls) {
    WEFT_TRY(send_control(control));
  }
  return {};
}

void Node::send_roster(std::uint64_t to) noexcept {
  const Result<void> sent =
      or_no_memory([&] { return send_control(with_mesh([&](const MeshState& mesh) { return mesh.roster(to); })); });
  if (!sent && sent.error() == Errc::resource_exhausted) {
    repair_soon();
  }
}

// A message of an XSUB goes to every peer; one that is for another handle costs its receiver a glance at it. A roster
// names the peers from which this handle has received messages. So one roster answers all that a turn of the loop
// brought: handles that come at once, or a peer that asks again and again, cost a roster a turn.
void Node::exchange_soon(std::uint64_t to, bool full) noexcept {
  with_mesh([&](MeshState& mesh) { mesh.request_exchange(to, full); });
  loop_.request(NodeLoop::kExchange);
}

void Node::exchange() noexcept {
  const auto exchange = with_mesh([](MeshState& mesh) { return mesh.take_exchange(); });
  if (!exchange) {
    return;
  }
  send_roster(exchange->to);
  const auto send_rest = [&]() -> Result<void> {
    WEFT_TRY(
        send_all(with_mesh([&](const MeshState& mesh) { return mesh.exchange_messages(exchange->to, sys::now()); })));
    return probes_.answer_all();
  };
  if (exchange->full && !or_no_memory(send_rest)) {
    repair_soon();  // exchanges all again
  }
}

// A handle of this process whose loop has not linked it, and a handle of another process that found this one but has
// sent nothing, come first.
Result<std::uint64_t> Node::ask_rosters() {
  if (closed()) {
    return Error(Errc::closed, "the handle of topics was closed");
  }
  WEFT_TRY(ProcessFleets::instance().link_all(*this));
  WEFT_TRY(read_directory(false));
  const Control request = with_mesh([](MeshState& mesh) { return mesh.next_ask(), mesh.roster_request(0); });
  const std::uint64_t ask = request.id;
  WEFT_TRY(send_control(request));
  return ask;
}

bool Node::take_control(Message& message) noexcept {
  const Bytes bytes = message.bytes();
  if (const std::uint64_t to = control_addressee(bytes); to != 0 && to != instance()) {
    return true;
  }
  const Result<void> taken = or_no_memory([&]() -> Result<void> {
    auto control = decode_control(bytes);
    if (!control) {
      ++counters_.control_malformed;
      return {};
    }
    if (!sockets_.is_proven(message)) {
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
  if (control.kind == Control::Kind::roster) {
    return handle_roster(std::move(control), from_host, via);
  }
  MeshState::Reaction reaction =
      with_mesh([&](MeshState& mesh) { return mesh.handle(control, via, msg::is_known, times()); });
  const bool count = reaction.count;
  WEFT_TRY(react(std::move(reaction)));
  if (!count) {
    return {};
  }
  return probes_.answer_new(control.from, control.id);
}

Result<void> Node::react(MeshState::Reaction&& reaction) {
  counters_.control_malformed += reaction.outcome == Outcome::malformed ? 1 : 0;
  counters_.control_refused += reaction.outcome == Outcome::refused ? 1 : 0;
  if (reaction.roster_to) {
    exchange_soon(*reaction.roster_to, false);
  }
  if (reaction.changed) {
    mesh_changed();
  }
  return reaction.send ? send_control(*reaction.send) : Result<void>();
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

// A roster named a peer.
Result<void> Node::learn(std::uint64_t instance, const std::string& endpoint, LinkConnections::Source from) {
  if (instance == this->instance() || endpoint.empty()) {
    return {};
  }
  if (endpoints_.is_possible(instance, endpoint)) {
    return links_.connect(endpoint, instance, from);
  }
  ++counters_.control_refused;
  return {};
}

Result<void> Node::handle_roster(Control&& control, std::string_view from_host, msg::PeerId via) {
  Result<RosterUpdate> update = read_roster(control, via, instance(), times().clock);
  if (!update) {
    return react({.outcome = Outcome::malformed});
  }
  update->roster.endpoint = seen_endpoint(update->roster.endpoint, from_host);
  const MeshState::Admission admission =
      with_mesh([&](const MeshState& mesh) { return mesh.admit_roster(*update, msg::is_known); });
  if (admission.outcome != Outcome::taken) {
    return react({.outcome = admission.outcome});
  }
  // Each entered peer is linked: a peer without a link would not receive messages of this handle.
  if (const auto learned =
          learn(update->from, update->roster.endpoint,
                admission.lost ? LinkConnections::Source::other_handle : LinkConnections::Source::the_handle);
      admission.lost || (!learned && learned.error() == Errc::resource_exhausted)) {
    return learned;
  }
  for (const Roster::Peer& other : update->known) {
    if (const auto learned = learn(other.instance, other.endpoint, LinkConnections::Source::other_handle);
        !learned && learned.error() == Errc::resource_exhausted) {
      return learned;
    }
  }
  return react(with_mesh([&](MeshState& mesh) { return mesh.enter_roster(*std::move(update), sys::now()); }));
}

// --- the end of a peer ---

// The roster of a handle ends with its connection.
void Node::watch_peer_connections() {
  sockets_.out().core()->monitor().set_sink([weak = weak_from_this()](const MonitorEvent& event) {
    if (event.kind != EventKind::disconnected) {
      return true;
    }
    const auto node = weak.lock();
    if (node == nullptr || node->closed()) {
      return true;
    }
    try {
      node->loop_.post([of = node.get(), peer = event.peer] {
        of->sweep_.restart(peer);
        of->control_.read();  // messages of the connection before its end
        sweep(of);
      });
    } catch (const std::bad_alloc&) {
      node->repair_soon();  // sweeps
      return false;
    }
    return true;
  });
}

void Node::sweep(void* self) {
  Node& node = *static_cast<Node*>(self);
  MeshState::Ended ended;
  (void)or_no_memory([&]() -> Result<void> {
    ended = node.with_mesh([](MeshState& mesh) { return mesh.end_connections(msg::is_known); });
    return {};
  });
  for (const std::uint64_t instance : ended.linked) {  // over our own connection to it
    node.exchange_soon(instance, true);
  }
  if (ended.forgot) {
    node.mesh_changed();
  }
  node.sweep_.schedule();
}

// --- leases ---

// A handle with a presence sends its roster three times in each lease; the other handles time the lease.
void Node::begin_presence() {
  if (options_.presence == Duration::zero()) {
    return;
  }
  loop_.post([this] { renew(this); });
}

void Node::renew(void* self) {
  Node& node = *static_cast<Node*>(self);
  node.lease_timer_.start();
  node.send_roster(0);
}

std::vector<NodeInfo> present_nodes(const MeshState& mesh) {
  std::vector<NodeInfo> all;
  mesh.peers().each_present(sys::now(), [&](std::uint64_t instance, const Peers::Peer& peer) {
    all.push_back({instance, peer.roster.node, peer.roster.endpoint, peer.lease});
  });
  return all;
}

std::vector<NodeInfo> known_nodes(const MeshState& mesh) {
  std::vector<NodeInfo> all;
  for (const auto& [instance, peer] : mesh.peers().all()) {
    all.push_back({instance, peer.roster.node, peer.roster.endpoint, peer.lease});
  }
  return all;
}

bool present_nodes_differ(const MeshState& mesh, const std::vector<NodeInfo>& known, std::vector<NodeInfo>& now) {
  now = present_nodes(mesh);  // in order of their instances
  std::vector<std::uint64_t> instances(known.size());
  std::transform(known.begin(), known.end(), instances.begin(), [](const NodeInfo& each) { return each.instance; });
  std::sort(instances.begin(), instances.end());
  return !std::equal(instances.begin(), instances.end(), now.begin(), now.end(),
                     [](std::uint64_t instance, const NodeInfo& each) { return instance == each.instance; });
}

}  // namespace weft::topic
