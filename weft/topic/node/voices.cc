// SPDX-License-Identifier: MIT
// Node: which connections speak for which handles. A word of the fleet is taken over a connection that has shown its
// proof, and only for the handle of this connection. The roster of a handle ends with its connection.
#include <algorithm>
#include <new>
#include <utility>
#include <vector>

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

// One handle speaks over one connection. A handle that connects again replaces its former connection at once if it has
// shown the fleet's secret; otherwise after its former connection has ended, so that no other peer speaks for a
// connected handle.
bool Node::speaks_for(msg::PeerId via, std::uint64_t instance) const {
  if (via == 0) {
    return true;
  }
  if (const auto voice = voices_.find(via); voice != voices_.end()) {
    return voice->second == instance;
  }
  const auto peer = peers_.find(instance);
  return !proof_.empty() || peer == peers_.end() || peer->second.via == 0 || !msg::is_known(peer->second.via);
}

void Node::watch_voices() {
  out_.core()->monitor().set_sink([weak = weak_from_this()](const MonitorEvent& event) {
    if (event.kind != EventKind::disconnected) {
      return true;
    }
    const auto node = weak.lock();
    if (node == nullptr || node->closed()) {
      return true;
    }
    try {
      node->loop_->post([weak, peer = event.peer] {
        if (const auto still = weak.lock(); still != nullptr && !still->closed()) {
          (void)msg::or_no_memory([&]() -> Result<void> {
            if (peer != 0) {
              still->sweeps_.insert(peer);
            }
            return {};
          });
          still->sweep_wait_ = kSweepFirst;
          still->handle_out();  // words of the connection before its end
          sweep_voices(still.get());
        }
      });
    } catch (const std::bad_alloc&) {
      node->mend_soon();  // sweeps
      return false;
    }
    return true;
  });
}

// The connection that ended is gone when nothing refers to it any more: its messages that wait to be read do.
void Node::sweep_voices_soon() noexcept {
  if (sweep_timer_) {
    loop_->timers().cancel(std::exchange(sweep_timer_, {}));
  }
  std::erase_if(sweeps_, [](msg::PeerId peer) { return !msg::is_known(peer); });
  if (sweep_wait_ <= kSweepLast || !sweeps_.empty()) {
    const Duration wait = std::min(sweep_wait_, kSweepLast);
    sweep_timer_ = loop_->timers().schedule(loop_->now() + wait, {&Node::sweep_voices, this});
    sweep_wait_ = std::max(sweep_wait_, 4 * wait);
  }
}

void Node::sweep_voices(void* self) {
  Node& node = *static_cast<Node*>(self);
  node.sweep_timer_ = {};
  bool forgot = false;
  std::vector<std::uint64_t> again;  // whose other connection carries our words
  (void)msg::or_no_memory([&]() -> Result<void> {
    const sync::LockGuard lock(node.mesh_mutex_);
    for (auto at = node.voices_.begin(); at != node.voices_.end();) {
      if (msg::is_known(at->first)) {
        ++at;
        continue;
      }
      const std::uint64_t instance = at->second;
      if (const auto peer = node.peers_.find(instance); peer != node.peers_.end() && peer->second.via == at->first) {
        forgot = true;
        node.note_parted(instance);
        node.forget_peer(instance);
        const bool linked = std::any_of(node.links_.begin(), node.links_.end(), [&](const auto& each) {
          return each.second.instance == instance && each.second.up;
        });
        if (linked) {
          again.push_back(instance);
        }
      }
      at = node.voices_.erase(at);
    }
    return {};
  });
  for (const std::uint64_t instance : again) {
    (void)node.tell_soon(instance, true);
  }
  if (forgot) {
    node.mesh_changed();
  }
  node.sweep_voices_soon();
}

}  // namespace weft::topic
