// SPDX-License-Identifier: MIT
#include "weft/msg/socket/acceptor.h"

#include <utility>

#include "weft/msg/socket/socket_core.h"
#include "weft/sys/clock.h"

namespace weft::msg {

Acceptor::Acceptor(SocketCore& core, rt::Loop& loop, std::unique_ptr<net::Listener> listener)
    : core_(core), loop_(loop), listener_(std::move(listener)), endpoint_(listener_->bound_endpoint()) {}

void Acceptor::start() {
  if (listener_->fd() < 0) {
    return;
  }
  // Level-triggered: what one turn does not accept, the next one does.
  if (auto watch = loop_.watch(listener_->fd(), sys::Interest::readable, false, this); watch) {
    watch_ = *watch;
  } else {
    core_.monitor().emit({EventKind::accept_failed, endpoint_, watch.error()});
    pause();
  }
}

void Acceptor::handle_event(const sys::PollEvent& /*event*/) {
  const auto keep = shared_from_this();
  for (int i = 0; i < kAcceptsPerTurn && watch_ != 0; ++i) {
    auto stream = listener_->try_accept();
    if (stream) {
      core_.add_accepted(std::move(*stream), endpoint_);
      continue;
    }
    if (stream.error() == Errc::would_block) {
      return;
    }
    core_.monitor().emit({EventKind::accept_failed, endpoint_, stream.error()});
    if (stream.error() == Errc::resource_exhausted) {
      pause();
    }
  }
}

void Acceptor::pause() {
  loop_.unwatch(std::exchange(watch_, 0));
  resume_timer_ =
      loop_.timers().schedule(sys::now() + kPause, {[](void* self) { static_cast<Acceptor*>(self)->resume(); }, this});
}

void Acceptor::resume() {
  resume_timer_ = {};
  start();
}

void Acceptor::close() {
  if (listener_->fd() < 0) {
    return;
  }
  (void)loop_.timers().cancel(resume_timer_);
  loop_.unwatch(std::exchange(watch_, 0));
  const int fd = listener_->fd();
  listener_->close();
  core_.monitor().emit({EventKind::closed, endpoint_, Error(), {}, fd});
}

}  // namespace weft::msg
