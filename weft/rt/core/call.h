// SPDX-License-Identifier: MIT
#pragma once

#include <coroutine>
#include <cstddef>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#include "weft/base/result.h"
#include "weft/base/time.h"
#include "weft/mem/pool.h"
#include "weft/rt/core/backlog.h"
#include "weft/rt/core/core.h"
#include "weft/rt/loop/job.h"
#include "weft/rt/loop/task_runner.h"
#include "weft/rt/loop/timer_wheel.h"
#include "weft/sync/atomic.h"

namespace weft::rt {

namespace detail {

class CallState;

// CoreWait: a coroutine of a core that waits for another core. The base of awaiters. A Task resumes in the core's next
// turn and may be cancelled; any other coroutine resumes at once.
// Owner: the coroutine's frame; destroying the frame while it waits gives up.
// Affinity: the core's thread.
class CoreWait : protected Wait {
 protected:
  CoreWait(Core* core, Wait::Cancel cancel) noexcept : Wait(cancel), core_(core) {}
  CoreWait(const CoreWait&) = delete;
  CoreWait& operator=(const CoreWait&) = delete;
  ~CoreWait() = default;

  // Returns false if the task was cancelled, and await_suspend() returns deferred().
  template <typename Promise>
  [[nodiscard]] bool attach(std::coroutine_handle<Promise> coroutine) {
    if constexpr (TaskPromise<Promise>) {
      return Wait::begin(coroutine.promise().scope(), coroutine);
    } else {
      coroutine_ = coroutine;
      return true;
    }
  }
  void resume_caller() noexcept {
    if (coroutine_) {
      std::exchange(coroutine_, nullptr).resume();
    } else {
      Wait::finish();
    }
  }

  Core* core_;  // null: the caller is not a core of that runtime

 private:
  std::coroutine_handle<> coroutine_;  // of a coroutine that is not a Task
};

// CallState: a call on its way to another core and back. A pooled block.
// Owner: the caller's core, from begin() until the reply came or the core ends.
// Affinity: each group of members names its core.
// Invariants:
//   1. Every request that was sent gets a reply, and then the caller's core frees the block. If the runtime ends first,
//      the core's end frees it.
class CallState : public ListHook {
 public:
  using Step = void(CallState& self) noexcept;
  using Ask = bool(CallState& self) noexcept;
  class Caller;

  CallState(const CallState&) = delete;
  CallState& operator=(const CallState&) = delete;

  // --- the caller's core ---
  void begin(Core& caller, unsigned target, Caller& waiter) noexcept;
  void abandon() noexcept {  // the caller waits no more; the target need not begin the call
    waiter_ = nullptr;
    abandoned_.store(true, std::memory_order_relaxed);  // a hint: the reply still arrives
  }
  // Returns true if the waiter may resume at once. Returns false if the called task uses the waiter's frame, and will
  // reply soon.
  [[nodiscard]] bool withdraw() noexcept { return withdraw_ == nullptr || withdraw_(*this); }
  void handle_reply() noexcept;
  void handle_end() noexcept;  // the core ends
  void destroy() noexcept { destroy_(*this); }

 protected:
  CallState(Ask* call, Step* end, Ask* give_up = nullptr) noexcept : call_(call), destroy_(end), withdraw_(give_up) {}
  ~CallState() = default;

  Core* caller_ = nullptr;
  Caller* waiter_ = nullptr;
  unsigned target_ = 0;

 private:
  struct Request {
    CallState* call;
    void operator()() const noexcept { call->handle_request(); }
  };
  struct Reply {
    CallState* call;
    void operator()() const noexcept { call->handle_reply(); }
  };
  void handle_request() noexcept;  // on the target

  Ask* call_;  // calls the function, unless abandoned, and destroys it; false: a task replies later
  Step* destroy_;
  Ask* withdraw_;
  Waiting waiting_{nullptr};  // the request, and later the reply, while its lane has no room

 protected:
  sync::Atomic<bool> abandoned_{false};
};

// Caller: the caller's side of a CallState while it waits.
class CallState::Caller : protected CoreWait {
 public:
  void handle_reply() noexcept;
  void give_up(Error why) noexcept;

 protected:
  Caller(Core* core, unsigned target, Instant deadline) noexcept
      : CoreWait(core, [](Wait& self) noexcept { static_cast<Caller&>(self).give_up(kCancelled); }),
        target_(target),
        deadline_(deadline) {}
  // The other one is not awaited any more, or was awaited already: then this one fails with invalid_state.
  Caller(Caller&& other) noexcept;
  ~Caller();

  // Returns false if the caller does not wait; error_ has the reason.
  template <typename Promise>
  [[nodiscard]] bool suspend(std::coroutine_handle<Promise> coroutine) {
    error_ = check();
    if (error_ == Errc::ok && !attach(coroutine)) {
      error_ = kCancelled;
    }
    if (error_ != Errc::ok) {
      cancel_timer();
      drop();
      return deferred();
    }
    state_->begin(*core_, target_, *this);
    return true;
  }

  CallState* state_ = nullptr;
  Error error_;

 private:
  [[nodiscard]] Error check() noexcept;  // once; and sets the timer
  void drop() noexcept;
  void cancel_timer() noexcept;

