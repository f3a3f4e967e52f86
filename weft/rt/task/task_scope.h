// SPDX-License-Identifier: MIT
#pragma once

#include <concepts>
#include <coroutine>
#include <cstddef>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <stop_token>
#include <type_traits>
#include <utility>

#include "weft/base/result.h"
#include "weft/mem/pool.h"
#include "weft/rt/exec/future.h"
#include "weft/rt/loop/loop.h"
#include "weft/rt/task/task.h"

namespace weft::rt {

namespace detail {

// SpawnedTask: a task that no coroutine of its thread awaits, and the state of its Future: a pooled block. Any thread
// makes it, the loop's thread runs it, and the last of the two sides frees it.
template <typename T>
class SpawnedTask final : public FutureState<Unwrapped<T>>, private Join, private Ready {
  using Value = Unwrapped<T>;
  using State = FutureState<Value>;

 public:
  SpawnedTask(Loop& loop, Task<T> task, std::stop_token token) noexcept
      : Join(handle_done),
        Ready(handle_end),
        cancelling_(this),
        loop_(loop),
        task_(std::move(task)),
        token_(std::move(token)) {
    State::destroy = [](State* state) noexcept {
      auto* const self = static_cast<SpawnedTask*>(state);
      self->~SpawnedTask();
      mem::pool_deallocate(self);
    };
  }

  // On the loop's thread.
  void start() noexcept {
    TaskRunner& runner = loop_.tasks();
    runner.count_task(1);
    scope_.open(runner.root());
    task_.handle().promise().start_in(scope_, *this);
    if (token_.stop_possible()) {
      on_stop_.emplace(token_, Stopper(this));
    }
    resume(task_.handle());
  }
  // Instead of start(), and before drop().
  [[nodiscard]] Task<T> take_task() noexcept { return std::move(task_); }
  // Instead of start().
  void drop(Error why) noexcept {
    task_.reset();
    State::error = why;
    State::finish();
  }

 private:
  // Stopper: called in the thread that requests the stop: any thread, also inside start(). The destructor of the
  // stop_callback waits for the call, so that end() sees its writes.
  class Stopper {
   public:
    explicit Stopper(SpawnedTask* self) noexcept : self_(self) {}
    void operator()() const noexcept {
      self_->cancel_sent_ = true;
      self_->loop_.tasks().post(self_->cancelling_);
    }

   private:
    SpawnedTask* self_;
  };

  struct Cancelling : Ready {
    explicit Cancelling(SpawnedTask* spawned) noexcept : Ready(handle), self(spawned) {}
    static void handle(Ready& ready) noexcept { static_cast<Cancelling&>(ready).self->handle_cancel(); }
    SpawnedTask* self;
  };

  static std::coroutine_handle<> handle_done(Join& join) noexcept {
    auto& self = static_cast<SpawnedTask&>(join);
    self.loop_.tasks().add(self);  // ends the task later: its frame is still in use now
    return std::noop_coroutine();
  }
  static void handle_end(Ready& ready) noexcept { static_cast<SpawnedTask&>(ready).end(); }
  void handle_cancel() noexcept {
    cancel_arrived_ = true;
    if (ended_) {
      end();
    } else {
      scope_.cancel();
    }
  }

  void end() noexcept {
    ended_ = true;
    on_stop_.reset();
    if (cancel_sent_ && !cancel_arrived_) {
      return;  // handle_cancel() calls end() again
    }
    keep_result();
    task_.reset();
    scope_.close();
    loop_.tasks().count_task(-1);
    State::finish();
  }
  void keep_result() noexcept {
    try {
      if constexpr (std::is_void_v<T>) {
        task_.handle().promise().take();
        State::keep_nothing();
      } else {
        State::keep(task_.handle().promise().take());
      }
    } catch (...) {
      State::keep_exception("the task threw; its Future has the exception");
    }
  }

  Cancelling cancelling_;
  Loop& loop_;
  Task<T> task_;
  std::stop_token token_;
  CancelScope scope_;
  std::optional<std::stop_callback<Stopper>> on_stop_;
  bool cancel_sent_ = false;
  bool cancel_arrived_ = false;
  bool ended_ = false;
};

// SpawnedStart: the mailbox's hold on a SpawnedTask. If the loop drops it without a call, the Future ends with
// `terminated`.
template <typename T>
class SpawnedStart {
 public:
  using MovesAsBytes = void;

  explicit SpawnedStart(SpawnedTask<T>* task) noexcept : task_(task) {}
  SpawnedStart(SpawnedStart&& other) noexcept : task_(std::exchange(other.task_, nullptr)) {}
  SpawnedStart& operator=(SpawnedStart&&) = delete;
  ~SpawnedStart() {
    if (task_ != nullptr) {
      task_->drop(Error(Errc::terminated, "the loop ended before the task began"));
    }
  }
  void operator()() noexcept { std::exchange(task_, nullptr)->start(); }
  // The task of a start that no mailbox took.
  [[nodiscard]] Task<T> take_back() noexcept { return task_->take_task(); }

