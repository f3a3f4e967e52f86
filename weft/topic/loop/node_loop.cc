// SPDX-License-Identifier: MIT
#include "weft/topic/loop/node_loop.h"

#include <new>

namespace weft::topic {

Result<void> NodeLoop::make(std::weak_ptr<void> owner, std::function<void()> turn) {
  owner_ = std::move(owner);
  turn_ = std::move(turn);
  if (loop_ == nullptr) {
    own_loop_ = WEFT_TRY(rt::Loop::make("topics"));
    loop_ = own_loop_.get();
  }
  event_.emplace(WEFT_TRY(sys::EventFd::make()));
  watch_ = WEFT_TRY(loop_->watch(event_->fd(), sys::Interest::readable, false, this));
  return {};
}

void NodeLoop::stop() noexcept {
  if (own_loop_ != nullptr) {
    own_loop_->stop();
  }
}

void NodeLoop::end_turns() noexcept { loop_->unwatch(std::exchange(watch_, 0)); }

void NodeLoop::request(unsigned work) noexcept {
  if (!event_ || (work_.fetch_or(work) & work) == work) {
    return;
  }
  if (loop_->on_loop_thread()) {
    try {  // it costs no system call
      post([this] { turn_(); });
      return;
    } catch (const std::bad_alloc&) {
    }
  }
  event_->signal();
}

void NodeLoop::handle_event(const sys::PollEvent& /*event*/) {
  if (const auto owner = owner_.lock(); owner != nullptr) {
    event_->drain();
    turn_();
  }
}

}  // namespace weft::topic
