// SPDX-License-Identifier: MIT
#include "weft/rt/call.h"

#include "weft/rt/loop.h"
#include "weft/rt/runtime.h"
#include "weft/sys/clock.h"

namespace weft::rt {

namespace detail {

namespace {
constexpr Error kNotACore(Errc::invalid_state, "only a core of the runtime can wait for another");
constexpr Error kNoMemory(Errc::resource_exhausted, "no memory for the call");
constexpr Error kStopped(Errc::closed, "the runtime was stopped");
}  // namespace

void CallState::begin(Core& caller, unsigned target, Caller& waiter) noexcept {
  caller_ = &caller;
  waiter_ = &waiter;
  caller.calls().push_back(*this);
  waiting_.message = TaskFunction(Request{this});
  (void)caller.send_when_room(target, waiting_);
}

void CallState::handle_request() noexcept {
  call_(*this);
  // From the moment the reply is in the lane the block is the caller's.
  waiting_.message = TaskFunction(Reply{this});
  (void)Core::current()->send_when_room(caller_->index(), waiting_);
}

void CallState::handle_reply() noexcept {
  unlink();
  if (waiter_ != nullptr) {
    waiter_->handle_reply();
  } else {
    destroy();
  }
}

void CallState::handle_end() noexcept {
  if (waiter_ != nullptr) {
    waiter_->give_up(kStopped);
  }
}

CallState::Caller::~Caller() {
  cancel_timer();
  if (state_ != nullptr) {
    if (state_->linked()) {
      state_->abandon();
    } else {
      state_->destroy();
    }
  }
}

bool CallState::Caller::suspend(std::coroutine_handle<> coroutine) noexcept {
  coroutine_ = coroutine;
  const auto begun = [this]() -> Result<void> {
    if (core_ == nullptr) {
      return kNotACore;
    }
    if (state_ == nullptr) {
      return kNoMemory;
    }
    if (target_ >= core_->runtime().size()) {
      return Error(Errc::invalid_argument, "there is no such core");
    }
    if (core_->ended()) {
      return kStopped;
    }
    if (deadline_ <= core_->loop().now()) {
      return Error(Errc::timed_out, "the deadline of the call passed");
    }
    if (deadline_ != kNever) {
      timer_ = core_->loop().timers().schedule(
          deadline_, {[](void* self) {
                        auto& caller = *static_cast<Caller*>(self);
                        caller.timer_ = {};
                        caller.give_up(Error(Errc::timed_out, "the deadline of the call passed"));
                      },
                      this});
      if (!timer_) {
        return kNoMemory;
      }
    }
    state_->begin(*core_, target_, *this);
    return {};
  }();
  if (begun) {
    return true;
  }
  drop_call(begun.error());
  return false;
}

bool CallState::Caller::suspend(CancelScope& scope, std::coroutine_handle<> coroutine) noexcept {
  if (!begin(scope, coroutine)) {
    drop_call(kCancelled);
    return false;
  }
  if (!suspend(coroutine)) {
    finish();
  }
  return true;
}

// It was not sent.
void CallState::Caller::drop_call(Error why) noexcept {
  cancel_timer();
  error_ = why;
  if (state_ != nullptr) {
    std::exchange(state_, nullptr)->destroy();
  }
}

void CallState::Caller::handle_reply() noexcept {
  cancel_timer();
  go_on();
}

void CallState::Caller::give_up(Error why) noexcept {
  cancel_timer();
  error_ = why;
  std::exchange(state_, nullptr)->abandon();
  go_on();
}

void CallState::Caller::cancel_timer() noexcept {
  if (timer_) {
    (void)core_->loop().timers().cancel(std::exchange(timer_, {}));
  }
}

}  // namespace detail

Posting::~Posting() {
  if (Waiting::linked()) {
    core_->forget(*this);
  }
}

bool Posting::await_suspend(std::coroutine_handle<> coroutine) noexcept {
  coroutine_ = coroutine;
  if (core_ == nullptr) {
    error_ = detail::kNotACore;
  } else if (target_ >= core_->runtime().size()) {
    error_ = Error(Errc::invalid_argument, "there is no such core");
  } else if (!message) {
    error_ = detail::kNoMemory;
  } else if (core_->ended()) {
    error_ = detail::kStopped;
  } else {
    return !core_->send_when_room(target_, *this);
  }
  return false;
}

void Posting::handle_told(Waiting& waiting, Error outcome) noexcept {
  auto& self = static_cast<Posting&>(waiting);
  self.error_ = outcome;
  self.go_on();
}

bool Posting::suspend(CancelScope& scope, std::coroutine_handle<> coroutine) noexcept {
  if (!begin(scope, coroutine)) {
    error_ = kCancelled;
    return false;
  }
  if (!await_suspend(coroutine)) {
    finish();
  }
  return true;
}

void Posting::handle_cancel(Wait& wait) noexcept {
  auto& self = static_cast<Posting&>(wait);
  if (self.Waiting::linked()) {
    self.core_->forget(self);
  }
  self.error_ = kCancelled;
  self.go_on();
}

}  // namespace weft::rt
