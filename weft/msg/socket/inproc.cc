// SPDX-License-Identifier: MIT
// inproc: two sockets of one context, joined by a link, without a byte stream or a thread in between.
#include <algorithm>
#include <vector>

#include "weft/msg/socket/context_core.h"
#include "weft/msg/socket/socket_core.h"
#include "weft/sys/clock.h"

namespace weft::msg {

namespace {
// Every owner of a link's end is a socket.
SocketCore& core_of(ConnectionOwner& owner) noexcept { return static_cast<SocketCore&>(owner); }
}  // namespace

// --- names ---

Result<void> ContextCore::bind_inproc(const std::string& name, SocketCore& core, const FrozenOptions& options) {
  std::vector<PendingNodes> waiting;
  {
    const sync::LockGuard lock(inproc_mutex_);
    if (core.closed()) {  // a socket that is open here calls unbind_all_inproc() later
      return Error(Errc::closed, "the socket is closed");
    }
    drop_expired();
    waiting.reserve(pending_.count(name));
    if (!inproc_.emplace(name, InprocName{&core, options}).second) {
      return Error(Errc::address_in_use, "this inproc name is bound already");
    }
    for (auto it = pending_.find(name); it != pending_.end(); it = pending_.find(name)) {
      waiting.push_back(extract_pending(it));
    }
  }
  std::size_t next = 0;
  try {
    for (; next < waiting.size(); ++next) {
      // If `core` was closed meanwhile, the link waits again, or joins the socket that is bound there now.
      const std::shared_ptr<InprocLink>& link = waiting[next].link.mapped();
      InprocBinder binder{core.shared_from_this(), options};
      while (binder.core != nullptr && !SocketCore::join_inproc(link, binder)) {
        binder = find_inproc(name, link);
      }
    }
  } catch (const std::bad_alloc&) {
    const sync::LockGuard lock(inproc_mutex_);
    for (; next < waiting.size(); ++next) {
      insert_pending(std::move(waiting[next]));
    }
    if (const auto found = inproc_.find(name); found != inproc_.end() && found->second.core == &core) {
      inproc_.erase(found);
    }
    throw;
  }
  return {};
}

Result<void> ContextCore::unbind_inproc(const std::string& endpoint, SocketCore& core) {
  constexpr std::string_view kPrefix = "inproc://";
  const std::string name = endpoint.starts_with(kPrefix) ? endpoint.substr(kPrefix.size()) : std::string();
  const sync::LockGuard lock(inproc_mutex_);
  const auto found = inproc_.find(name);
  if (found == inproc_.end() || found->second.core != &core) {
    return Error(Errc::no_such_endpoint, "not bound there");
  }
  inproc_.erase(found);
  return {};
}

void ContextCore::unbind_all_inproc(SocketCore& core) noexcept {
  const sync::LockGuard lock(inproc_mutex_);
  std::erase_if(inproc_, [&](const auto& entry) {
    if (entry.second.core == &core) {
      core.monitor().emit_made(EventKind::closed,
                               [&] { return MonitorEvent{EventKind::closed, "inproc://" + entry.first}; });
    }
    return entry.second.core == &core;
  });
}

bool ContextCore::binds_inproc(const SocketCore& core) noexcept {
  const sync::LockGuard lock(inproc_mutex_);
  return std::any_of(inproc_.begin(), inproc_.end(), [&](const auto& entry) { return entry.second.core == &core; });
}

InprocBinder ContextCore::find_inproc(const std::string& name, const std::shared_ptr<InprocLink>& link) {
  const sync::LockGuard lock(inproc_mutex_);
  const auto found = inproc_.find(name);
  if (found == inproc_.end() || found->second.core->closed()) {
    drop_expired();
    add_pending(name, link);
    return {};
  }
  return {found->second.core->shared_from_this(), found->second.options};
}

std::shared_ptr<SocketCore> ContextCore::inproc_binder(const std::string& name) {
  const sync::LockGuard lock(inproc_mutex_);
  const auto found = inproc_.find(name);
  return found == inproc_.end() || found->second.core->closed() ? nullptr : found->second.core->shared_from_this();
}

void ContextCore::expire_pending(InprocLink& link, Instant deadline) noexcept {
  const sync::LockGuard lock(inproc_mutex_);
  auto expiry = expiring_.extract({link.expires, &link});
  link.expires = deadline;
  if (!expiry.empty()) {
    expiry.value().first = deadline;
    expiring_.insert(std::move(expiry));
  }
  drop_expired();
}

void ContextCore::add_pending(const std::string& name, const std::shared_ptr<InprocLink>& link) {
  // The entries are made first: to move them into the tables needs no memory.
  Pending entry{{name, link}};
  PendingPlaces place{{link.get(), entry.begin()}};  // which stays valid
  Expiring expiry{{link->expires, link.get()}};
  pending_.merge(entry);
  pending_places_.merge(place);
  expiring_.merge(expiry);
}

ContextCore::PendingNodes ContextCore::extract_pending(Pending::iterator place) noexcept {
  const InprocLink* const link = place->second.get();
  return {pending_.extract(place), pending_places_.extract(link), expiring_.extract({link->expires, link})};
}

void ContextCore::insert_pending(PendingNodes nodes) noexcept {
  nodes.expiry.value().first = nodes.link.mapped()->expires;  // which may have changed
  nodes.place.mapped() = pending_.insert(std::move(nodes.link));
  pending_places_.insert(std::move(nodes.place));
  expiring_.insert(std::move(nodes.expiry));
}

void ContextCore::drop_expired() noexcept {
  const Instant now = sys::now();
  while (!expiring_.empty() && expiring_.begin()->first <= now) {
    (void)extract_pending(pending_places_.at(expiring_.begin()->second));
  }
}

// --- links ---

namespace {
// An inproc link has no handshake that compares types, and programs of libzmq rely on that: a PAIR may talk to a
// DEALER. Raw peers and the draft types send messages of another kind.
bool may_join(zmtp::WireType a, zmtp::WireType b) noexcept {
  return (a <= zmtp::WireType::xsub && b <= zmtp::WireType::xsub) || zmtp::compatible(a, b);
}
}  // namespace

Result<std::string> SocketCore::bind_inproc(const net::Endpoint& endpoint) {
  std::string text = endpoint.text();
  if (auto bound = context_->bind_inproc(endpoint.name, *this, options_.freeze()); !bound) {
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
  const FrozenOptions options = options_.freeze();
  link->freeze(0, options);
  if (conflates(*options)) {
    link->channel[0].conflate();
    link->channel[1].conflate();
  }
  const std::uint32_t routing_id = WEFT_TRY(adopt_inproc(link, 0, endpoint.text()));
  try {
    for (InprocBinder binder = context_->find_inproc(endpoint.name, link); binder.core != nullptr;
         binder = context_->find_inproc(endpoint.name, link)) {
      if (!may_join(wire_type(), binder.core->wire_type())) {
        disconnect_inproc(*link, 0);
        return Error(Errc::incompatible_peer, "the bound socket's type cannot talk to this one");
      }
      if (join_inproc(link, binder)) {
        break;
      }
    }
  } catch (const std::bad_alloc&) {
    disconnect_inproc(*link, 0);
    throw;
  }
  share_.output_parker.wake_with_fence();
  return routing_id;
}

// Gives the binder its end of the link and makes both ends ready; the connector has its end already. Returns false if
// the binder was closed meanwhile. Throws std::bad_alloc: the binder does not have its end.
bool SocketCore::join_inproc(const std::shared_ptr<InprocLink>& link, const InprocBinder& bound) {
  SocketCore& binder = *bound.core;
  SocketCore& connector = core_of(*link->keep[0]);
  if (!may_join(connector.wire_type(), binder.wire_type()) || binder.raw()) {  // made raw by another thread as it bound
    connector.monitor_.emit(EventKind::handshake_failed, "inproc", Error(Errc::incompatible_peer));
    return true;
  }
  const FrozenOptions connected = link->frozen(0);
  link->freeze(1, bound.options);
  link->keep[1] = binder.shared_from_this();
  link->owner[1].store(&binder);  // pairs with the acquire in Pipe::other_owner()
  try {
    if (!binder.adopt_inproc(link, 1, {})) {
      link->owner[1].store(nullptr);
      return false;
    }
    link->join();
    binder.inproc_ready(*link, 1, as_bytes(connected->routing_id));
    connector.inproc_ready(*link, 0, as_bytes(bound.options->routing_id));
  } catch (const std::bad_alloc&) {
    link->owner[1].store(nullptr);
    (void)binder.take_inproc(*link, 1);
    throw;
  }
  // Sequentially consistent, as in close_inproc(): a connector that closes meanwhile sees the binder's end, or this
  // thread sees the connector closed.
  if (link->closed[0].load()) {
    binder.inproc_peer_closed(*link, 1);
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

// An error: this socket is closed, or another thread made it raw. `connected_to`: the link's name for disconnect();
// empty at the binder's end.
Result<std::uint32_t> SocketCore::adopt_inproc(const std::shared_ptr<InprocLink>& link, int end,
                                               const std::string& connected_to) {
  auto pipe = std::make_unique<Pipe>(*this, link, end);
  const sync::ScopedLock lock(receive_mutex_, send_mutex_);
  if (closed()) {
    return refusal();
  }
  WEFT_TRY(refuse_raw({net::Transport::inproc}));
  if (end == 0) {
    name_peer(*pipe);
  }
  const FrozenOptions frozen = link->frozen(end);
  const Options& marks =
      end == 0 ? options_.read() : *frozen;  // the connect is now, under the lock; the bind was earlier
  link->set_marks(end, marks.send_high_water_mark, marks.receive_high_water_mark);
  try {
    attach(*pipe);
    const sync::LockGuard table(table_mutex_);
    make_room_for_end();
    return endpoints_.add_inproc(pipe, connected_to).notes.origin.routing_id;
  } catch (const std::bad_alloc&) {
    if (pipe->notes.attached) {
      detach(*pipe);
    }
    give_name_back(*pipe);
    throw;
  }
}

void SocketCore::inproc_ready(const InprocLink& link, int end, Bytes identity) {
  Pipe* pipe = nullptr;
  {
    const sync::ScopedLock lock(receive_mutex_, send_mutex_);
    pipe = find_inproc(link, end);
    if (pipe == nullptr || !pipe->notes.attached || pipe->notes.ended) {
      return;
    }
    pipe->notes.ready = pattern_->ready(*pipe, identity);
    if (pipe->notes.ready) {
      return;
    }
  }
  disconnect_inproc(link, end);
}

Pipe* SocketCore::find_inproc(const InprocLink& link, int end) noexcept {
  const sync::LockGuard table(table_mutex_);
  return link.pipe[end];
}

void SocketCore::handle_inproc_subscription(const InprocLink& link, int end, bool subscribe, const FilterView& topic) {
  // The caller holds its send lock. Its socket takes no subscriptions, and one that does sends none, so that of two
  // sockets one at most locks the other.
  if (!traits_.takes_subscriptions && !(traits_.groups && traits_.sends)) {
    return;
  }
  {
    const sync::LockGuard lock(send_mutex_);
    Pipe* pipe = find_inproc(link, end);
    if (pipe != nullptr && !pattern_->handle_subscription(*pipe, subscribe, topic)) {
      ++share_.drops.dropped_no_memory;
      if (subscribe) {
        throw std::bad_alloc();  // the subscriber would wait for ever
      }
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
      const std::string text = peer->last_message(*link.frozen(1), false);
      Outbound part{as_bytes(text), nullptr, false};
      (void)(!text.empty() && link.channel[end].push(part));  // without memory the last message is left out
    } catch (const std::bad_alloc&) {                         // NOLINT(bugprone-empty-catch): the same
    }
  }
  link.closed[end].store(true);
  link.owner[end].store(nullptr);
  const bool nothing_sent = link.channel[end].written() == 0;
  context_->expire_pending(link, nothing_sent ? Instant::min() : deadline);
  peer = link.owner[1 - end].load();
  if (peer != nullptr) {
    core_of(*peer).inproc_peer_closed(link, 1 - end);
  }
}

void SocketCore::inproc_peer_closed(const InprocLink& link, int end) noexcept {
  bool unswept = false;
  {
    const sync::ScopedLock lock(receive_mutex_, send_mutex_);
    if (Pipe* pipe = find_inproc(link, end); pipe != nullptr && !pipe->notes.ended) {
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

void SocketCore::disconnect_inproc(const InprocLink& link, int end) noexcept {
  if (const std::unique_ptr<Pipe> pipe = take_inproc(link, end); pipe != nullptr) {
    close_inproc(*pipe, linger_end());
  }
}

// Takes this socket's end of the link out of the tables and the pattern. Returns null if there is none.
std::unique_ptr<Pipe> SocketCore::take_inproc(const InprocLink& link, int end) noexcept {
  std::unique_ptr<Pipe> pipe;
  bool unswept = false;
  {
    const sync::ScopedLock lock(receive_mutex_, send_mutex_);
    const sync::LockGuard table(table_mutex_);
    pipe = endpoints_.take_inproc(link.pipe[end]);
    if (pipe == nullptr) {
      return nullptr;
    }
    if (pipe->notes.ended) {
      ended_.remove(*pipe);
    }
    if (pipe->notes.attached) {
      detach(*pipe);
      unswept = pattern_->sweep();
    }
    ended_.remember(*pipe);
  }
  if (unswept) {
    start_sweep();
  }
  return pipe;
}

}  // namespace weft::msg
