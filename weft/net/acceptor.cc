// SPDX-License-Identifier: MIT
#include "weft/net/acceptor.h"

#include <utility>

namespace weft::net {

std::shared_ptr<Acceptor> Acceptor::make(rt::Loop& loop, std::unique_ptr<Listener> listener, Handlers handlers) {
  return std::shared_ptr<Acceptor>(new Acceptor(loop, std::move(listener), std::move(handlers)));
}

void Acceptor::start() {
  resume_timer_ = {};
  if (listener_->fd() < 0) {
    return;
  }
  // Level-triggered: the next turn takes the connections that this turn leaves.
  if (auto watch = loop_.watch(listener_->fd(), sys::Interest::readable, false, this); watch) {
    watch_ = *watch;
  } else {
    pause(watch.error());
  }
}

void Acceptor::handle_event(const sys::PollEvent& /*event*/) {
  const auto keep = shared_from_this();  // a handler may close it, and the owner drop it
  for (int i = 0; i < kAcceptsPerTurn && watch_ != 0; ++i) {
    auto stream = listener_->try_accept();
    if (stream) {
      handlers_.accepted(std::move(*stream));
    } else if (stream.error() == Errc::would_block) {
      return;
    } else if (stream.error() == Errc::resource_exhausted) {
      return pause(stream.error());
    } else {
      handlers_.failed(stream.error());
    }
  }
}

void Acceptor::pause(const Error& why) {
  resume_timer_ =
      loop_.timers().schedule(loop_.now() + kPause, {[](void* self) { static_cast<Acceptor*>(self)->start(); }, this});
  if (resume_timer_) {
    loop_.unwatch(std::exchange(watch_, 0));
  }
  handlers_.paused(why);  // last: it may close this
}

void Acceptor::close() noexcept {
  if (listener_->fd() < 0) {
    return;
  }
  if (resume_timer_) {
    (void)loop_.timers().cancel(std::exchange(resume_timer_, {}));
  }
  if (watch_ != 0) {
    loop_.unwatch(std::exchange(watch_, 0));
  }
  listener_->close();
}

}  // namespace weft::net
