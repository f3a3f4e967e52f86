// SPDX-License-Identifier: MIT
// Node: which handle listens at a given endpoint.
#include <new>
#include <utility>

#include "weft/base/no_memory.h"
#include "weft/msg/message/monitor.h"
#include "weft/msg/socket/context_core.h"
#include "weft/msg/socket/socket_core.h"
#include "weft/topic/node/node.h"

namespace weft::topic {

void Node::begin_scout(const std::string& endpoint) noexcept {
  const bool wanted = with_mesh([&](const MeshState& mesh) {
    const Links::Link* const link = mesh.links().find(endpoint);
    return link != nullptr && !link->connected;
  });
  if (!wanted || scouts_.contains(endpoint)) {
    return;
  }
  const Result<void> begun = or_no_memory([&] {
    auto scout = std::make_unique<Scout>(*this, endpoint);
    Scout& added = *scout;
    scouts_[endpoint] = std::move(scout);
    return send_scout(added);
  });
  if (!begun) {
    end_scout(endpoint);
    if (begun.error() == Errc::resource_exhausted) {
      mend_soon();
    }
  }
}

Result<void> Node::send_scout(Scout& scout) {
  scout.socket = Socket(WEFT_TRY(context_->make_socket(SocketType::xsub)));
  WEFT_TRY(set_common(scout.socket));
  WEFT_TRY(scout.socket.set(option::linger, Duration(0)));
  WEFT_TRY(set_security(scout.socket));
  // The monitor calls on the I/O thread.
  scout.socket.core()->monitor().set_sink([weak = weak_from_this(), at = scout.endpoint](const MonitorEvent& event) {
    const auto node = weak.lock();
    if (event.kind != EventKind::handshake_succeeded || node == nullptr) {
      return true;
    }
    try {
      node->loop_->post([weak, at] {
        const auto still = weak.lock();
        const auto found =
            still == nullptr || still->closed() ? decltype(still->scouts_.end()){} : still->scouts_.find(at);
        if (still == nullptr || still->closed() || found == still->scouts_.end() || found->second->timer) {
          return;
        }
        Scout& waiting = *found->second;
        waiting.timer =
            still->loop_->timers().schedule(still->loop_->now() + kScoutPatience, {&Scout::give_up, &waiting});
        if (!waiting.timer) {
          still->scouts_unsure_.store(true);
          still->mend_soon();
        }
      });
    } catch (const std::bad_alloc&) {
      node->scouts_unsure_.store(true);
      node->mend_soon();
      return false;
    }
    return true;
  });
  const int fd = WEFT_TRY(scout.socket.core()->descriptor());
  scout.watch = WEFT_TRY(loop_->watch(fd, sys::Interest::readable, false, &scout));
  return scout.socket.connect(scout.endpoint);
}

void Node::end_scout(const std::string& endpoint) noexcept {
  const auto found = scouts_.find(endpoint);
  if (found == scouts_.end()) {
    return;
  }
  Scout& scout = *found->second;
  if (scout.socket.core() != nullptr) {
    scout.socket.core()->monitor().set_sink({});
  }
  loop_->unwatch(scout.watch);
  if (scout.timer) {
    loop_->timers().cancel(scout.timer);
  }
  scout.socket.close();
  scouts_.erase(found);
}

void Node::Scout::handle_event(const sys::PollEvent& /*event*/) {
  Message message;
  msg::Inbound part{&message, {}};
  if (!socket.core()->recv(part, msg::Timeout::none())) {
    return;
  }
  Node& owner = node;
  const std::string at = std::move(endpoint);
  const auto instance = or_no_memory([&]() -> Result<std::uint64_t> {
    const auto welcome = decode_control(message.bytes());
    return welcome ? welcome->from : 0;
  });
  if (instance) {
    owner.handle_scouted(at, *instance);  // destroys the scout
  } else {
    owner.end_scout(at);
    owner.mend_soon();  // another scout
  }
}

void Node::Scout::give_up(void* self) {
  Scout& scout = *static_cast<Scout*>(self);
  scout.timer = {};
  Node& owner = scout.node;
  const std::string at = std::move(scout.endpoint);
  owner.handle_scouted(at, 0);
}

void Node::handle_scouted(const std::string& endpoint, std::uint64_t instance) noexcept {
  const sync::LockGuard link_lock(link_mutex_);
  end_scout(endpoint);
  const bool connect = with_mesh([&](MeshState& mesh) { return mesh.links().note_scouted(endpoint, instance); });
  if (const auto connected = connect ? in_.connect(endpoint) : Result<void>(); !connected) {
    with_mesh([&](MeshState& mesh) { mesh.links().note_unconnected(endpoint); });
    mend_soon();  // another scout
  }
  mesh_changed();
}

void Node::scout_again(const std::string& endpoint) {
  const sync::LockGuard link_lock(link_mutex_);
  const std::vector<std::string> again = with_mesh([&](MeshState& mesh) { return mesh.links().scout_again(endpoint); });
  if (again.empty()) {
    return;
  }
  (void)in_.disconnect(endpoint);
  for (const std::string& at : again) {
    begin_scout(at);
  }
}

}  // namespace weft::topic
