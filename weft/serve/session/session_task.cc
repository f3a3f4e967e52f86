// SPDX-License-Identifier: MIT
#include "weft/serve/session/session_task.h"

namespace weft::serve {

std::coroutine_handle<> SessionTask::handle_done(rt::detail::Join& join) noexcept {
  auto& self = static_cast<SessionTask&>(join);
  self.done_ = true;
  if (!self.starting_) {
    self.set_->scope_.runner().add(self);  // the coroutine's frame is still in use here
  }
  return std::noop_coroutine();
}

void SessionTask::handle_end(rt::detail::Ready& ready) noexcept {
  auto& self = static_cast<SessionTask&>(ready);
  self.set_->finish(self);
}

void SessionTask::note_exception() const noexcept {
  if (set_->threw_ != nullptr) {
    set_->threw_(set_->owner_, promise_->exception());
  }
}

void TaskSet::start(SessionTask::Ptr task, SessionTask::Kind kind) noexcept {
  SessionTask& started = *task.release();
  started.set_ = this;
  started.kind_ = kind;
  ++size_;
  handlers_ += kind == SessionTask::Kind::handler ? 1 : 0;
  scope_.runner().count_task(1);
  started.promise_->start_in(scope_, started);
  started.starting_ = true;
  rt::detail::resume(started.coroutine_);
  started.starting_ = false;
  if (started.done_) {
    finish(started);
  }
}

void TaskSet::finish(SessionTask& task) noexcept {
  const SessionTask::Kind kind = task.kind_;
  const std::size_t room_size = task.room_size_;
  task.end_(task, scope_.cancelled());
  task.free_(task);
  --size_;
  handlers_ -= kind == SessionTask::Kind::handler ? 1 : 0;
  scope_.runner().count_task(-1);
  report_(owner_, kind, room_size);
}

}  // namespace weft::serve
