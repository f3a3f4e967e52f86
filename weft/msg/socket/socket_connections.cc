// SPDX-License-Identifier: MIT
// SocketCore: its connections, from the first handshake until the application has taken all their input.
#include <algorithm>
#include <new>
#include <utility>

#include "weft/msg/connection/io_service.h"
#include "weft/msg/socket/context_core.h"
#include "weft/msg/socket/socket_core.h"
#include "weft/msg/socket/zap.h"
#include "weft/sys/clock.h"

namespace weft::msg {

Pipe& SocketCore::pipe_of(Connection& connection) noexcept { return static_cast<Pipe&>(connection.pipe()); }

Result<std::unique_ptr<ZapRequest>> SocketCore::ask_authenticator(rt::Loop& loop, const ZapQuestion& question,
                                                                  ZapRequest::Done done) {
  return ask_zap(*context_, loop, question, std::move(done));
}

void SocketCore::collect_signals() noexcept {
  input_.take_signals([this](PipeShare& signalled) {
    if (auto& pipe = static_cast<Pipe&>(signalled); pipe.notes.attached) {
      pattern_->activate(pipe);
    }
  });
}

void SocketCore::add_accepted(std::unique_ptr<net::ByteStream> stream, const Listening& listening, Lobby& lobby) {
  if (unread_ended_.load(std::memory_order_relaxed) >= EndedPipes::kUnreadEndedMax) {
    monitor_.emit(EventKind::accept_failed, listening.endpoint,
                  Error(Errc::resource_exhausted, "connections that ended hold too much that was not received"));
    return;
  }
  const Instant now = context_->io().loop().now();
  auto place = bounds_.admit(*stream, listening.gate, options_.get(&Options::connections_max), now);
  monitor_.emit_made(place ? EventKind::accepted : EventKind::accept_failed, [&] {
    MonitorEvent event{EventKind::accepted, listening.endpoint, Error(), {}, stream->fd()};
    if (!place) {
      event = {EventKind::accept_failed, listening.endpoint, place.error()};
    }
    event.other = monitor_.watched() ? name_other_end(listening.endpoint, stream->peer_address()) : std::string();
    return event;
  });
  if (!place) {
    return;
  }
  if (raw()) {  // the application learns of a connection at once
    add_connection({{std::move(stream), now}, std::move(*place)}, listening);
  } else {
    lobby.enter(std::move(stream), std::move(*place));
  }
}

void SocketCore::add_connection(Lobby::Pending pending, const Listening& listening) {
  auto connection = std::make_shared<Connection>(shared_from_this(), context_->io(), listening.options,
                                                 std::move(pending.peer), listening.endpoint, listening.layering);
  const sync::ScopedLock lock(receive_mutex_, table_mutex_);
  if (closed()) {
    return;
  }
  make_room_for_end();
  Endpoints::ConnectedPipe& accepted = endpoints_.add(*this, connection);
  accepted.place = std::move(pending.place);
  try {
    connection->apply_marks(*listening.options);
    context_->io().loop().post([connection] { connection->link().start(); });
  } catch (const std::bad_alloc&) {
    endpoints_.erase(connection.get());
    throw;
  }
  context_->connection_started();  // before close() can find the connection
}

void SocketCore::make_room_for_end() { ended_.reserve(endpoints_.pipe_count() + 1); }

// The application sends nothing more there, and receives nothing more from there. The I/O thread reads, for the linger.
void SocketCore::leave(const std::shared_ptr<Connection>& connection, Instant deadline) noexcept {
  bool unswept = false;
  {
    const sync::ScopedLock lock(receive_mutex_, send_mutex_);
    unswept = leave_pipe(pipe_of(*connection));
  }
  if (unswept) {
    start_sweep();
  }
  end_left(connection, deadline);
}

// Returns true if the pattern has work left for start_sweep().
bool SocketCore::leave_pipe(Pipe& pipe) noexcept {
  pipe.notes.left = true;  // its handshake may end after this
  if (!pipe.notes.attached) {
    return false;
  }
  detach(pipe);
  return pattern_->sweep();
}

void SocketCore::end_left(const std::shared_ptr<Connection>& connection, Instant deadline) noexcept {
  forget_descriptor(*connection);
  context_->io().request(connection, IoService::read);
  connection->link().request_close(deadline);
}

// The peer's name becomes unknown under the locks, so of two threads one ends the peer.
Result<void> SocketCore::disconnect_peer(std::uint32_t routing_id) {
  const Instant deadline = linger_end();
  std::shared_ptr<Connection> connection;
  std::shared_ptr<InprocLink> link;
  int end = 0;
  bool unswept = false;
  {
    const sync::ScopedLock lock(receive_mutex_, send_mutex_);
    if (refuses()) {
      return refusal();
    }
    Pipe& pipe = *WEFT_TRY(pattern_->find_peer(routing_id));
    link = pipe.link();
    end = pipe.link_end();
    if (pipe.connection() != nullptr) {
      const sync::LockGuard table(table_mutex_);
      Endpoints::ConnectedPipe& peer = endpoints_.at(pipe.connection());
      connection = peer.connection;
      endpoints_.forget_name(peer);    // the socket that dialled does not dial again
      context_->connection_started();  // as in take_bound()
    }
    unswept = leave_pipe(pipe);
  }
  if (unswept) {
    start_sweep();
  }
  if (connection != nullptr) {
    const CountedConnection counted(*context_);
    connection->link().announce_end();
    end_left(connection, deadline);
  } else {
    disconnect_inproc(*link, end);
  }
  share_.output_parker.wake_with_fence();  // a sender that waits for this very peer retries, and fails
  return {};
}

bool SocketCore::connection_ready(Connection& connection, Bytes identity) {
  const sync::ScopedLock lock(receive_mutex_, send_mutex_);
  Pipe& pipe = pipe_of(connection);
  if (closed() || pipe.notes.left) {
    return true;  // the connection only lingers: the pattern does not get it
  }
  pipe.notes.peer = connection.link().peer();
  pipe.notes.origin.peer = pipe.notes.peer == nullptr ? 0 : pipe.notes.peer->id();
  pipe.notes.other_end = connection.link().other_end();
  pipe.notes.takes_filters = connection.link().peer_has_filters();
  attach(pipe);
  try {
    pipe.notes.ready = pattern_->ready(pipe, identity);
  } catch (const std::bad_alloc&) {
    detach(pipe);
    throw;
  }
  if (!pipe.notes.ready) {
    detach(pipe);
    return false;
  }
  if (traits_.receives) {
    (void)input_.add(connection, connection.fd());  // outside the set the I/O thread reads, and signals
  }
  return true;
}

void SocketCore::connection_lost(Connection& connection) {
  bool unswept = false;
  {
    const sync::ScopedLock lock(receive_mutex_, send_mutex_);
    Pipe& pipe = pipe_of(connection);
    pipe.notes.ready = false;
    if (!pipe.notes.attached) {
      return;
    }
    pattern_->lost(pipe);
    if (connection.options()->immediate) {
      pattern_->detach(pipe);  // nothing may be queued for a peer that is not there
      share_.output_parker.wake_with_fence();
    }
    unswept = pattern_->sweep();
  }
  if (unswept) {
    start_sweep();
  }
}

void SocketCore::connection_lingers(const std::string& endpoint, bool connected, Instant until) noexcept {
  context_->connection_lingers(endpoint, connected, until);
}

void SocketCore::connection_finished(Connection& connection) {
  bool unswept = false;
  bool bound = false;
  {
    const sync::ScopedLock lock(receive_mutex_, send_mutex_);
    collect_signals();
    Pipe& pipe = pipe_of(connection);
    bound = pipe.notes.datagrams && type() != SocketType::radio;  // RADIO only connects; DISH and DGRAM only bind
    pipe.notes.ready = false;
    connection.send_side().leave_list();
    {
      const sync::LockGuard table(table_mutex_);
      endpoints_.give_up(endpoints_.at(&connection));
    }
    end_pipe(pipe);
    connection.send_side().abandon();
    bury_drained();
    unswept = pattern_->sweep();
  }
  if (unswept) {
    start_sweep();
  }
  share_.output_parker.wake_with_fence();  // a sender that waits for this very peer retries, and fails
  if (bound) {
    monitor_.emit(EventKind::closed, connection.endpoint());
  }
  end_feed_if_quiet();
  context_->connection_ended();
}

// The other end is gone for good. The application can still receive the pipe's input.
void SocketCore::end_pipe(Pipe& pipe) noexcept {
  pipe.notes.ended = true;
  if (pipe.notes.attached) {
    pattern_->detach(pipe);
    pattern_->activate(pipe);
  }
  ended_.add(pipe);  // make_room_for_end()
}

// Forgets ended pipes whose input was taken.
void SocketCore::bury_drained() noexcept {
  ended_.sort_out(
      [this](Pipe& pipe) { return pipe.notes.attached && traits_.receives && !pipe.ending() && !pipe.drained(); },
      [this](Pipe& pipe) {
        sync::assume_locked(receive_mutex_);
        if (pipe.notes.attached) {
          pattern_->deactivate(pipe);
          pipe.notes.attached = false;
        }
        collect_signals();
        ended_.remember(pipe);
        const sync::LockGuard lock(table_mutex_);
        if (pipe.connection() != nullptr) {
          endpoints_.erase(pipe.connection());
        } else {
          endpoints_.erase_inproc(pipe);
        }
      });
}

Result<void> SocketCore::handle_subscription(Connection& connection, bool subscribe, const FilterView& topic) {
  {
    const sync::LockGuard lock(send_mutex_);
    if (!closed()) {
      WEFT_TRY(pattern_->handle_subscription(pipe_of(connection), subscribe, topic));
    }
  }
  share_.output_parker.wake_with_fence();  // a sender may wait for subscribers
  return {};
}

// The I/O thread does the work that detaching left in the pattern, a part every kSweepEvery: a thread that sends finds
// the lock free in between.
void SocketCore::start_sweep() noexcept {
  if (sweep_.active.exchange(true)) {
    return;
  }
  bool counted = false;
  try {
    counted = context_->start_io().has_value();
    if (counted) {
      context_->io().loop().post([this, keep = shared_from_this()] { sweep(); });
      return;
    }
  } catch (const std::bad_alloc&) {
    // as below
  }
  if (counted) {
    context_->connection_ended();
  }
  sweep_.active.store(false);  // the next peer that leaves starts it
}

void SocketCore::sweep() noexcept {
  constexpr Duration kSweepEvery = std::chrono::milliseconds(1);
  const std::shared_ptr<SocketCore> keep = sweep_.keep != nullptr ? std::move(sweep_.keep) : shared_from_this();
  sweep_.active.store(false);  // before the lock: work that is left after this sweep starts another
  bool more = false;
  if (!closed()) {
    const sync::LockGuard lock(send_mutex_);
    more = pattern_->sweep();
  }
  const auto fire = [](void* core) { static_cast<SocketCore*>(core)->sweep(); };
  if (more && !sweep_.active.exchange(true)) {
    if (context_->io().loop().timers().schedule(deadline_after(sys::now(), kSweepEvery), {fire, this})) {
      sweep_.keep = keep;
      return;
    }
    sweep_.active.store(false);
  }
  context_->connection_ended();
}

Result<std::size_t> SocketCore::topics() {
  const sync::LockGuard lock(send_mutex_);
  return refuses() ? Result<std::size_t>(refusal()) : pattern_->topics();
}

Result<std::size_t> SocketCore::subscribers() {
  const sync::LockGuard lock(send_mutex_);
  if (refuses()) {
    return refusal();
  }
  if (!traits_.takes_subscriptions && !(traits_.groups && !traits_.receives)) {
    return Error(Errc::not_supported, "no peer subscribes to a socket of this type");
  }
  return pattern_->subscribers();
}

}  // namespace weft::msg