  unsigned target_;
  Instant deadline_;
  TimerId timer_;
  bool awaited_ = false;
};

template <typename T>
struct CallResult {
  static_assert(std::is_void_v<T> || std::is_move_constructible_v<T>,
                "weft: the result of call() goes from core to core: it must be movable");
  using Type = Result<T>;
};
template <typename T>
struct CallResult<Result<T>> {
  using Type = Result<T>;
};

// Makes it in a pooled block. Returns null if there is no memory. An exception of the constructor passes through, and
// the block goes back.
template <typename T, typename... Arguments>
[[nodiscard]] T* make_pooled(Arguments&&... arguments) {
  void* const block = mem::pool_allocate(sizeof(T));
  if (block == nullptr) [[unlikely]] {
    return nullptr;
  }
  try {
    return ::new (block) T(std::forward<Arguments>(arguments)...);
  } catch (...) {
    mem::pool_deallocate(block);
    throw;
  }
}

template <typename F>
class FunctionCall final : public CallState {
 public:
  using R = std::remove_cv_t<std::invoke_result_t<F&>>;
  using Outcome = typename CallResult<R>::Type;

  template <typename G>
    requires std::is_constructible_v<F, G>
  explicit FunctionCall(G&& function) : CallState(call, end), function_(std::forward<G>(function)) {}

  [[nodiscard]] Outcome take() noexcept(std::is_nothrow_move_constructible_v<Outcome>) { return std::move(outcome_); }

 private:
  ~FunctionCall() {
    if (!called_) {
      function_.~F();
    }
  }
  static bool call(CallState& base) noexcept {
    auto& self = static_cast<FunctionCall&>(base);
    if (!self.abandoned_.load(std::memory_order_relaxed)) {
      // In place: a result need not be assignable.
      std::destroy_at(&self.outcome_);
      try {
        if constexpr (std::is_void_v<R>) {
          self.function_();
          ::new (static_cast<void*>(&self.outcome_)) Outcome();
        } else {
          ::new (static_cast<void*>(&self.outcome_)) Outcome(self.function_());
        }
      } catch (...) {
        ::new (static_cast<void*>(&self.outcome_)) Outcome(Error(Errc::job_threw, "the called function threw"));
      }
    }
    self.function_.~F();
    self.called_ = true;
    return true;
  }
  static void end(CallState& base) noexcept {
    auto* const self = static_cast<FunctionCall*>(&base);
    self->~FunctionCall();
    mem::pool_deallocate(self);
  }

  union {
    F function_;
  };
  bool called_ = false;
  Outcome outcome_ = Error(Errc::terminated, "the call was given up");
};

}  // namespace detail

// Calling: the awaiter of Runtime::call(); co_await it once, on the core that made it.
template <typename F>
class [[nodiscard]] Calling : private detail::CallState::Caller {
  using Call = detail::FunctionCall<F>;
  static_assert(alignof(Call) <= alignof(std::max_align_t),
                "weft: call() keeps closure and result in a pooled block: a pointer to what is aligned further");

 public:
  template <typename G>
  Calling(Core* core, unsigned target, Instant deadline, G&& function) : Caller(core, target, deadline) {
    state_ = detail::make_pooled<Call>(std::forward<G>(function));
  }
  Calling(Calling&& other) noexcept = default;  // before it is awaited
  Calling& operator=(Calling&&) = delete;
  ~Calling() = default;

  [[nodiscard]] bool await_ready() const noexcept { return false; }
  template <typename Promise>
  [[nodiscard]] bool await_suspend(std::coroutine_handle<Promise> coroutine) {
    return this->suspend(coroutine);
  }
  [[nodiscard]] typename Call::Outcome await_resume() {
    if (state_ == nullptr) {
      return error_;
    }
    return static_cast<Call*>(state_)->take();  // the destructor frees the state
  }
};

// Posting: the awaiter of Runtime::post_wait(); co_await it once, on the core that made it.
class [[nodiscard]] Posting : private detail::CoreWait {
 public:
  Posting(Core* core, unsigned target, Job job) noexcept
      : CoreWait(core, [](Wait& self) noexcept { static_cast<Posting&>(self).cancel(); }),
        entry_(this, std::move(job)),
        target_(target) {}
  ~Posting() { take_back(); }

  [[nodiscard]] bool await_ready() const noexcept { return false; }
  template <typename Promise>
  [[nodiscard]] bool await_suspend(std::coroutine_handle<Promise> coroutine) {
    error_ = check();
    if (error_ == Errc::ok && !core_->try_send(target_, entry_)) {
      if (attach(coroutine)) {
        core_->wait_to_send(target_, entry_);
        return true;
      }
      error_ = kCancelled;
    }
    return deferred();
  }
  [[nodiscard]] Result<void> await_resume() const noexcept {
    return error_ == Errc::ok ? Result<void>() : Result<void>(error_);
  }

 private:
  struct Entry : Waiting {
    Entry(Posting* who, Job job) noexcept : Waiting(handle_wait_end), posting(who) { message = std::move(job); }
    Posting* posting;
  };
  static void handle_wait_end(Waiting& waiting, Error outcome) noexcept;
  [[nodiscard]] Error check() const noexcept;
  void take_back() noexcept;
  void cancel() noexcept;

  Entry entry_;
  unsigned target_;
  Error error_;
};

}  // namespace weft::rt
