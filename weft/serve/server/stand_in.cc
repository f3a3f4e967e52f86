// SPDX-License-Identifier: MIT
#include "weft/serve/server/stand_in.h"

#include <new>
#include <utility>

#include "weft/rt/loop/activity.h"

namespace weft::serve {

StandIn::StandIn(rt::Loop& loop, std::shared_ptr<const rt::Activity> acceptor, std::unique_ptr<net::Listener> listener,
                 std::function<void(std::unique_ptr<net::ByteStream>)> accepted, std::function<void()> failed) noexcept
    : loop_(loop),
      acceptor_(std::move(acceptor)),
      listener_(std::move(listener)),
      accepted_(std::move(accepted)),
      failed_(std::move(failed)) {}

// Edge-triggered: connections that the other core takes wake this one once. Each wakes one core of those that wait.
Result<void> StandIn::start() {
  constexpr sys::Interest kInterest = sys::Interest::readable | sys::Interest::one_of_many;
  watch_ = WEFT_TRY(loop_.watch(listener_->fd(), kInterest, true, this));
  return {};
}

void StandIn::close() noexcept {
  if (listener_->fd() < 0) {
    return;
  }
  if (!listener_->inherited()) {  // in a forked child the loop is the parent's
    loop_.unwatch(std::exchange(watch_, 0));
    if (timer_) {
      (void)loop_.timers().cancel(std::exchange(timer_, {}));
    }
  }
  listener_->close();
}

void StandIn::handle_event(const sys::PollEvent& /*event*/) { look_later(); }

// Without memory for the timer the next connection tries again.
void StandIn::look_later() {
  if (!timer_) {
    timer_ = loop_.timers().schedule(loop_.now() + kPatience, {[](void* self) {
                                                                 auto& stand_in = *static_cast<StandIn*>(self);
                                                                 stand_in.timer_ = {};
                                                                 stand_in.look();
                                                               },
                                                               this});
  }
}

// A core outside of a turn has taken its connections. A core in a turn that began a moment ago may not have.
void StandIn::look() {
  const Instant now = loop_.now();
  if (!acceptor_->busy_since(now)) {
    return;
  }
  look_later();
  if (acceptor_->busy_since(now - kPatience)) {
    accept();
  }
}

void StandIn::accept() {
  for (int i = 0; i < kAcceptsPerLook; ++i) {
    auto stream = listener_->try_accept();
    if (!stream && (stream.error() == Errc::would_block || stream.error() == Errc::resource_exhausted ||
                    stream.error() == Errc::invalid_argument)) {
      return;  // there is none, or no memory, or the acceptor has closed
    }
    if (!stream) {
      failed_();
      continue;
    }
    try {
      accepted_(*std::move(stream));
    } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): the connection is closed
    }
  }
}

}  // namespace weft::serve
