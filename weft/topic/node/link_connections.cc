// SPDX-License-Identifier: MIT
#include "weft/topic/node/link_connections.h"

#include <new>

#include "weft/base/no_memory.h"
#include "weft/msg/socket/socket_core.h"
#include "weft/sys/clock.h"

namespace weft::topic {

LinkConnections::LinkConnections(NodeLoop& loop, SharedMesh& mesh, const FleetEndpoints& endpoints,
                                 NodeSockets& sockets, Pump& pump, std::function<void()> changed)
    : loop_(loop),
      mesh_(mesh),
      endpoints_(endpoints),
      sockets_(sockets),
      pump_(pump),
      changed_(std::move(changed)),
      scouts_(loop, sockets,
              [this](const std::string& endpoint, std::uint64_t instance) { handle_scouted(endpoint, instance); }) {}

// --- events of the XSUB ---

// The monitor calls on the I/O thread; the loop does the work.
void LinkConnections::watch() {
  sockets_.in().core()->monitor().set_sink([weak = loop_.owner(), this](const MonitorEvent& event) {
    switch (event.kind) {
      case EventKind::handshake_succeeded:
      case EventKind::disconnected:
      case EventKind::connect_failed:
      case EventKind::handshake_failed:
      case EventKind::pipe_statistics: break;
      default: return true;
    }
    const auto owner = weak.lock();
    return owner == nullptr || loop_.closed() || take_event(event);
  });
}

void LinkConnections::unwatch() noexcept {
  if (sockets_.in().core() != nullptr) {
    sockets_.in().core()->monitor().set_sink({});
  }
}

bool LinkConnections::take_event(const MonitorEvent& event) noexcept {
  const bool known = !event.endpoint.empty();  // otherwise the monitor had no memory for it
  const Result<void> taken = or_no_memory([&]() -> Result<void> {
    if (known && event.kind != EventKind::pipe_statistics) {
      loop_.post([this, endpoint = event.endpoint, kind = event.kind] { handle_link_or_repair(endpoint, kind); });
    } else if (known && report_ != nullptr) {
      report_->push_back(event.endpoint);  // on the loop's thread, which asked for it
    }
    return {};
  });
  if (!known || !taken) {
    unsure_.store(true);
    repair_soon();
    return false;
  }
  return true;
}

void LinkConnections::handle_link_or_repair(const std::string& endpoint, EventKind kind) noexcept {
  try {
    handle_link(endpoint, kind);
  } catch (const std::bad_alloc&) {
    repair_soon();
  }
}

void LinkConnections::handle_link(const std::string& endpoint, EventKind kind) {
  const bool up = kind == EventKind::handshake_succeeded;
  if (kind == EventKind::disconnected) {
    pump_.read_all();  // the last replies of a handle that is gone
  }
  const MeshState::LinkChange change =
      mesh_.with([&](MeshState& mesh) { return mesh.handle_link(endpoint, up, sys::now()); });
  if (!change.known) {
    return;
  }
  if (up) {
    exchange_soon(change.instance);
  } else if (change.given) {
    scout_again(endpoint);
  }
  if (change.outdated || (!up && !change.given && endpoints_.has_ended(change.instance))) {
    drop(endpoint);
  }
  changed_();
}

void LinkConnections::exchange_soon(std::uint64_t to) noexcept {
  mesh_.with([&](MeshState& mesh) { mesh.request_exchange(to, true); });
  loop_.request(NodeLoop::kExchange);
}

// --- links ---

Result<void> LinkConnections::connect(const std::string& endpoint, std::uint64_t instance, Source from) {
  const sync::LockGuard lock(mutex_);
  return begin(endpoint, instance, from);
}

void LinkConnections::drop(const std::string& endpoint) noexcept {
  const sync::LockGuard lock(mutex_);
  end_link(endpoint, false);
}

Result<void> LinkConnections::begin(const std::string& endpoint, std::uint64_t instance, Source from) {
  // A fleet that is full of peers that only rosters name, and that do not answer, has room for one that connects.
  const std::string yields = mesh_.with([&](const MeshState& mesh) {
    const std::string* const yielding = mesh.links().yielding(endpoint);
    return yielding == nullptr ? std::string() : *yielding;
  });
  if (!yields.empty()) {
    end_link(yields, false);
  }
  const Links::Begun begun = mesh_.with([&](MeshState& mesh) {
    return from == Source::other_handle ? mesh.begin_named_link(endpoint, instance, sys::now())
                                        : mesh.begin_link(endpoint, instance, from == Source::given, sys::now());
  });
  if (begun.replaced != 0) {
    changed_();
  }
  if (begun.stands) {
    exchange_soon(instance);
  }
  if (begun.step == Links::Step::nothing) {
    return {};
  }
  if (begun.step == Links::Step::disconnect) {
    pump_.read_all();
    (void)sockets_.in().disconnect(endpoint);
    return {};
  }
  if (begun.step == Links::Step::scout) {
    loop_.request(NodeLoop::kScouts);
    return {};
  }
  const Result<void> made = or_no_memory([&] { return sockets_.in().connect(endpoint); });
  if (!made) {
    mesh_.with([&](MeshState& mesh) { mesh.abandon_link(endpoint); });
  }
  return made;
}

void LinkConnections::end_link(const std::string& endpoint, bool replaced) noexcept {
  const MeshState::Removed removed = mesh_.with([&](MeshState& mesh) { return mesh.remove_link(endpoint, replaced); });
  if (!removed.known) {
    return;
  }
  pump_.read_all();
  (void)sockets_.in().disconnect(endpoint);
  loop_.request(NodeLoop::kScouts);
  changed_();
}

// --- handles of this process ---

// Each connection that fails is made by the next call: a link that stands may lack the one to the inner socket.
Result<void> LinkConnections::link_inproc(std::uint64_t instance, const std::string& inproc_endpoint, bool inner) {
  const sync::LockGuard lock(mutex_);
  bool stands = false;
  std::string instead;  // of this connection to the same handle
  mesh_.with([&](const MeshState& mesh) {
    const Links::InprocLink known = mesh.links().inproc_link(instance, inproc_endpoint);
    stands = known.stands;
    inner = inner && !known.inner;
    instead = known.other == nullptr ? "" : *known.other;
  });
  if (!stands && !instead.empty()) {
    end_link(instead, true);
  }
  if (!stands) {
    WEFT_TRY(begin(inproc_endpoint, instance, Source::the_handle));
    bool up = false;
    bool refused = false;
    mesh_.with([&](MeshState& mesh) {
      up = mesh.handle_inproc_up(inproc_endpoint, instance);
      refused = mesh.peers().is_gone(instance) || mesh.links().is_full();
    });
    if (!up) {
      return refused ? Result<void>() : msg::kNoMemoryToSend;
    }
  }
  if (inner) {
    WEFT_TRY(sockets_.in().connect(FleetEndpoints::inner_of(inproc_endpoint)));
    mesh_.with([&](MeshState& mesh) { mesh.links().note_inner(inproc_endpoint); });  // the link lock keeps the link
  }
  return {};
}

void LinkConnections::unlink_inproc(std::uint64_t instance, const std::string& inproc_endpoint) noexcept {
  pump_.read_all();
  (void)or_no_memory([&]() -> Result<void> {
    mesh_.with([&](MeshState& mesh) { mesh.handle_gone(instance); });
    return {};
  });
  (void)or_no_memory([&] { return sockets_.in().disconnect(FleetEndpoints::inner_of(inproc_endpoint)); });
  drop(inproc_endpoint);
}

void LinkConnections::abandon_inproc(std::uint64_t instance, const std::string& inproc_endpoint) noexcept {
  const sync::LockGuard lock(mutex_);
  mesh_.with([&](MeshState& mesh) {
    mesh.abandon_link(inproc_endpoint);
    mesh.handle_lost(instance);
  });
  changed_();
}

// --- loop ---

// The socket returns its present connections.
Result<void> LinkConnections::compare() {
  if (!unsure_.exchange(false)) {
    return {};
  }
  std::vector<std::string> stand;
  report_ = &stand;
  const Result<void> reported = sockets_.in().core()->report_pipes();
  report_ = nullptr;
  if ((!reported && reported.error() != Errc::would_block) || unsure_.load()) {
    unsure_.store(true);
    return reported || reported.error() == Errc::would_block ? Result<void>(msg::kNoMemoryToSend) : reported;
  }
  const auto changes = mesh_.with([&](const MeshState& mesh) { return mesh.links().differing(stand); });
  for (const auto& [endpoint, up] : changes) {
    handle_link_or_repair(endpoint, up ? EventKind::handshake_succeeded : EventKind::disconnected);
  }
  return {};
}

Result<void> LinkConnections::reconcile_scouts() {
  return scouts_.reconcile(mesh_.with([](const MeshState& mesh) { return mesh.links().unconnected(); }));
}

void LinkConnections::scout_failed() {
  for (const std::string& endpoint : mesh_.with([](const MeshState& mesh) { return mesh.links().failed_given(); })) {
    scout_again(endpoint);
  }
}

void LinkConnections::handle_scouted(const std::string& endpoint, std::uint64_t instance) noexcept {
  const sync::LockGuard lock(mutex_);
  const bool connect = mesh_.with([&](MeshState& mesh) { return mesh.links().note_scouted(endpoint, instance); });
  if (const auto connected = connect ? sockets_.in().connect(endpoint) : Result<void>(); !connected) {
    mesh_.with([&](MeshState& mesh) { mesh.links().note_unconnected(endpoint); });
    repair_soon();  // another scout
  }
  changed_();
}

void LinkConnections::scout_again(const std::string& endpoint) {
  const sync::LockGuard lock(mutex_);
  if (mesh_.with([&](MeshState& mesh) { return mesh.links().scout_again(endpoint); }).empty()) {
    return;
  }
  (void)sockets_.in().disconnect(endpoint);
  loop_.request(NodeLoop::kScouts);
}

}  // namespace weft::topic
