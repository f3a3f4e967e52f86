// SPDX-License-Identifier: MIT
#pragma once

#include <coroutine>
#include <cstddef>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#include "weft/base/result.h"
#include "weft/rt/core/call.h"
#include "weft/rt/core/claim.h"
#include "weft/rt/task/task.h"
#include "weft/rt/task/task_time.h"

namespace weft::rt {

namespace detail {

template <typename T>
struct TaskValue;  // undefined for a type that is not a Task
template <typename T>
struct TaskValue<Task<T>> {
  using Type = T;
};
template <typename F>
concept ReturnsTask = requires { typename TaskValue<std::invoke_result_t<F&>>::Type; };

// TaskCall: a call of a function that returns a Task. A pooled block.
// Owner, affinity: as CallState.
// Messages: the request; from the caller, at most once, a cancellation; the reply. When the cancellation and the reply
// crossed, the target sends a last message: no reference to the block is left.
// The called task counts among the tasks of its core until the reply is in the lane, and the caller's among those of
// its own core: neither loop ends while the other core refers to its memory.
class TaskCall : public CallState, private Join {
 public:
  TaskCall(Ask* call, Step* free, Step* finish) noexcept
      : CallState(call, free, withdraw), Join(handle_done), finish_(finish) {}

 protected:
  ~TaskCall() = default;
  // --- the target ---
  [[nodiscard]] bool try_begin() noexcept { return claim_.take(); }
  void start(PromiseBase& promise, std::coroutine_handle<> coroutine) noexcept;
  void reply_without() noexcept;  // the function made no task

 private:
  struct Cancel {
    TaskCall* call;
    void operator()() const noexcept { call->handle_cancel(); }
  };
  struct Reply {
    TaskCall* call;
    void operator()() const noexcept { call->handle_task_reply(); }
  };
  struct Crossed {
    TaskCall* call;
    void operator()() const noexcept { call->handle_crossed(); }
  };
  struct Ended : Ready {
    explicit Ended(TaskCall* of) noexcept : Ready(handle), call(of) {}
    static void handle(Ready& self) noexcept { static_cast<Ended&>(self).call->end(); }
    TaskCall* call;
  };

  static std::coroutine_handle<> handle_done(Join& join) noexcept;
  void end() noexcept;
  void reply() noexcept;
  static void note_replied() noexcept;  // static: the block may have ended
  void handle_cancel() noexcept;

  // --- the caller's core ---
  static bool withdraw(CallState& base) noexcept;
  void handle_task_reply() noexcept;
  void handle_crossed() noexcept;

  Claim claim_;
  Step* finish_;  // keeps the outcome, destroys the frame, then the function
  // Used by the caller's core.
  bool gave_up_ = false;
  bool withdrawn_ = false;
  bool cancel_sent_ = false;
  Waiting cancel_{nullptr};
  // Used by the target, until the reply.
  bool cancel_arrived_ = false;
  bool replied_ = false;
  CancelScope scope_;
  Ended ended_{this};
  Waiting reply_{[](Waiting& /*gone*/, Error /*ok*/) noexcept { note_replied(); }};
  Waiting crossed_{nullptr};
};

template <typename F>
class CallOfTask final : public TaskCall {
 public:
  using T = typename TaskValue<std::invoke_result_t<F&>>::Type;
  using Outcome = AsResult<T>;

  template <typename G>
    requires std::is_constructible_v<F, G>
  explicit CallOfTask(G&& function) : TaskCall(call, destroy, finish), function_(std::forward<G>(function)) {}

  [[nodiscard]] Outcome take() noexcept(std::is_nothrow_move_constructible_v<Outcome>) { return std::move(outcome_); }

 private:
  ~CallOfTask() {
    if (!called_) {
      function_.~F();
    }
  }
  static bool call(CallState& base) noexcept {
    auto& self = static_cast<CallOfTask&>(base);
    if (!self.try_begin()) {
      self.end_function();
      return true;
    }
    try {
      self.task_ = self.function_();
      self.outcome_ = kNoTask;
    } catch (...) {
      self.outcome_ = kThrew;
    }
    if (self.task_.may_begin()) {
      self.start(self.task_.handle().promise(), self.task_.handle());
    } else {
      self.end_function();
      self.reply_without();
    }
    return false;
  }
  static void finish(CallState& base) noexcept {
    auto& self = static_cast<CallOfTask&>(base);
    try {
      if constexpr (std::is_void_v<T>) {
        self.task_.handle().promise().take();
        self.outcome_ = Outcome();
      } else {
        self.outcome_ = self.task_.handle().promise().take();
      }
    } catch (...) {
      self.outcome_ = kThrew;
    }
    self.task_.reset();
    self.end_function();
  }
  static void destroy(CallState& base) noexcept {
    auto* const self = static_cast<CallOfTask*>(&base);
    self->~CallOfTask();
    mem::pool_deallocate(self);
  }
  void end_function() noexcept {
    function_.~F();
    called_ = true;
  }

  static constexpr Error kThrew{Errc::job_threw, "the called task threw"};

  union {
    F function_;  // a lambda's captures, which the task may refer to
  };
  bool called_ = false;
  Task<T> task_;
  Outcome outcome_ = Error(Errc::terminated, "the call was given up");
};

}  // namespace detail

// CallingTask: the awaiter of Runtime::call() of a function that returns a Task; co_await it once, in a task of the
// core that made it.
template <typename F>
class [[nodiscard]] CallingTask : private detail::CallState::Caller {
  using Call = detail::CallOfTask<F>;
  static_assert(alignof(Call) <= alignof(std::max_align_t));

 public:
  template <typename G>
  CallingTask(Core* core, unsigned target, Instant deadline, G&& function) : Caller(core, target, deadline) {
    state_ = detail::make_pooled<Call>(std::forward<G>(function));
  }
  CallingTask(CallingTask&& other) noexcept = default;  // before it is awaited
  CallingTask& operator=(CallingTask&&) = delete;
  ~CallingTask() = default;

  [[nodiscard]] bool await_ready() const noexcept { return false; }
  template <detail::TaskPromise Promise>  // tasks only: a core that ends does not wait for other coroutines
  [[nodiscard]] bool await_suspend(std::coroutine_handle<Promise> coroutine) {
    return this->suspend(coroutine);
  }
  [[nodiscard]] typename Call::Outcome await_resume() {
    if (state_ == nullptr) {
      return error_;
    }
    auto outcome = static_cast<Call*>(state_)->take();  // the destructor frees the state
    if (error_ == Errc::ok) {
      return outcome;
    }
    if constexpr (detail::kIsResult<typename Call::T>) {
      if (outcome) {
        return outcome;
      }
    }
    return error_;
  }
};

}  // namespace weft::rt
