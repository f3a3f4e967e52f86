// SPDX-License-Identifier: MIT
// Node: the connections of peers to this handle. A control message is taken over a connection that has shown the
// fleet's secret, and only for the handle of this connection. The roster of a handle ends with its connection.
#include <algorithm>
#include <new>
#include <utility>

#include "weft/base/no_memory.h"
#include "weft/msg/message/monitor.h"
#include "weft/msg/socket/socket_core.h"
#include "weft/topic/node/node.h"

namespace weft::topic {

// Within the process a message comes over no connection. In a fleet with CURVE keys whoever has the public one may
// connect; a handle has the secret one too, and shows it inside of the encryption. Both sides show a certificate.
bool Node::is_proven(const Message& message) const noexcept {
  if (proof_.empty() || message.origin().peer == 0) {
    return true;
  }
  const char* const shown = message.peer_property(kProof);
  const std::string_view text = shown == nullptr ? std::string_view() : std::string_view(shown);
  unsigned different = text.size() == proof_.size() ? 0 : 1;
  for (std::size_t i = 0; i < proof_.size() && i < text.size(); ++i) {
    different |= static_cast<unsigned char>(text[i]) ^ static_cast<unsigned char>(proof_[i]);
  }
  return different == 0;
}

void Node::watch_peer_connections() {
  out_.core()->monitor().set_sink([weak = weak_from_this()](const MonitorEvent& event) {
    if (event.kind != EventKind::disconnected) {
      return true;
    }
    const auto node = weak.lock();
    if (node == nullptr || node->closed()) {
      return true;
    }
    try {
      node->loop_.post([of = node.get(), peer = event.peer] {
        (void)or_no_memory([&]() -> Result<void> {
          if (peer != 0) {
            of->sweeps_.insert(peer);
          }
          return {};
        });
        of->sweep_wait_ = kSweepFirst;
        of->handle_out();  // messages of the connection before its end
        sweep(of);
      });
    } catch (const std::bad_alloc&) {
      node->repair_soon();  // sweeps
      return false;
    }
    return true;
  });
}

// The connection that ended is gone when nothing refers to it any more: its messages that wait to be read do.
void Node::sweep_soon() noexcept {
  sweep_timer_.stop();
  std::erase_if(sweeps_, [](msg::PeerId peer) { return !msg::is_known(peer); });
  if (sweep_wait_ <= kSweepLast || !sweeps_.empty()) {
    const Duration wait = std::min(sweep_wait_, kSweepLast);
    sweep_timer_.start(wait);
    sweep_wait_ = std::max(sweep_wait_, 4 * wait);
  }
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
  node.sweep_soon();
}

}  // namespace weft::topic
