// SPDX-License-Identifier: MIT
#include "weft/rt/core/call.h"

#include <utility>

#include "weft/rt/core/runtime.h"
#include "weft/rt/loop/loop.h"
#include "weft/sys/clock.h"

namespace weft::rt {

namespace detail {

namespace {
constexpr Error kNotACore(Errc::invalid_state, "only a core of the runtime can wait for another");
constexpr Error kAwaitedBefore(Errc::invalid_state, "a call is awaited once");
constexpr Error kNoMemoryForCall(Errc::resource_exhausted, "no memory for the call");
constexpr Error kNoSuchCore(Errc::invalid_argument, "there is no such core");
constexpr Error kStopped(Errc::closed, "the runtime was stopped");
constexpr Error kTooLate(Errc::timed_out, "the deadline of the call passed");
}  // namespace

void CallState::begin(Core& caller, unsigned target, Caller& waiter) noexcept {
  caller_ = &caller;
  waiter_ = &waiter;
  target_ = target;
  caller.calls().push_back(*this);
  waiting_.message = Job(Request{this});
  if (!caller.try_send(target, waiting_)) {
    caller.wait_to_send(target, waiting_);
  }
}

void CallState::handle_request() noexcept {
  if (!call_(*this)) {
    return;
  }
  // From the moment the reply is in the lane, the block belongs to the caller's core.
  waiting_.message = Job(Reply{this});
  Core& core = *Core::current();
  const unsigned to = caller_->index();
  if (!core.try_send(to, waiting_)) {
    core.wait_to_send(to, waiting_);
  }
}

void CallState::handle_reply() noexcept {
  unhook();
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

CallState::Caller::Caller(Caller&& other) noexcept : Caller(other.core_, other.target_, other.deadline_) {
  awaited_ = std::exchange(other.awaited_, true);
  if (!awaited_) {
    state_ = std::exchange(other.state_, nullptr);
  }
}

CallState::Caller::~Caller() {
  cancel_timer();
  drop();
}

void CallState::Caller::drop() noexcept {
  if (state_ != nullptr) {
    if (state_->hooked()) {
      state_->abandon();
    } else {
      state_->destroy();
    }
    state_ = nullptr;
  }
}

Error CallState::Caller::check() noexcept {
  if (std::exchange(awaited_, true)) {
    return kAwaitedBefore;
  }
  if (core_ == nullptr) {
    return kNotACore;
  }
  if (state_ == nullptr) {
    return kNoMemoryForCall;
  }
  if (target_ >= core_->runtime().size()) {
    return kNoSuchCore;
  }
  if (core_->ended()) {
    return kStopped;
  }
  if (deadline_ <= core_->loop().now()) {
    return kTooLate;
  }
  if (deadline_ != kNever) {
    timer_ = core_->loop().timers().schedule(deadline_, {[](void* self) {
                                                           auto& caller = *static_cast<Caller*>(self);
                                                           caller.timer_ = {};
                                                           caller.give_up(kTooLate);
                                                         },
                                                         this});
    if (!timer_) {
      return kNoMemoryForCall;
    }
  }
  return {};
}

void CallState::Caller::handle_reply() noexcept {
  cancel_timer();
  resume_caller();
}

void CallState::Caller::give_up(Error why) noexcept {
  cancel_timer();
  if (error_ == Errc::ok) {
    error_ = why;
  }
  if (state_->withdraw()) {
    drop();
    resume_caller();
  }
}

void CallState::Caller::cancel_timer() noexcept {
  if (timer_) {
    (void)core_->loop().timers().cancel(std::exchange(timer_, {}));
  }
}

}  // namespace detail

Error Posting::check() const noexcept {
  if (core_ == nullptr) {
    return detail::kNotACore;
  }
  if (!entry_.message) {
    return detail::kNoMemoryForCall;
  }
  if (target_ >= core_->runtime().size()) {
    return detail::kNoSuchCore;
  }
  return core_->ended() ? detail::kStopped : Error();
}

void Posting::take_back() noexcept {
  if (entry_.hooked()) {
    core_->forget(entry_);
  }
}

void Posting::cancel() noexcept {
  take_back();
  error_ = kCancelled;
  resume_caller();
}

void Posting::handle_wait_end(Waiting& waiting, Error outcome) noexcept {
  Posting& self = *static_cast<Entry&>(waiting).posting;
  self.error_ = outcome;
  self.resume_caller();
}

}  // namespace weft::rt