 private:
  SpawnedTask<T>* task_;
};

}  // namespace detail

// Starts the task on that loop: at once on the loop's own thread (inside many tasks that start each other, soon), soon
// from any other. The Future gets the result and
// may be dropped. The token cancels the task. A loop that stops cancels the task and waits until it has ended.
// Cost: one pooled block besides the frame; from another thread Loop::post().
// Errors of the Future: the error of the Result of a Task<Result<X>>, which has a Future<X>; job_threw (the task threw,
// see exception()); terminated (the loop ended before the task began); resource_exhausted; invalid_argument (the task
// was moved from, or has begun).
template <typename T>
Future<detail::Unwrapped<T>> spawn(Loop& loop, Task<T> task, std::stop_token token = {}) {
  using Spawned = detail::SpawnedTask<T>;
  using SpawnedFuture = Future<detail::Unwrapped<T>>;
  static_assert(alignof(Spawned) <= alignof(std::max_align_t), "weft: return a pointer to what is aligned further");
  if (!task.may_begin()) {
    return SpawnedFuture(detail::kNoTask);
  }
  void* const block = mem::pool_allocate(sizeof(Spawned));
  if (block == nullptr) [[unlikely]] {
    return SpawnedFuture(Error(Errc::resource_exhausted, "no memory for the task"));
  }
  auto* const spawned = ::new (block) Spawned(loop, std::move(task), std::move(token));
  SpawnedFuture future(spawned);
  detail::SpawnedStart<T> start(spawned);
  if (Loop::current() == &loop && !detail::nested_too_deep()) {
    start();
    return future;
  }
  Job job(std::move(start));
  if (const auto posted = loop.try_post(job); !posted && posted.error() == Errc::resource_exhausted) [[unlikely]] {
    return SpawnedFuture(posted.error());
  }
  return future;
}

// TaskScope: tasks that are started, cancelled and joined together: those of a session, of a service, of one request.
// `scope.spawn(read(session)); scope.spawn(write(session)); ... scope.cancel(); co_await scope.join();`
// Owner: its user. Destruction cancels the tasks; the last of them frees the shared state. An owner whose members the
// tasks refer to calls join() before those members go.
// Affinity: the loop's thread.
// Cost: one pooled block a task besides its frame.
// Invariants:
//   1. After cancel() no task begins.
//   2. Every join() ends when no task is left.
//   3. An exception does not end another task. The scope keeps the first one.
class TaskScope {
 public:
  static constexpr std::size_t kTasksMax = std::size_t{1} << 20;

  explicit TaskScope(TaskRunner& runner, std::size_t tasks_max = kTasksMax);  // throws std::bad_alloc
  explicit TaskScope(Loop& loop, std::size_t tasks_max = kTasksMax) : TaskScope(loop.tasks(), tasks_max) {}
  TaskScope(TaskScope&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}
  TaskScope& operator=(TaskScope&&) = delete;
  ~TaskScope();

  // The task runs until it first waits; inside many tasks that start each other it begins in the next turn. Errors:
  // resource_exhausted (there are `tasks_max`, or no memory); kCancelled (cancel()
  // was called); invalid_argument (the task was moved from, or has begun). A refused task does not run.
  Result<void> spawn(Task<void> task);
  void cancel() noexcept;
  [[nodiscard]] bool cancelled() const noexcept;
  [[nodiscard]] std::size_t size() const noexcept;
  // Returns the first exception of a task; null if there is none.
  [[nodiscard]] std::exception_ptr exception() const noexcept;

  class Joining;
  // `co_await scope.join()`: Result<void>, after the end of every task. Errors: job_threw (a task ended in an
  // exception); kCancelled: a joiner that is cancelled cancels the tasks, and still waits for them.
  [[nodiscard]] Joining join() noexcept;

 private:
  struct State;
  struct Member;
  State* state_;
};

class TaskScope::Joining : private ListHook {
 public:
  explicit Joining(State* state) noexcept : state_(state), wait_(this) {}
  [[nodiscard]] bool await_ready() noexcept;
  template <detail::TaskPromise Promise>
  void await_suspend(std::coroutine_handle<Promise> coroutine) noexcept {
    suspend(coroutine.promise().scope(), coroutine);
  }
  [[nodiscard]] Result<void> await_resume() const noexcept {
    return wait_.cancelled() ? Result<void>(kCancelled) : result_;
  }

 private:
  friend class List<Joining>;
  friend struct State;
  struct JoinWait : Wait {
    explicit JoinWait(Joining* who) noexcept : Wait(cancel_all), joining(who) {}
    static void cancel_all(Wait& self) noexcept;
    Joining* joining;
  };
  void suspend(CancelScope& scope, std::coroutine_handle<> coroutine) noexcept;

  State* state_;
  JoinWait wait_;
  Result<void> result_;
};

inline TaskScope::Joining TaskScope::join() noexcept { return Joining(state_); }

}  // namespace weft::rt
