// SPDX-License-Identifier: MIT
// inproc: two sockets of one context, joined by a link, without a byte stream or a thread in between.
#include "weft/msg/socket/context_core.h"
#include "weft/msg/socket/socket_core.h"
#include "weft/sys/clock.h"

namespace weft::msg {

namespace {
// Every owner of a link's end is a socket.
SocketCore& core_of(ConnectionOwner& owner) noexcept { return static_cast<SocketCore&>(owner); }
}  // namespace

// --- names ---

Result<void> ContextCore::bind_inproc(const std::string& name, SocketCore& core) {
  std::vector<std::shared_ptr<InprocLink>> waiting;
  {
    const std::lock_guard lock(inproc_mutex_);
    if (core.closed()) {  // a socket that is open here calls unbind_all_inproc() later
      return Error(Errc::closed, "the socket is closed");
    }
    if (!inproc_.emplace(name, &core).second) {
      return Error(Errc::address_in_use, "this inproc name is bound already");
    }
    drop_expired();
    const auto [first, last] = pending_.equal_range(name);
    for (auto it = first; it != last; ++it) {
      waiting.push_back(it->second);
    }
    pending_.erase(first, last);
  }
  for (const auto& link : waiting) {
    // If `core` was closed meanwhile, the link waits again, or joins the socket that is bound there now.
    std::shared_ptr<SocketCore> binder = core.shared_from_this();
    while (binder != nullptr && !SocketCore::join_inproc(link, *binder)) {
      binder = find_inproc(name, link);
    }
  }
  return {};
}

Result<void> ContextCore::unbind_inproc(const std::string& endpoint, SocketCore& core) {
  constexpr std::string_view kPrefix = "inproc://";
  const std::string name = endpoint.starts_with(kPrefix) ? endpoint.substr(kPrefix.size()) : std::string();
  const std::lock_guard lock(inproc_mutex_);
  const auto found = inproc_.find(name);
  if (found == inproc_.end() || found->second != &core) {
    return Error(Errc::no_such_endpoint, "not bound there");
  }
  inproc_.erase(found);
  return {};
}

void ContextCore::unbind_all_inproc(SocketCore& core) noexcept {
  const std::lock_guard lock(inproc_mutex_);
  std::erase_if(inproc_, [&](const auto& entry) {
    if (entry.second == &core) {
      core.monitor().emit({EventKind::closed, "inproc://" + entry.first});
    }
    return entry.second == &core;
  });
}

std::shared_ptr<SocketCore> ContextCore::find_inproc(const std::string& name, const std::shared_ptr<InprocLink>& link) {
  const std::lock_guard lock(inproc_mutex_);
  const auto found = inproc_.find(name);
  if (found == inproc_.end() || found->second->closed()) {
    drop_expired();
    pending_.emplace(name, link);
    return nullptr;
  }
  return found->second->shared_from_this();
}

bool ContextCore::is_inproc_bound(const std::string& name) {
  const std::lock_guard lock(inproc_mutex_);
  const auto found = inproc_.find(name);
  return found != inproc_.end() && !found->second->closed();
}

void ContextCore::expire_pending(InprocLink& link, Instant deadline) noexcept {
  const std::lock_guard lock(inproc_mutex_);
  link.expires = deadline;
  drop_expired();
}

void ContextCore::drop_expired() noexcept {
  const Instant now = sys::now();
  std::erase_if(pending_, [&](const auto& entry) { return entry.second->expires <= now; });
}

// --- links ---

namespace {
// An inproc link has no handshake that compares types, and programs of libzmq rely on that: a PAIR may talk to a
// DEALER. Raw peers and the draft types send messages of another kind.
bool may_join(zmtp::SocketType a, zmtp::SocketType b) noexcept {
  return (a <= zmtp::SocketType::xsub && b <= zmtp::SocketType::xsub) || zmtp::compatible(a, b);
}
}  // namespace

Result<std::string> SocketCore::bind_inproc(const net::Endpoint& endpoint) {
  const std::string text = endpoint.text();
  if (auto bound = context_.bind_inproc(endpoint.name, *this); !bound) {
    monitor_.emit({EventKind::bind_failed, text, bound.error()});
    return bound.error();
  }
  monitor_.emit({EventKind::listening, text});
  return text;
}

Result<std::uint32_t> SocketCore::connect_inproc(const net::Endpoint& endpoint) {
  auto link = std::make_shared<InprocLink>();
  link->keep[0] = shared_from_this();
  link->owner[0].store(this, std::memory_order_release);
  if (conflates()) {
    link->channel[0].conflate();
    link->channel[1].conflate();
  }
  const std::uint32_t routing_id = WEFT_TRY(adopt_inproc(link, 0, endpoint.text()));
  while (const auto binder = context_.find_inproc(endpoint.name, link)) {
    if (!may_join(wire_type(), binder->wire_type())) {
      disconnect_inproc(*link);
      return Error(Errc::incompatible_peer, "the bound socket's type cannot talk to this one");
    }
    if (join_inproc(link, *binder)) {
      break;
    }
  }
  share_.output_parker.wake_with_fence();
  return routing_id;
}

// Gives the binder its end of the link and makes both ends ready; the connector has its end already. False: the binder
// was closed meanwhile.
bool SocketCore::join_inproc(const std::shared_ptr<InprocLink>& link, SocketCore& binder) {
  SocketCore& connector = core_of(*link->keep[0]);
  if (!may_join(connector.wire_type(), binder.wire_type())) {
    connector.monitor_.emit({EventKind::handshake_failed, "inproc", Error(Errc::incompatible_peer)});
    return true;
  }
  link->keep[1] = binder.shared_from_this();
  link->owner[1].store(&binder);  // pairs with the acquire in Pipe::other_owner()
  if (!binder.adopt_inproc(link, 1, {})) {
    link->owner[1].store(nullptr);
    return false;
  }
  link->join();
  binder.inproc_ready(*link, as_bytes(connector.options_copy().routing_id));
  connector.inproc_ready(*link, as_bytes(binder.options_copy().routing_id));
  // Sequentially consistent, as in close_inproc(): a connector that closes meanwhile sees the binder's end, or this
  // thread sees the connector closed.
  if (link->closed[0].load()) {
    binder.inproc_peer_closed(*link);
  }
  // Messages that were sent before the binder was known woke no thread. A sender may wait for its first peer.
  binder.share_.input_parker.wake_with_fence();
  binder.share_.output_parker.wake_with_fence();
  connector.share_.output_parker.wake_with_fence();
  if (binder.on_inproc_peer_) {
    binder.on_inproc_peer_();
  }
  return true;
}

// An error: this socket is closed. `connected_to`: the link's name for disconnect(); empty at the binder's end.
Result<std::uint32_t> SocketCore::adopt_inproc(const std::shared_ptr<InprocLink>& link, int end,
                                               const std::string& connected_to) {
  auto pipe = std::make_unique<Pipe>(*this, link, end);
  const std::scoped_lock lock(receive_mutex_, send_mutex_);
  if (closed()) {
    return refusal();
  }
  if (end == 0) {
    name_peer(*pipe);
  }
  link->set_marks(end, options_.send_high_water_mark, options_.receive_high_water_mark);
  pattern_->attach(*pipe);
  pipe->notes.attached = true;
  const std::uint32_t routing_id = pipe->notes.origin.routing_id;
  const std::lock_guard table(table_mutex_);
  inproc_pipes_.push_back(std::move(pipe));
  inproc_count_.store(inproc_pipes_.size(), std::memory_order_relaxed);
  if (!connected_to.empty()) {
    connected_inproc_.emplace(connected_to, link);
  }
  return routing_id;
}

void SocketCore::inproc_ready(const InprocLink& link, Bytes identity) {
  Pipe* pipe = nullptr;
  {
    const std::scoped_lock lock(receive_mutex_, send_mutex_);
    pipe = find_inproc(link);
    if (pipe == nullptr || !pipe->notes.attached || pipe->notes.ended) {
      return;
    }
    pipe->notes.ready = pattern_->ready(*pipe, identity);
    if (pipe->notes.ready) {
      return;
    }
  }
  disconnect_inproc(link);
}

Pipe* SocketCore::find_inproc(const InprocLink& link) noexcept {
  const std::lock_guard table(table_mutex_);
  for (const auto& pipe : inproc_pipes_) {
    if (pipe->link().get() == &link) {
      return pipe.get();
    }
  }
  return nullptr;
}

void SocketCore::handle_inproc_subscription(const InprocLink& link, bool subscribe, Bytes topic) {
  {
    const std::lock_guard lock(send_mutex_);
    if (Pipe* pipe = find_inproc(link); pipe != nullptr && (traits_.takes_subscriptions || traits_.groups)) {
      (void)pattern_->handle_subscription(*pipe, subscribe, topic);  // a peer in this process needs no limit
    }
  }
  share_.output_parker.wake_with_fence();  // a sender may wait for subscribers
}

// This end sends no more; the other end may still take the messages in the channel.
void SocketCore::close_inproc(Pipe& pipe, Instant deadline) {
  InprocLink& link = *pipe.link();
  const int end = pipe.link_end();
  ConnectionOwner* peer = link.owner[1 - end].load();
  if (peer != nullptr && end == 0) {
    const std::string text = peer->farewell(false);
    Outbound part{as_bytes(text), nullptr, false};
    (void)(!text.empty() && link.channel[end].push(part));  // without memory the farewell is left out
  }
  link.closed[end].store(true);
  link.owner[end].store(nullptr);
  const bool nothing_sent = link.channel[end].written() == 0;
  context_.expire_pending(link, nothing_sent ? Instant::min() : deadline);
  peer = link.owner[1 - end].load();
  if (peer != nullptr) {
    core_of(*peer).inproc_peer_closed(link);
  }
}

void SocketCore::inproc_peer_closed(const InprocLink& link) {
  {
    const std::scoped_lock lock(receive_mutex_, send_mutex_);
    if (Pipe* pipe = find_inproc(link); pipe != nullptr && !pipe->notes.ended) {
      end_pipe(*pipe);
      bury_drained();
    }
  }
  share_.input_parker.wake_with_fence();
  share_.output_parker.wake_with_fence();
}

void SocketCore::disconnect_inproc(const InprocLink& link) {
  std::unique_ptr<Pipe> pipe;
  {
    const std::scoped_lock lock(receive_mutex_, send_mutex_);
    const std::lock_guard table(table_mutex_);
    for (auto& candidate : inproc_pipes_) {
      if (candidate->link().get() == &link) {
        pipe = std::move(candidate);
      }
    }
    std::erase(inproc_pipes_, nullptr);
    inproc_count_.store(inproc_pipes_.size(), std::memory_order_relaxed);
    std::erase_if(connected_inproc_, [&](const auto& entry) { return entry.second.get() == &link; });
    if (pipe == nullptr) {
      return;
    }
    std::erase(ended_, pipe.get());
    if (pipe->notes.attached) {
      pattern_->detach(*pipe);
      pattern_->deactivate(*pipe);
    }
    remember(*pipe);
  }
  const Duration linger = options_copy().linger;
  close_inproc(*pipe, linger < Duration::zero() ? kNever : deadline_after(sys::now(), linger));
}

}  // namespace weft::msg
