// SPDX-License-Identifier: MIT
#include "weft/net/acceptor.h"

#include <new>
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
  refill();
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
    auto stream = accept();
    if (stream) {
      continue;
    }
    if (stream.error() == Errc::would_block) {
      if (std::exchange(holds_more_, false)) {
        listener_->hold_more(false);
      }
      return;
    } else if (stream.error() == Errc::resource_exhausted) {
      if (!give_up_spare()) {
        return pause(stream.error());
      }
    } else {
      handlers_.failed(stream.error());
    }
  }
}

// Hands one connection over. A connection for which memory runs out is closed.
Result<void> Acceptor::accept() noexcept {
  try {
    handlers_.accepted(WEFT_TRY(listener_->try_accept()));
  } catch (const std::bad_alloc&) {
    return Error(Errc::resource_exhausted, "no memory for an accepted connection");
  }
  return {};
}

void Acceptor::pause(const Error& why) {
  resume_timer_ =
      loop_.timers().schedule(loop_.now() + kPause, {[](void* self) { static_cast<Acceptor*>(self)->start(); }, this});
  if (resume_timer_) {
    loop_.unwatch(std::exchange(watch_, 0));
  }
  if (!std::exchange(holds_more_, true)) {
    listener_->hold_more(true);
  }
  handlers_.paused(why);  // last: it may close this
}

void Acceptor::keep_spare(std::size_t descriptors) {
  spare_.reserve(descriptors);
  spare_max_ = descriptors;
}

// Frees a descriptor for the next connection. Returns false if there is none to spare.
bool Acceptor::give_up_spare() noexcept {
  if (spare_.empty()) {
    return false;
  }
  spare_.pop_back();
  refill_later();
  return true;
}

void Acceptor::refill() noexcept {
  while (spare_.size() < spare_max_) {
    auto one = sys::EventFd::make();
    if (!one) {
      break;
    }
    spare_.push_back(std::move(*one));  // reserved
  }
  if (spare_.size() < spare_max_) {
    refill_later();
  }
}

// Without memory for the timer the next connection that finds no descriptor tries again.
void Acceptor::refill_later() noexcept {
  if (!refill_timer_ && listener_->fd() >= 0) {
    refill_timer_ = loop_.timers().schedule(loop_.now() + kRefill, {[](void* self) {
                                                                      auto& acceptor = *static_cast<Acceptor*>(self);
                                                                      acceptor.refill_timer_ = {};
                                                                      acceptor.refill();
                                                                    },
                                                                    this});
  }
}

void Acceptor::close() noexcept {
  if (listener_->fd() < 0) {
    return;
  }
  if (listener_->inherited()) {
    listener_->close();  // the loop is the parent's: its poller is shared with this process, its thread is not here
    return;
  }
  spare_.clear();
  spare_max_ = 0;
  for (rt::TimerId* const timer : {&resume_timer_, &refill_timer_}) {
    if (*timer) {
      (void)loop_.timers().cancel(std::exchange(*timer, {}));
    }
  }
  if (watch_ != 0) {
    loop_.unwatch(std::exchange(watch_, 0));
  }
  listener_->close();
}

}  // namespace weft::net
