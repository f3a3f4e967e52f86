// SPDX-License-Identifier: MIT
#include "weft/msg/socket/socket_core.h"

#include <algorithm>
#include <utility>

#include "weft/msg/connection/io_service.h"
#include "weft/msg/connection/security.h"
#include "weft/msg/socket/context_core.h"
#include "weft/sys/clock.h"

namespace weft::msg {

SocketCore::SocketCore(ContextCore& context, const PatternRow& row)
    : ConnectionOwner({row.traits.wire, row.traits.receives, row.traits.takes_subscriptions, row.traits.single_part,
                       row.traits.groups},
                      context.wait_mode()),
      context_(context.shared_from_this()),
      traits_(row.traits),
      pattern_(row.make(row.traits, options_.read())) {
  share_.receive_mutex = &receive_mutex_;
  share_.send_mutex = &send_mutex_;
  send_bounds_.set(options_.read());
  share_.send_timeout.store(options_.read().send_timeout.count(), std::memory_order_relaxed);
}

SocketCore::~SocketCore() = default;

Error SocketCore::refusal() const noexcept {
  return closed() ? Error(Errc::closed, "the socket is closed") : Error(Errc::terminated, "the context was shut down");
}

Duration SocketCore::send_timeout() const noexcept {
  return Duration(share_.send_timeout.load(std::memory_order_relaxed));
}

Result<void> SocketCore::set_options(const std::function<Result<void>(Options&)>& change) {
  if (closed()) {
    return refusal();
  }
  {
    const sync::ScopedLock lock(receive_mutex_, send_mutex_);
    const Options& current = options_.read();
    Options changed = current;
    WEFT_TRY(change(changed));
    const bool marks_change = changed.send_high_water_mark != current.send_high_water_mark ||
                              changed.receive_high_water_mark != current.receive_high_water_mark;
    WEFT_TRY(check_security(changed));
    if (changed.router_raw != current.router_raw && type() == SocketType::router) {
      WEFT_TRY(make_raw(changed.router_raw));
    }
    options_.replace(std::move(changed));
    send_bounds_.set(current);
    share_.send_timeout.store(current.send_timeout.count(), std::memory_order_relaxed);
    if (marks_change) {
      apply_marks();
    }
  }
  share_.output_parker.wake_with_fence();  // a higher mark gives a waiting sender room
  return {};
}

Instant SocketCore::linger_end() const noexcept {
  const Duration linger = options_.get(&Options::linger);
  if (linger == Duration::zero()) {
    return kNoLinger;
  }
  return linger < Duration::zero() ? kNever : deadline_after(sys::now(), linger);
}

// A raw ROUTER keeps its type and gets the pattern of STREAM.
Result<void> SocketCore::make_raw(bool raw) {
  const sync::LockGuard lock(table_mutex_);
  // Raw peers pass no mechanism, and have no inproc.
  if (!endpoints_.empty() || context_->binds_inproc(*this)) {
    return Error(Errc::invalid_argument, "router_raw has to be set before anything is bound or connected");
  }
  auto pattern = find_pattern(raw ? SocketType::stream : SocketType::router)->make(traits_, options_.read());
  ended_.remember(pattern_->drops());
  pattern_ = std::move(pattern);
  return {};
}

bool SocketCore::raw() const noexcept {
  return type() == SocketType::stream || (type() == SocketType::router && options_.get(&Options::router_raw));
}

void SocketCore::apply_marks() {
  const sync::LockGuard lock(table_mutex_);
  for (const auto& [connection, keep] : endpoints_.connections()) {
    connection->apply_marks(options_.read());
    connection->receive_side().handle_credit();
    connection->link().request_marks();
  }
  for (const auto& [pipe, keep] : endpoints_.inproc_pipes()) {
    InprocLink& link = *pipe->link();
    link.set_marks(pipe->link_end(), options_.read().send_high_water_mark, options_.read().receive_high_water_mark);
    if (ConnectionOwner* peer = link.owner[1 - pipe->link_end()].load(std::memory_order_acquire); peer != nullptr) {
      peer->share().output_parker.wake_with_fence();
    }
  }
}

Result<void> SocketCore::subscribe(const FilterView& topic, bool on) {
  const sync::LockGuard lock(send_mutex_);
  if (refuses()) {
    return refusal();
  }
  if (traits_.groups) {
    return Error(Errc::not_supported, "this socket type joins groups");
  }
  return on ? pattern_->subscribe(topic) : pattern_->unsubscribe(topic);
}

Result<void> SocketCore::join(Bytes group, bool on) {
  const sync::LockGuard lock(send_mutex_);
  if (refuses()) {
    return refusal();
  }
  if (!traits_.groups) {
    return Error(Errc::not_supported, "this socket type joins no groups");
  }
  const FilterView name{FilterKind::prefix, as_text(group)};
  return on ? pattern_->subscribe(name) : pattern_->unsubscribe(name);
}

Result<bool> SocketCore::peer_writable(Bytes routing_id) {
  const sync::LockGuard lock(send_mutex_);
  if (refuses()) {
    return refusal();
  }
  return pattern_->peer_writable(routing_id);
}

bool SocketCore::conflates(const Options& options) const noexcept { return traits_.conflates && options.conflate; }

// Options disconnect_message and hiccup_message.
std::string SocketCore::last_message(const Options& options, bool outgoing) const {
  if (outgoing) {
    return traits_.takes_hiccup ? options.hiccup_message : std::string();
  }
  return traits_.takes_goodbye ? options.disconnect_message : std::string();
}

// Option connect_routing_id names the peer of the next connect, once.
void SocketCore::name_peer(Pipe& pipe) noexcept {
  pipe.notes.names_peer = !options_.read().connect_routing_id.empty();
  if (pipe.notes.names_peer) {
    options_.change(
        [&pipe](Options& options) { pipe.notes.routing_id = std::exchange(options.connect_routing_id, {}); });
  }
}

void SocketCore::give_name_back(Pipe& pipe) noexcept {
  if (pipe.notes.names_peer) {
    options_.change([&pipe](Options& options) { options.connect_routing_id = std::move(pipe.notes.routing_id); });
  }
}

void SocketCore::attach(Pipe& pipe) {
  try {
    pattern_->attach(pipe);
  } catch (const std::bad_alloc&) {
    detach(pipe);
    throw;
  }
  if (!std::exchange(pipe.notes.attached, true)) {
    pipe.notes.order = ++attached_count_;
  }
}

void SocketCore::detach(Pipe& pipe) noexcept {
  pattern_->detach(pipe);
  pattern_->deactivate(pipe);
  pipe.notes.attached = false;
}

// --- the end ---

void SocketCore::terminate() noexcept {
  ends_.terminated.store(true, std::memory_order_release);
  monitor_.end(Errc::terminated);
  share_.input_parker.wake_with_fence();
  share_.output_parker.wake_with_fence();
}

void SocketCore::close() noexcept {
  if (ends_.closed.exchange(true) || context_->inherited()) {
    return;
  }
  const auto keep = shared_from_this();
  flush_batches();
  unbind_all();
  close_pipes(linger_end());
  share_.input_parker.wake_with_fence();
  share_.output_parker.wake_with_fence();
  monitor_.end(Errc::closed);
  end_feed_if_quiet();
  context_->forget(*this);
}

void SocketCore::close_pipes(Instant deadline) noexcept {
  Endpoints::InprocPipes inproc;
  {
    const sync::ScopedLock lock(receive_mutex_, send_mutex_);
    collect_signals();
    const sync::LockGuard table(table_mutex_);
    for (auto& [connection, connected] : endpoints_.connections()) {
      if (connected.pipe.notes.attached) {
        detach(connected.pipe);
      }
      connection->link().request_close(deadline);  // nothing happens to one that has finished
    }
    for (const auto& [key, owned] : endpoints_.inproc_pipes()) {
      Pipe& pipe = *owned.pipe;
      if (pipe.notes.attached) {
        detach(pipe);
      }
      ended_.remember(pipe);
    }
    inproc = endpoints_.close();
    ended_.remove_all([&](Pipe& pipe) {
      sync::assume_locked(receive_mutex_);
      sync::assume_locked(table_mutex_);
      if (pipe.connection() != nullptr) {
        ended_.remember(pipe);
        endpoints_.erase(pipe.connection());  // the connection has finished: the table kept only its input
      }
    });
  }
  for (const auto& [key, owned] : inproc) {
    close_inproc(*owned.pipe, deadline);
  }
}

}  // namespace weft::msg
