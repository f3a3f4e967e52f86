// SPDX-License-Identifier: MIT
// Link: dialling, and the functions that the other files of the link share.
#include "weft/msg/connection/link.h"

#include <algorithm>
#include <utility>

#include "weft/msg/connection/connection.h"
#include "weft/msg/connection/io_service.h"
#include "weft/sys/clock.h"

namespace weft::msg {

namespace {
// The kernel gives up on a peer that does not answer a connect. A silent proxy has answered it, so the link gives up by
// itself.
constexpr Duration kProxyPatience = std::chrono::seconds(30);
}  // namespace

Link::Link(ConnectionCommon& common, SendSide& send, ReceiveSide& receive, std::shared_ptr<ConnectionOwner> owner,
           std::unique_ptr<Connector> connector, bool proxied)
    : common_(common),
      send_(send),
      receive_(receive),
      keep_owner_(std::move(owner)),
      connector_(std::move(connector)),
      proxied_(proxied) {}

std::shared_ptr<void> Link::keep_alive() const { return common_.connection.shared_from_this(); }

void Link::schedule(rt::TimerId& timer, Instant deadline, void (*fire)(void*)) {
  rt::TimerWheel& timers = common_.io.loop().timers();
  (void)timers.cancel(timer);  // false, and harmless, for one that fired: ids are never used again
  timer = {};
  if (deadline != kNever) {
    timer = timers.schedule(deadline, {fire, this});
  }
}

void Link::start() {
  if (phase_ == Phase::finished) {
    return;  // an application's thread closed it before this task ran
  }
  if (connector_ == nullptr) {
    begin_handshake(std::move(common_.stream));
    return;
  }
  connector_->dialer.on_resolved([weak = common_.connection.weak_from_this(), &loop = common_.io.loop()] {
    loop.post([weak] {
      if (const auto self = weak.lock(); self != nullptr && self->link().phase_ == Phase::dialling) {
        self->link().handle_dial(self->link().connector_->dialer.finish());
      }
    });
  });
  dial();
}

void Link::dial() {
  phase_ = Phase::dialling;
  dialled_fd_ = -1;
  Duration timeout = common_.owner.options_copy().connect_timeout;
  if (timeout <= Duration::zero() && proxied_) {
    timeout = kProxyPatience;
  }
  if (timeout > Duration::zero()) {
    schedule<&Link::handle_connect_time>(timers_.connect, deadline_after(sys::now(), timeout));
  }
  handle_dial(connector_->dialer.begin());
}

void Link::handle_dial(const Result<net::Progress>& progress) {
  if (!progress) {
    connector_->dialer.cancel();
    common_.owner.monitor().emit(describe(EventKind::connect_failed, progress.error(), dialled_fd_));
    const int os_errno = progress.error().os_errno();
    retry_later(os_errno == ECONNREFUSED || os_errno == ENOENT ? Cause::refused : Cause::lost);
    return;
  }
  switch (*progress) {
    case net::Progress::connected: begin_handshake(connector_->dialer.take_stream()); return;
    case net::Progress::resolving: return;
    case net::Progress::pending: break;
  }
  dialled_fd_ = connector_->dialer.fd();
  const sys::Interest interest = connector_->dialer.interest();
  auto watch = common_.io.loop().watch(dialled_fd_, interest, true, this);
  if (!watch) {
    handle_dial(watch.error());
    return;
  }
  watch_ = *watch;
  if (interest == sys::Interest::writable) {  // else the link waits for the proxy's answer
    common_.owner.monitor().emit(describe(EventKind::connect_delayed));
  }
}

void Link::handle_connect_time() {
  if (phase_ == Phase::dialling) {
    common_.io.loop().unwatch(std::exchange(watch_, 0));
    handle_dial(Error(Errc::timed_out, "connecting took too long"));
  }
}

void Link::retry_later(Cause cause) {
  phase_ = Phase::idle;
  other_end_.clear();
  schedule<&Link::handle_connect_time>(timers_.connect, kNever);
  const Options options = common_.owner.options_copy();
  gave_up_ = (options.reconnect_interval < Duration::zero() && cause != Cause::misgreeted) ||
             ((cause | (closing_.begun ? Cause::closing : 0)) & options.reconnect_stop) != 0;
  if (closing_.begun && (gave_up_ || (send_.empty()))) {
    finish();  // no connection will ever take the queued messages
    return;
  }
  if (gave_up_) {
    return;
  }
  const Duration delay = cause == Cause::misgreeted ? Duration::zero() : connector_->backoff.next();
  MonitorEvent event = describe(EventKind::connect_retried);
  event.delay = delay;
  common_.owner.monitor().emit(std::move(event));
  schedule<&Link::dial>(timers_.retry, sys::now() + delay);
}

// An unnamed unix socket has no address.
std::string Link::find_other_end() const {
  std::string address;
  if (!connecting()) {
    address = common_.stream->peer_address();
  } else if (const auto local = sys::local_address(common_.stream->fd()); local) {
    address = local->to_text();
  }
  return address.empty() ? address : common_.endpoint.substr(0, common_.endpoint.find("://") + 3) + address;
}

MonitorEvent Link::describe(EventKind kind, Error reason, int fd) const {
  MonitorEvent event{kind, common_.endpoint, reason, {}, fd};
  event.other = other_end_;
  event.outgoing = connecting();
  return event;
}

void Link::handle_event(const sys::PollEvent& event) {
  const auto keep = keep_alive();
  switch (phase_) {
    case Phase::dialling:
      common_.io.loop().unwatch(std::exchange(watch_, 0));  // finish() may close the descriptor
      handle_dial(connector_->dialer.finish());
      return;
    case Phase::handshake:
      handle_handshake();
      // While the authenticator is asked, no bytes are read. A client still owes some, so one that ends its direction
      // has given up. A server may have sent an ERROR before its end.
      if (phase_ == Phase::handshake && zap_ != nullptr && !connecting() && (event.peer_closed || event.failed)) {
        fail_handshake(Error(Errc::connection_closed, "the client left before the authenticator answered"));
      }
      return;
    case Phase::traffic: handle_traffic(event); return;
    case Phase::draining: drain(); return;
    case Phase::idle:
    case Phase::finished: return;
  }
}

}  // namespace weft::msg
