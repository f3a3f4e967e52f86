// SPDX-License-Identifier: MIT
#include "weft/rt/task/task_scope.h"

namespace weft::rt {

// State: shared by the scope's handle and its tasks; the last of them frees it.
struct TaskScope::State {
  State(TaskRunner& where, std::size_t most) noexcept : runner(where), tasks_max(most) { scope.open(where.root()); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() = default;

  [[nodiscard]] Result<void> result() const noexcept {
    return exception ? Result<void>(Error(Errc::job_threw, "a task of the scope threw")) : Result<void>();
  }
  void end_one() noexcept {
    runner.count_task(-1);
    if (--count != 0) {
      return;
    }
    while (Joining* const joining = joiners.pop_front()) {
      joining->result_ = result();
      joining->wait_.finish();
    }
    free_if_done();
  }
  void free_if_done() noexcept {
    if (orphan && count == 0) {
      this->~State();
      mem::pool_deallocate(this);
    }
  }

  TaskRunner& runner;
  std::size_t tasks_max;
  CancelScope scope;
  std::size_t count = 0;
  bool orphan = false;  // the handle is gone
  std::exception_ptr exception;
  List<Joining> joiners;
};

struct TaskScope::Member final : detail::Join, detail::Ready {
  Member(State& in, Task<void> what) noexcept
      : Join(handle_done), Ready(handle_ready), state(in), task(std::move(what)) {}

  static std::coroutine_handle<> handle_done(Join& join) noexcept {
    auto& self = static_cast<Member&>(join);
    self.state.runner.add(self);  // ends the task later: its frame is still in use now
    return std::noop_coroutine();
  }
  static void handle_ready(Ready& ready) noexcept {
    auto& self = static_cast<Member&>(ready);
    State& state = self.state;
    if (!std::exchange(self.begun, true) && !state.scope.cancelled()) {
      detail::resume(self.task.handle());
      return;
    }
    if (const auto& thrown = self.task.handle().promise().exception(); thrown && !state.exception) {
      state.exception = thrown;
    }
    self.~Member();
    mem::pool_deallocate(&self);
    state.end_one();
  }

  State& state;
  Task<void> task;
  bool begun = false;
};

TaskScope::TaskScope(TaskRunner& runner, std::size_t tasks_max) {
  void* const block = mem::pool_allocate(sizeof(State));
  if (block == nullptr) [[unlikely]] {
    throw std::bad_alloc();
  }
  state_ = ::new (block) State(runner, tasks_max);
}

TaskScope::~TaskScope() {
  if (state_ != nullptr) {
    state_->scope.cancel();
    state_->orphan = true;
    state_->free_if_done();
  }
}

Result<void> TaskScope::spawn(Task<void> task) {
  if (!task.may_begin()) {
    return detail::kNoTask;
  }
  if (state_ == nullptr || state_->scope.cancelled()) {
    return kCancelled;
  }
  if (state_->count >= state_->tasks_max) {
    return Error(Errc::resource_exhausted, "too many tasks in the scope");
  }
  void* const block = mem::pool_allocate(sizeof(Member));
  if (block == nullptr) [[unlikely]] {
    return Error(Errc::resource_exhausted, "no memory for the task");
  }
  auto* const member = ::new (block) Member(*state_, std::move(task));
  ++state_->count;
  state_->runner.count_task(1);
  member->task.handle().promise().start_in(state_->scope, *member);
  if (detail::nested_too_deep()) {
    state_->runner.add(*member);
  } else {
    member->begun = true;
    detail::resume(member->task.handle());
  }
  return {};
}

void TaskScope::cancel() noexcept {
  if (state_ != nullptr) {
    state_->scope.cancel();
  }
}
bool TaskScope::cancelled() const noexcept { return state_ == nullptr || state_->scope.cancelled(); }
std::size_t TaskScope::size() const noexcept { return state_ == nullptr ? 0 : state_->count; }
std::exception_ptr TaskScope::exception() const noexcept { return state_ == nullptr ? nullptr : state_->exception; }

bool TaskScope::Joining::await_ready() noexcept {
  if (state_ != nullptr && state_->count != 0) {
    return false;
  }
  result_ = state_ == nullptr ? Result<void>() : state_->result();
  return true;
}

void TaskScope::Joining::suspend(CancelScope& scope, std::coroutine_handle<> coroutine) noexcept {
  state_->joiners.push_back(*this);
  wait_.begin_always(scope, coroutine);
  if (scope.cancelled()) {
    state_->scope.cancel();
  }
}

void TaskScope::Joining::JoinWait::cancel_all(Wait& self) noexcept {
  static_cast<JoinWait&>(self).joining->state_->scope.cancel();
}

}  // namespace weft::rt
