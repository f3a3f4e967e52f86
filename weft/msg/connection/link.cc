// SPDX-License-Identifier: MIT
// Link: dialling, and the functions that the other files of the link share.
#include "weft/msg/connection/link.h"

#include <algorithm>
#include <utility>

#include "weft/base/assert.h"
#include "weft/msg/connection/connection.h"
#include "weft/msg/connection/io_service.h"
#include "weft/sys/clock.h"

namespace weft::msg {

namespace {
// The kernel gives up on a peer that does not answer a connect. A silent proxy has answered it, so the link gives up by
// itself.
constexpr Duration kProxyPatience = std::chrono::seconds(30);
constexpr Duration kLookupPatience = std::chrono::seconds(30);  // the look-up goes on, for the next attempt
}  // namespace

Link::Link(ConnectionCommon& common, SendSide& send, ReceiveSide& receive, std::shared_ptr<ConnectionOwner> owner,
           std::unique_ptr<Connector> connector, bool proxied)
    : common_(common),
      send_(send),
      receive_(receive),
      keep_owner_(std::move(owner)),
      connector_(std::move(connector)),
      proxied_(proxied) {}

Link::Link(ConnectionCommon& common, SendSide& send, ReceiveSide& receive, std::shared_ptr<ConnectionOwner> owner,
           const Accepted& accepted)
    : common_(common),
      send_(send),
      receive_(receive),
      keep_owner_(std::move(owner)),
      arrival_{accepted.since, accepted.greeting_written} {}

std::shared_ptr<void> Link::keep_alive() const { return common_.connection.shared_from_this(); }

void Link::schedule(Timer& timer, Instant deadline, void (*fire)(void*)) noexcept {
  rt::TimerWheel& timers = common_.io.loop().timers();
  (void)timers.cancel(timer.id);  // false, and harmless, for one that fired: ids are never used again
  timer = {};
  if (deadline == kNever) {
    return;
  }
  timer.id = timers.schedule(deadline, {fire, this});
  if (!timer.id) {
    timer.unscheduled = deadline;
    timer.fire = fire;
    common_.io.retry_timers(timer_retry_);
  }
}

void Link::retry_timers() noexcept {
  const auto keep = keep_alive();
  const Instant now = sys::now();
  for (Timer* timer :
       {&timers_.retry, &timers_.connect, &timers_.peer, &timers_.close, &timers_.take_down, &timers_.linger}) {
    const Instant deadline = std::exchange(timer->unscheduled, kNever);
    if (deadline <= now) {
      timer->fire(this);
    } else if (deadline != kNever) {
      schedule(*timer, deadline, timer->fire);
    }
  }
}

void Link::handle_no_memory() noexcept {
  constexpr Error kReason(Errc::resource_exhausted, "no memory for the connection");
  common_.io.loop().unwatch(std::exchange(watch_, 0));
  if (phase_ == Phase::finished) {
    return;
  }
  if (common_.stream != nullptr) {
    WEFT_ASSERT(send_.held_by_link() && receive_.held_by_link());
    if (phase_ == Phase::traffic && !closing_.begun) {
      common_.owner.connection_lost(common_.connection);
    }
    fail_handshake(kReason);
  } else if (connecting()) {
    connector_->dialer.cancel();
    emit(EventKind::connect_failed, kReason, dialled_.fd);
    retry_later(Cause::lost);
  } else {
    finish();
  }
}

void Link::handle_requests(unsigned requests) noexcept {
  const auto keep = keep_alive();
  if ((requests & IoService::resolved) != 0) {
    run<&Link::handle_resolved>();
  }
  if ((requests & IoService::read) != 0) {
    resume_reading();
  }
  if ((requests & IoService::read_left_over) != 0) {
    run<&Link::read_left_over>();
  }
  if ((requests & IoService::read_held) != 0) {
    read_held();
  }
  if ((requests & IoService::peer_time) != 0) {
    run<&Link::handle_peer_time>();
  }
  if ((requests & IoService::write_layer) != 0) {
    await_room();
  }
  line_.end_due |= (requests & IoService::take_down) != 0;
  if (line_.end_due) {
    end_in_turn((requests & (IoService::drop_unread | IoService::close_when_sent | IoService::close)) != 0);
  }
  if ((requests & IoService::drop_unread) != 0) {
    run<&Link::drop_unread>();
  }
  if ((requests & IoService::close_when_sent) != 0) {
    run<&Link::close_when_sent>();
  }
  if ((requests & IoService::close) != 0) {
    close(Instant(Duration(close_deadline_.load(std::memory_order_relaxed))));  // ordered by the request
  }
  if ((requests & IoService::marks) != 0 && phase_ == Phase::traffic) {
    bound_unsent();
  }
}

void Link::begin() {
  if (phase_ != Phase::idle) {
    return;  // an application's thread closed it before this task ran
  }
  if (!listed_) {
    common_.io.add_link();
    listed_ = true;
  }
  if (connector_ == nullptr) {
    begin_handshake(std::move(common_.stream));
    return;
  }
  connector_->dialer.on_resolved([weak = common_.connection.weak_from_this(), &io = common_.io] {
    if (auto self = weak.lock(); self != nullptr) {
      io.request(std::move(self), IoService::resolved);
    }
  });
  dial();
}

void Link::handle_resolved() {
  if (phase_ == Phase::dialling) {
    begin_dial_step(connector_->dialer.finish());
  }
}

void Link::dial() {
  phase_ = Phase::dialling;
  dialled_ = {};
  begin_dial_step(connector_->dialer.begin());
}

// Of an attempt's two steps, the look-up of the name and connecting, each has a time of its own. Each address has that
// for connecting.
void Link::begin_dial_step(const Result<net::Progress>& progress) {
  Duration timeout = common_.options->connect_timeout;
  if (timeout <= Duration::zero() && proxied_) {
    timeout = kProxyPatience;
  }
  if (progress && *progress == net::Progress::resolving) {
    timeout = kLookupPatience;
  }
  const Instant deadline = timeout > Duration::zero()
                               ? deadline_after(sys::now(), timeout) + connector_->dialer.time_to_last_address()
                               : kNever;
  schedule<&Link::handle_connect_time>(timers_.connect, deadline);
  handle_dial(progress);
}

void Link::handle_dial(const Result<net::Progress>& progress) {
  name_far_end();
  if (!progress) {
    connector_->dialer.cancel();
    emit(EventKind::connect_failed, progress.error(), dialled_.fd);
    const int os_errno = progress.error().os_errno();
    retry_later(os_errno == ECONNREFUSED || os_errno == ENOENT ? Cause::refused : Cause::lost);
    return;
  }
  switch (*progress) {
    case net::Progress::connected: begin_handshake(connector_->dialer.take_stream()); return;
    case net::Progress::resolving: return;
    case net::Progress::pending: break;
  }
  const net::Dialer& dialer = connector_->dialer;
  dialled_.fd = dialer.tried_fd();
  auto watch = common_.io.loop().watch(dialer.fd(), dialer.interest(), true, this);
  if (!watch) {
    handle_dial(watch.error());
    return;
  }
  watch_ = *watch;
  if (dialer.tried() !=
      std::exchange(dialled_.tries_told, dialer.tried())) {  // else an address under way, or the proxy
    emit(EventKind::connect_delayed);
  }
}

void Link::name_far_end() {
  const auto& address = connector_->dialer.tried_address();
  if (address && common_.owner.monitor().watched()) {
    dialled_.address = name_other_end(common_.endpoint, address->to_text());
  }
}

void Link::handle_connect_time() {
  if (phase_ == Phase::dialling) {
    common_.io.loop().unwatch(std::exchange(watch_, 0));
    const bool looks_up = connector_->dialer.resolving();
    handle_dial(looks_up ? Error(Errc::timed_out, "looking up the host's name took too long")
                         : Error(Errc::timed_out, "connecting took too long"));
  }
}

void Link::retry_later(Cause cause, Pace pace) noexcept {
  phase_ = Phase::idle;
  other_end_.clear();
  dialled_.address.clear();
  schedule<&Link::handle_connect_time>(timers_.connect, kNever);
  const Options& options = *common_.options;
  const bool gives_up = (options.reconnect_interval < Duration::zero() && cause != Cause::misgreeted) ||
                        ((cause | (closing_.begun ? Cause::closing : 0)) & options.reconnect_stop) != 0;
  if (gives_up || (closing_.begun && send_.empty())) {
    finish();  // no connection will ever take the queued messages; the socket sends its next ones elsewhere
    return;
  }
  const Duration delay = cause == Cause::misgreeted ? Duration::zero()
                         : pace == Pace::costly     ? connector_->backoff.next_costly()
                         : pace == Pace::cut        ? connector_->backoff.next_cut()
                                                    : connector_->wait_after_failure();
  common_.owner.monitor().emit_made(EventKind::connect_retried, [&] {
    MonitorEvent event = describe(EventKind::connect_retried);
    event.delay = delay;
    return event;
  });
  schedule<&Link::dial>(timers_.retry, sys::now() + delay);
}

// Of an unnamed unix socket "ipc://", as libzmq has it.
std::string Link::find_other_end() const {
  std::string address;
  if (!connecting()) {
    address = common_.stream->peer_address();
  } else if (const auto local = sys::local_address(common_.stream->fd()); local) {
    address = local->to_text();
  }
  return name_other_end(common_.endpoint, address);
}

MonitorEvent Link::describe(EventKind kind, Error reason, int fd) const {
  MonitorEvent event{kind, common_.endpoint, reason, {}, fd};
  event.other = other_end_;
  event.address = dialled_.address;
  event.outgoing = connecting();
  return event;
}

void Link::emit(EventKind kind, Error reason, int fd, std::uint32_t detail, PeerId peer) const noexcept {
  common_.owner.monitor().emit_made(kind, [&] {
    MonitorEvent event = describe(kind, reason, fd);
    event.detail = detail;
    event.peer = peer;
    return event;
  });
}

void Link::handle_event(const sys::PollEvent& event) {
  const auto keep = keep_alive();
  if (phase_ == Phase::traffic) {
    handle_traffic(event);
    return;
  }
  run<&Link::handle_readiness>();
  // While the authenticator is asked, no bytes are read. A client that still owes some and ends its direction has given
  // up. A server may have sent an ERROR before its end.
  const bool left = event.peer_closed || event.failed;
  if (phase_ == Phase::handshake && zap_ != nullptr && !connecting() && left && !has_said_all()) {
    fail_handshake(Error(Errc::connection_closed, "the client left before the authenticator answered"));
  }
}

// Before and after the traffic.
void Link::handle_readiness() {
  switch (phase_) {
    case Phase::dialling:
      common_.io.loop().unwatch(std::exchange(watch_, 0));  // finish() may close the descriptor
      handle_dial(connector_->dialer.finish());
      return;
    case Phase::handshake:
      if (!refused_for_now_ || reads_now()) {
        handle_handshake();
      }
      return;
    case Phase::draining:
      if (reads_now()) {
        drain();
      }
      return;
    case Phase::traffic:
    case Phase::idle:
    case Phase::finished: return;
  }
}

}  // namespace weft::msg
