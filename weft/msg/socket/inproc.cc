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
  decltype(pending_) waiting;
  {
    const std::lock_guard lock(inproc_mutex_);
    if (core.closed()) {  // a socket that is open here calls unbind_all_inproc() later
      return Error(Errc::closed, "the socket is closed");
    }
    if (!inproc_.emplace(name, &core).second) {
      return Error(Errc::address_in_use, "this inproc name is bound already");
    }
    drop_expired();
    for (auto it = pending_.find(name); it != pending_.end(); it = pending_.find(name)) {
      waiting.insert(pending_.extract(it));
    }
  }
  try {
    for (; !waiting.empty(); waiting.erase(waiting.begin())) {
      // If `core` was closed meanwhile, the link waits again, or joins the socket that is bound there now.
      const std::shared_ptr<InprocLink>& link = waiting.begin()->second;
      std::shared_ptr<SocketCore> binder = core.shared_from_this();
      while (binder != nullptr && !SocketCore::join_inproc(link, *binder)) {
        binder = find_inproc(name, link);
      }
    }
  } catch (const std::bad_alloc&) {
    const std::lock_guard lock(inproc_mutex_);
    pending_.merge(waiting);
    if (const auto found = inproc_.find(name); found != inproc_.end() && found->second == &core) {
      inproc_.erase(found);
    }
    throw;
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
      core.monitor().emit_made(EventKind::closed,
                               [&] { return MonitorEvent{EventKind::closed, "inproc://" + entry.first}; });
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

std::shared_ptr<SocketCore> ContextCore::inproc_binder(const std::string& name) {
  const std::lock_guard lock(inproc_mutex_);
  const auto found = inproc_.find(name);
  return found == inproc_.end() || found->second->closed() ? nullptr : found->second->shared_from_this();
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
  std::string text = endpoint.text();
  if (auto bound = context_.bind_inproc(endpoint.name, *this); !bound) {
    monitor_.emit(EventKind::bind_failed, text, bound.error());
    return bound.error();
  }
  monitor_.emit(EventKind::listening, text);
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
  try {
    while (const auto binder = context_.find_inproc(endpoint.name, link)) {
      if (!may_join(wire_type(), binder->wire_type())) {
        disconnect_inproc(*link);
        return Error(Errc::incompatible_peer, "the bound socket's type cannot talk to this one");
      }
      if (join_inproc(link, *binder)) {
        break;
      }
    }
  } catch (const std::bad_alloc&) {
    disconnect_inproc(*link);
    throw;
  }
  share_.output_parker.wake_with_fence();
  return routing_id;
}

// Gives the binder its end of the link and makes both ends ready; the connector has its end already. False: the binder
// was closed meanwhile. Throws std::bad_alloc: the binder does not have its end.
bool SocketCore::join_inproc(const std::shared_ptr<InprocLink>& link, SocketCore& binder) {
  SocketCore& connector = core_of(*link->keep[0]);
  if (!may_join(connector.wire_type(), binder.wire_type())) {
    connector.monitor_.emit(EventKind::handshake_failed, "inproc", Error(Errc::incompatible_peer));
    return true;
  }
  const std::string connector_id = connector.options_copy().routing_id;
  const std::string binder_id = binder.options_copy().routing_id;
  link->keep[1] = binder.shared_from_this();
  link->owner[1].store(&binder);  // pairs with the acquire in Pipe::other_owner()
  try {
    if (!binder.adopt_inproc(link, 1, {})) {
      link->owner[1].store(nullptr);
      return false;
    }
    binder.inproc_ready(*link, as_bytes(connector_id));
    connector.inproc_ready(*link, as_bytes(binder_id));
  } catch (const std::bad_alloc&) {
    link->owner[1].store(nullptr);
    (void)binder.take_inproc(*link);
    throw;
  }
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
  try {
    attach(*pipe);
    const std::lock_guard table(table_mutex_);
    make_room_for_end();
    Pipe* const added = inproc_pipes_.emplace_back(std::move(pipe)).get();
    inproc_count_.store(inproc_pipes_.size(), std::memory_order_relaxed);
    if (!connected_to.empty()) {
      try {
        connected_inproc_.emplace(connected_to, link);
      } catch (const std::bad_alloc&) {
        pipe = std::move(inproc_pipes_.back());
        inproc_pipes_.pop_back();
        throw;
      }
    }
    return added->notes.origin.routing_id;
  } catch (const std::bad_alloc&) {
    if (pipe->notes.attached) {
      detach(*pipe);
    }
    give_name_back(*pipe);
    throw;
  }
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
  // The caller holds its send lock. Its socket takes no subscriptions, and one that does sends none, so that of two
  // sockets one at most locks the other.
  if (!traits_.takes_subscriptions && !(traits_.groups && traits_.sends)) {
    return;
  }
  {
    const std::lock_guard lock(send_mutex_);
    if (Pipe* pipe = find_inproc(link); pipe != nullptr) {
      pipe->dropped += pattern_->handle_subscription(*pipe, subscribe, topic) ? 0 : 1;  // 1: no memory
    }
  }
  share_.output_parker.wake_with_fence();  // a sender may wait for subscribers
}

// This end sends no more; the other end may still take the messages in the channel.
void SocketCore::close_inproc(Pipe& pipe, Instant deadline) noexcept {
  InprocLink& link = *pipe.link();
  const int end = pipe.link_end();
  ConnectionOwner* peer = link.owner[1 - end].load();
  if (peer != nullptr && end == 0) {
    try {
      const std::string text = peer->farewell(false);
      Outbound part{as_bytes(text), nullptr, false};
      (void)(!text.empty() && link.channel[end].push(part));  // without memory the farewell is left out
    } catch (const std::bad_alloc&) {                         // NOLINT(bugprone-empty-catch): the same
    }
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

void SocketCore::inproc_peer_closed(const InprocLink& link) noexcept {
  bool unswept = false;
  {
    const std::scoped_lock lock(receive_mutex_, send_mutex_);
    if (Pipe* pipe = find_inproc(link); pipe != nullptr && !pipe->notes.ended) {
      end_pipe(*pipe);
      bury_drained();
      unswept = pattern_->sweep();
    }
  }
  if (unswept) {
    start_sweep();
  }
  share_.input_parker.wake_with_fence();
  share_.output_parker.wake_with_fence();
}

void SocketCore::disconnect_inproc(const InprocLink& link) noexcept {
  if (const std::unique_ptr<Pipe> pipe = take_inproc(link); pipe != nullptr) {
    close_inproc(*pipe, linger_end());
  }
}

// Takes this socket's end of the link out of the tables and the pattern. Null: there is none.
std::unique_ptr<Pipe> SocketCore::take_inproc(const InprocLink& link) noexcept {
  std::unique_ptr<Pipe> pipe;
  bool unswept = false;
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
      return nullptr;
    }
    std::erase(ended_, pipe.get());
    dropped_before_ += pipe->dropped;
    if (pipe->notes.attached) {
      detach(*pipe);
      unswept = pattern_->sweep();
    }
  }
  if (unswept) {
    start_sweep();
  }
  return pipe;
}

}  // namespace weft::msg
