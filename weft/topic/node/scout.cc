// SPDX-License-Identifier: MIT
// Node: which handle listens at a given endpoint.
#include <algorithm>
#include <utility>

#include "weft/base/no_memory.h"
#include "weft/msg/message/monitor.h"
#include "weft/msg/socket/context_core.h"
#include "weft/msg/socket/socket_core.h"
#include "weft/topic/node/node.h"

namespace weft::topic {

// Each link without a connection has a scout, and no other link. A scout with a connection has a time-out.
Result<void> Node::reconcile_scouts() {
  const std::vector<std::string> wanted = with_mesh([](const MeshState& mesh) { return mesh.links().unconnected(); });
  for (auto at = scouts_.begin(); at != scouts_.end();) {
    Scout& scout = *(at++)->second;
    if (std::find(wanted.begin(), wanted.end(), scout.endpoint) == wanted.end()) {
      end_scout(scout);
    } else if (scout.connected->load() && !scout.timer) {
      scout.timer = loop().timers().schedule(loop().now() + kScoutPatience, {&Scout::give_up, &scout});
      if (!scout.timer) {
        return msg::kNoMemoryToSend;
      }
    }
  }
  for (const std::string& endpoint : wanted) {
    if (const Result<void> begun = begin_scout(endpoint); !begun && begun.error() == Errc::resource_exhausted) {
      return begun;
    }
  }
  return {};
}

Result<void> Node::begin_scout(const std::string& endpoint) {
  if (scouts_.contains(endpoint)) {
    return {};
  }
  auto made = std::make_unique<Scout>(*this, endpoint);
  Scout& scout = *made;
  scouts_.emplace(endpoint, std::move(made));
  Result<void> begun = or_no_memory([&] { return send_scout(scout); });
  if (!begun) {
    end_scout(scout);
  }
  return begun;
}

Result<void> Node::send_scout(Scout& scout) {
  scout.socket = WEFT_TRY(sockets_.make_scout());
  // The monitor calls on the I/O thread.
  scout.socket.core()->monitor().set_sink(
      [weak = weak_from_this(), connected = scout.connected](const MonitorEvent& event) {
        const auto node = weak.lock();
        if (event.kind == EventKind::handshake_succeeded && node != nullptr) {
          connected->store(true);
          node->loop_.request(NodeLoop::kScouts);
        }
        return true;
      });
  const int fd = WEFT_TRY(scout.socket.core()->descriptor());
  scout.watch = WEFT_TRY(loop().watch(fd, sys::Interest::readable, false, &scout));
  return scout.socket.connect(scout.endpoint);
}

Node::Scouts::node_type Node::end_scout(Scout& scout) noexcept {
  if (scout.socket.core() != nullptr) {
    scout.socket.core()->monitor().set_sink({});
  }
  loop().unwatch(scout.watch);
  if (scout.timer) {
    loop().timers().cancel(scout.timer);
  }
  scout.socket.close();
  return scouts_.extract(scout.endpoint);
}

void Node::Scout::handle_event(const sys::PollEvent& /*event*/) {
  Message message;
  msg::Inbound part{&message, {}};
  if (!socket.core()->recv(part, msg::Timeout::none())) {
    return;
  }
  const auto instance = or_no_memory([&]() -> Result<std::uint64_t> {
    const auto welcome = decode_control(message.bytes());
    return welcome ? welcome->from : 0;
  });
  if (instance) {
    node.handle_scouted(*this, *instance);  // destroys the scout
    return;
  }
  Node& owner = node;
  owner.end_scout(*this);
  owner.repair_soon();  // another scout
}

void Node::Scout::give_up(void* self) {
  Scout& scout = *static_cast<Scout*>(self);
  scout.timer = {};
  scout.node.handle_scouted(scout, 0);
}

void Node::handle_scouted(Scout& scout, std::uint64_t instance) noexcept {
  const sync::LockGuard link_lock(link_mutex_);
  const Scouts::node_type ended = end_scout(scout);
  const std::string& endpoint = ended.key();
  const bool connect = with_mesh([&](MeshState& mesh) { return mesh.links().note_scouted(endpoint, instance); });
  if (const auto connected = connect ? sockets_.in().connect(endpoint) : Result<void>(); !connected) {
    with_mesh([&](MeshState& mesh) { mesh.links().note_unconnected(endpoint); });
    repair_soon();  // another scout
  }
  mesh_changed();
}

void Node::scout_again(const std::string& endpoint) {
  const sync::LockGuard link_lock(link_mutex_);
  if (with_mesh([&](MeshState& mesh) { return mesh.links().scout_again(endpoint); }).empty()) {
    return;
  }
  (void)sockets_.in().disconnect(endpoint);
  loop_.request(NodeLoop::kScouts);
}

}  // namespace weft::topic
