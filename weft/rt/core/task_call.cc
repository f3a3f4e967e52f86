// SPDX-License-Identifier: MIT
#include "weft/rt/core/task_call.h"

#include "weft/rt/loop/loop.h"

namespace weft::rt::detail {

// --- the target ---

void TaskCall::start(PromiseBase& promise, std::coroutine_handle<> coroutine) noexcept {
  TaskRunner& runner = Core::current()->loop().tasks();
  runner.count_task(1);
  scope_.open(runner.root());
  promise.start_in(scope_, *this);
  resume(coroutine);
}

void TaskCall::reply_without() noexcept {
  Core::current()->loop().tasks().count_task(1);
  reply();
}

std::coroutine_handle<> TaskCall::handle_done(Join& join) noexcept {
  auto& self = static_cast<TaskCall&>(join);
  self.scope_.runner().add(self.ended_);  // ends the task later: its frame is still in use now
  return std::noop_coroutine();
}

void TaskCall::end() noexcept {
  finish_(*this);
  scope_.close();
  reply();
}

void TaskCall::reply() noexcept {
  replied_ = true;
  // From the moment the reply is in the lane, the block belongs to the caller's core, unless a cancellation is on the
  // way here.
  reply_.message = Job(Reply{this});
  Core& core = *Core::current();
  const unsigned to = caller_->index();
  if (core.try_send(to, reply_)) {
    note_replied();
  } else {
    core.wait_to_send(to, reply_);
  }
}

void TaskCall::note_replied() noexcept { Core::current()->loop().tasks().count_task(-1); }

void TaskCall::handle_cancel() noexcept {
  if (!replied_) {
    cancel_arrived_ = true;
    scope_.cancel();
    return;
  }
  crossed_.message = Job(Crossed{this});
  Core& core = *Core::current();
  const unsigned to = caller_->index();
  if (!core.try_send(to, crossed_)) {
    core.wait_to_send(to, crossed_);
  }
}

// --- the caller's core ---

bool TaskCall::withdraw(CallState& base) noexcept {
  auto& self = static_cast<TaskCall&>(base);
  if (self.gave_up_) {
    return self.withdrawn_;
  }
  self.gave_up_ = true;
  self.withdrawn_ = self.claim_.take();
  if (!self.withdrawn_) {
    self.cancel_sent_ = true;
    self.cancel_.message = Job(Cancel{&self});
    if (!self.caller_->try_send(self.target_, self.cancel_)) {
      self.caller_->wait_to_send(self.target_, self.cancel_);
    }
  }
  return self.withdrawn_;
}

void TaskCall::handle_task_reply() noexcept {
  if (cancel_.hooked()) {  // the cancellation still waits for room
    caller_->forget(cancel_);
    cancel_sent_ = false;
  }
  const bool last = !cancel_sent_ || cancel_arrived_;
  if (last) {
    unhook();
  }
  if (waiter_ != nullptr) {
    waiter_->handle_reply();
  } else if (last) {
    destroy();
  }
}

void TaskCall::handle_crossed() noexcept {
  unhook();
  if (waiter_ == nullptr) {
    destroy();
  }
}

}  // namespace weft::rt::detail
