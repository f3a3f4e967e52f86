// SPDX-License-Identifier: MIT
#include <algorithm>

#include "weft/serve/session/session.h"
#include "weft/serve/session/session_task.h"
#include "weft/serve/session/shard.h"

namespace weft::serve {

namespace {

constexpr Error kClosedToTasks(Errc::closed, "the session is closed");
constexpr Error kNoMemoryForTask(Errc::resource_exhausted, "no memory for a coroutine");

struct EndsSession {
  Session* session;
  void handle_end(const Error& outcome, bool /*cancelled*/) const noexcept {
    if (!(outcome == Errc::ok)) {
      session->abort(CloseReason::service_failed, outcome);
    }
  }
};

}  // namespace

// Makes the set of coroutines when the session starts its first one. closed: the session is not open.
Result<void> Session::make_tasks() noexcept {
  if (!is_open()) {
    return kClosedToTasks;
  }
  if (tasks_ == nullptr) {
    void* const block = mem::pool_allocate(sizeof(TaskSet));
    if (block == nullptr) {
      return kNoMemoryForTask;
    }
    const auto report = [](void* self, SessionTask::Kind kind, std::size_t room_size) noexcept {
      static_cast<Session*>(self)->handle_task_end(kind, room_size);
    };
    const auto threw = [](void* self, const std::exception_ptr& thrown) noexcept {
      static_cast<Session*>(self)->note_exception(thrown);
    };
    tasks_ = ::new (block) TaskSet(shard_.loop().tasks(), report, this, threw);
    tasks_->describe(slot_.ops->coroutine, id_.value);
  }
  return {};
}

Result<void> Session::spawn(rt::Task<void> task) {
  if (!task) {
    return Error(Errc::invalid_argument, "the task was moved from");
  }
  if (!is_here()) {
    return used_elsewhere();
  }
  WEFT_TRY(make_tasks());
  if (tasks_->size() - tasks_->handlers() >= slot_.limits.tasks_max) {
    shard_.counters().tasks_refused.add();
    return Error(Errc::resource_exhausted, "the session has tasks_max coroutines already");
  }
  using Block = SessionTaskOf<void, EndsSession>;
  auto block = Block::make({this});
  if (block == nullptr) {
    return kNoMemoryForTask;
  }
  tasks_->start(Block::with_task(std::move(block), std::move(task)), SessionTask::Kind::spawned);
  return {};
}

Result<void> Session::start_handler(SessionTask::Ptr task, bool reads_on) {
  WEFT_TRY(make_tasks());
  const std::uint32_t most = std::max<std::uint32_t>(slot_.limits.handlers_max, 1);
  if (tasks_->handlers() >= most) {  // the frame was read before the session paused, or the service calls by itself
    shard_.counters().tasks_refused.add();
    return Error(Errc::resource_exhausted, "handlers_max handlers run already");
  }
  if (!shard_.budget().take(task->room_size(), MemoryOwner::handlers)) {
    return kNoMemoryForTask;
  }
  ++replies_;
  tasks_->start(std::move(task), SessionTask::Kind::handler);
  if (tasks_->handlers() >= most && !reads_on && !reading_.handlers_pause) {
    reading_.handlers_pause = true;
    pause_reading();
    shard_.counters().handler_pauses.add();
  }
  return {};
}

void Session::handle_task_end(SessionTask::Kind kind, std::size_t room_size) noexcept {
  shard_.budget().give_back(room_size, MemoryOwner::handlers);
  if (kind == SessionTask::Kind::handler) {
    if (reading_.handlers_pause) {
      reading_.handlers_pause = false;
      resume_reading();
    }
    end_reply();
  }
  if ((state_ == State::ended || record_.successor != nullptr || move_ != nullptr) && !has_tasks()) {
    list();
  }
}

bool Session::has_tasks() const noexcept { return tasks_ != nullptr && tasks_->size() != 0; }

rt::AsyncEvent& Session::written() noexcept { return tasks_->written(); }

void Session::cancel_tasks() noexcept {
  if (tasks_ != nullptr) {
    tasks_->cancel();
  }
}

// Ends a session whose coroutines still run: closes all but the stream and the memory that they may refer to.
// The last coroutine to end lists the session for the shard again.
void Session::release_all_but_tasks() noexcept {
  if (writing_.end != WriteEnd::done && writing_.last_body == LastBody::none) {
    stream_->shutdown_write();
    writing_.end = WriteEnd::done;
  }
  drop_queue();
  clean_up();
}

void Session::drop_tasks() noexcept {
  if (tasks_ != nullptr && tasks_->size() == 0) {
    tasks_->~TaskSet();
    mem::pool_deallocate(std::exchange(tasks_, nullptr));
  }
}

SessionGlance Session::glance() const noexcept {
  const Instant now = shard_.loop().now();
  SessionGlance glance;
  glance.id = id_;
  glance.counts = record_.counts;
  glance.age = std::max(now - clock_.accepted(), Duration::zero());
  glance.silent = std::max(now - clock_.heard(), Duration::zero());
  glance.queued = writes_.size();
  glance.received = input_.size();
  glance.replies = replies_;
  glance.coroutines = tasks_ == nullptr ? 0 : static_cast<std::uint32_t>(tasks_->size());
  glance.state = describe(state_);
  glance.service = slot_.ops->coroutine->owner;
  glance.reads = wants_frames();
  glance.blocked = writing_.blocked;
  glance.layered = slot_.layered;
  return glance;
}

}  // namespace weft::serve
