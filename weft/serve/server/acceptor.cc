// SPDX-License-Identifier: MIT
#include "weft/serve/server/acceptor.h"

#include <utility>

namespace weft::serve {

void Acceptor::start() {
  timer_ = {};
  // Level-triggered: what one turn does not accept, the next one does.
  if (auto watch = loop_.watch(listener_->fd(), sys::Interest::readable, false, this)) {
    watch_ = *watch;
  } else {
    pause();
  }
}

void Acceptor::handle_event(const sys::PollEvent& /*event*/) {
  for (int i = 0; i < kAcceptsPerTurn; ++i) {
    auto stream = listener_->try_accept();
    if (stream) {
      place_(std::move(*stream));
    } else if (stream.error() == Errc::would_block) {
      return;
    } else if (stream.error() == Errc::resource_exhausted) {
      return pause();
    } else {
      counters_.rejected[static_cast<std::size_t>(Rejection::failed)].add();
    }
  }
}

void Acceptor::pause() {
  counters_.accept_pauses.add();
  loop_.unwatch(std::exchange(watch_, 0));
  timer_ =
      loop_.timers().schedule(loop_.now() + kPause, {[](void* self) { static_cast<Acceptor*>(self)->start(); }, this});
}

void Acceptor::close() noexcept {
  (void)loop_.timers().cancel(std::exchange(timer_, {}));
  loop_.unwatch(std::exchange(watch_, 0));
  listener_->close();
}

}  // namespace weft::serve
