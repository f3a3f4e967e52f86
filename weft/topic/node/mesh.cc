// SPDX-License-Identifier: MIT
// Node: the other handles of the fleet.
#include <algorithm>
#include <new>
#include <utility>

#include "weft/base/no_memory.h"
#include "weft/msg/message/monitor.h"
#include "weft/msg/socket/socket_core.h"
#include "weft/net/endpoint.h"
#include "weft/sync/condition.h"
#include "weft/sys/clock.h"
#include "weft/topic/node/node.h"

namespace weft::topic {

// --- connections ---

// The monitor calls on the I/O thread; the loop does the work.
void Node::watch_links() {
  sockets_.in().core()->monitor().set_sink([weak = weak_from_this()](const MonitorEvent& event) {
    switch (event.kind) {
      case EventKind::handshake_succeeded:
      case EventKind::disconnected:
      case EventKind::connect_failed:
      case EventKind::handshake_failed:
      case EventKind::pipe_statistics: break;
      default: return true;
    }
    const auto node = weak.lock();
    if (node == nullptr || node->closed()) {
      return true;
    }
    if (event.endpoint.empty()) {  // the monitor had no memory for it
      node->links_unsure_.store(true);
      node->repair_soon();
      return false;
    }
    try {
      if (event.kind == EventKind::pipe_statistics) {
        if (node->report_ != nullptr) {
          node->report_->push_back(event.endpoint);  // on the loop's thread, which asked for it
        }
        return true;
      }
      node->loop_.post([to = node.get(), endpoint = event.endpoint, kind = event.kind] {
        to->handle_link_or_repair(endpoint, kind);
      });
    } catch (const std::bad_alloc&) {
      node->links_unsure_.store(true);
      node->repair_soon();
      return false;
    }
    return true;
  });
}

void Node::handle_link_or_repair(const std::string& endpoint, EventKind kind) noexcept {
  try {
    handle_link(endpoint, kind);
  } catch (const std::bad_alloc&) {
    repair_soon();
  }
}

void Node::handle_link(const std::string& endpoint, EventKind kind) {
  const bool up = kind == EventKind::handshake_succeeded;
  if (kind == EventKind::disconnected) {
    pump_.read_all();  // the last replies of a handle that is gone
  }
  const MeshState::LinkChange change =
      with_mesh([&](MeshState& mesh) { return mesh.handle_link(endpoint, up, sys::now()); });
  if (!change.known) {
    return;
  }
  bool drop = change.outdated;
  if (up) {
    exchange_soon(change.instance, true);
  } else if (change.given) {
    scout_again(endpoint);
  } else if (endpoints_.has_ended(change.instance)) {
    drop = true;
  }
  if (drop) {
    drop_link(endpoint);
  }
  mesh_changed();
}

Result<void> Node::connect_link(const std::string& endpoint, std::uint64_t instance, LinkSource from) {
  const sync::LockGuard link_lock(link_mutex_);
  return begin_link(endpoint, instance, from);
}

Result<void> Node::begin_link(const std::string& endpoint, std::uint64_t instance, LinkSource from) {
  // A fleet that is full of peers that only rosters name, and that do not answer, has room for one that connects.
  const std::string yields = with_mesh([&](const MeshState& mesh) {
    const std::string* const yielding = mesh.links().yielding(endpoint);
    return yielding == nullptr ? std::string() : *yielding;
  });
  if (!yields.empty()) {
    end_link(yields, false);
  }
  const Links::Begun begun = with_mesh([&](MeshState& mesh) {
    return from == LinkSource::other_handle
               ? mesh.begin_named_link(endpoint, instance, sys::now())
               : mesh.begin_link(endpoint, instance, from == LinkSource::given, sys::now());
  });
  if (begun.replaced != 0) {
    mesh_changed();
  }
  if (begun.stands) {
    exchange_soon(instance, true);
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
    with_mesh([&](MeshState& mesh) { mesh.abandon_link(endpoint); });
  }
  return made;
}

void Node::drop_link(const std::string& endpoint) noexcept {
  const sync::LockGuard link_lock(link_mutex_);
  end_link(endpoint, false);
}

void Node::end_link(const std::string& endpoint, bool replaced) noexcept {
  const MeshState::Removed removed = with_mesh([&](MeshState& mesh) { return mesh.remove_link(endpoint, replaced); });
  if (!removed.known) {
    return;
  }
  pump_.read_all();
  (void)sockets_.in().disconnect(endpoint);
  loop_.request(NodeLoop::kScouts);
  mesh_changed();
}

Result<void> Node::handle_peer_opened(std::uint64_t instance, const std::string& inproc_endpoint, bool inner) {
  if (!async()) {
    WEFT_TRY(link_inproc(instance, inproc_endpoint, inner));
    exchange_soon(instance, true);
    return {};
  }
  loop_.post([this, instance, inproc_endpoint, inner] {
    if (or_no_memory([&] { return link_inproc(instance, inproc_endpoint, inner); })) {
      exchange_soon(instance, true);
    } else {
      repair_soon();  // links every handle that has joined
    }
  });
  return {};
}

void Node::handle_peer_closed(std::uint64_t instance, const std::string& inproc_endpoint) noexcept {
  if (!async()) {
    unlink_inproc(instance, inproc_endpoint);
    return;
  }
  try {
    loop_.post([this, instance, inproc_endpoint] { unlink_inproc(instance, inproc_endpoint); });
  } catch (const std::bad_alloc&) {
    // The other end takes the connection down.
    const sync::LockGuard link_lock(link_mutex_);
    with_mesh([&](MeshState& mesh) {
      mesh.abandon_link(inproc_endpoint);
      mesh.handle_lost(instance);
    });
    mesh_changed();
  }
}

// Each connection that fails is made by the next call: a link that stands may lack the one to the inner socket.
Result<void> Node::link_inproc(std::uint64_t instance, const std::string& inproc_endpoint, bool inner) {
  const sync::LockGuard link_lock(link_mutex_);
  bool stands = false;
  std::string instead;  // of this connection to the same handle
  with_mesh([&](const MeshState& mesh) {
    const Links::InprocLink known = mesh.links().inproc_link(instance, inproc_endpoint);
    stands = known.stands;
    inner = inner && !known.inner;
    instead = known.other == nullptr ? "" : *known.other;
  });
  if (!stands && !instead.empty()) {
    end_link(instead, true);
  }
  if (!stands) {
    WEFT_TRY(begin_link(inproc_endpoint, instance, LinkSource::the_handle));
    bool up = false;
    bool refused = false;
    with_mesh([&](MeshState& mesh) {
      up = mesh.handle_inproc_up(inproc_endpoint, instance);
      refused = mesh.peers().is_gone(instance) || mesh.links().is_full();
    });
    if (!up) {
      return refused ? Result<void>() : msg::kNoMemoryToSend;
    }
  }
  if (inner) {
    WEFT_TRY(sockets_.in().connect(FleetEndpoints::inner_of(inproc_endpoint)));
    with_mesh([&](MeshState& mesh) { mesh.links().note_inner(inproc_endpoint); });  // the link lock keeps the link
  }
  return {};
}

void Node::unlink_inproc(std::uint64_t instance, const std::string& inproc_endpoint) noexcept {
  pump_.read_all();
  (void)or_no_memory([&]() -> Result<void> {
    with_mesh([&](MeshState& mesh) { mesh.handle_gone(instance); });
    return {};
  });
  (void)or_no_memory([&] { return sockets_.in().disconnect(FleetEndpoints::inner_of(inproc_endpoint)); });
  drop_link(inproc_endpoint);
}

Result<void> Node::add_peer(std::string_view endpoint) {
  if (fleet().kind != Fleet::Kind::tcp) {
    return Error(Errc::not_supported, "only a tcp fleet has listed peers");
  }
  return or_no_memory([&]() -> Result<void> {
    const net::Endpoint parsed = WEFT_TRY(net::parse_endpoint(endpoint, false));
    if (fleet().tls && parsed.transport != net::Transport::tls_tcp) {
      return Error(Errc::invalid_argument, "every endpoint of a tls+tcp fleet is tls+tcp://");
    }
    return connect_link(parsed.text(), 0, LinkSource::given);
  });
}

Result<void> Node::remove_peer(std::string_view endpoint) {
  return or_no_memory([&]() -> Result<void> {
    const std::string text = WEFT_TRY(net::parse_endpoint(endpoint, false)).text();
    // One that only sent its endpoint is not listed. A removed peer may send it at once.
    if (!with_mesh([&](MeshState& mesh) { return mesh.links().unlist(text); })) {
      return Error(Errc::no_such_endpoint, "no peer is listed at this endpoint");
    }
    drop_link(text);
    return {};
  });
}

// --- waiting for the mesh ---

void Node::mesh_changed() noexcept {
  constexpr Error kGone(Errc::connection_closed, "the handle that was asked is gone");
  with_mesh([&](MeshState& mesh) { mesh.requests().take_ended([&](std::uint64_t id) { calls_.fail(id, kGone); }); });
  mesh_.changed();
  if (async()) {
    mesh_.event().pulse();
  }
}

}  // namespace weft::topic
