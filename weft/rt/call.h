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
#include "weft/rt/backlog.h"
#include "weft/rt/core.h"
#include "weft/rt/task_function.h"
#include "weft/rt/task_runner.h"
#include "weft/rt/timer_wheel.h"
#include "weft/sync/atomic.h"

namespace weft::rt {

namespace detail {

class CallState;

// CoreWait: a coroutine of a core that waits for something from another one. The base of awaiters.
// Owner: the coroutine's frame; destroying it while it waits gives up; so does the cancellation of a Task.
// Affinity: the core's thread.
class CoreWait : protected Wait {
 public:
  CoreWait(Core* core, Cancel cancel) noexcept : Wait(cancel), core_(core) {}
  CoreWait(const CoreWait&) = delete;
  CoreWait& operator=(const CoreWait&) = delete;

 protected:
  ~CoreWait() = default;
  // A Task goes on in the next turn, any other coroutine inside of this call.
  void go_on() noexcept {
    if (waiting()) {
      finish();
    } else {
      coroutine_.resume();
    }
  }

  Core* core_;  // null: the caller is no core of that runtime
  std::coroutine_handle<> coroutine_;
};

// CallState: a call on its way to another core and back. A pooled block.
// Owner: the caller's core, from begin() until the reply came or the core ends. Affinity: the members say.
// Invariant: once the request was sent the reply is sent too, so that the caller's core frees the block, unless the
// runtime ends first; then the core's end does.
class CallState : public ListLink {
 public:
  using Step = void(CallState& self) noexcept;
  class Caller;

  CallState(const CallState&) = delete;
  CallState& operator=(const CallState&) = delete;

  // --- the caller's core ---
  void begin(Core& caller, unsigned target, Caller& waiter) noexcept;
  void abandon() noexcept {  // nobody waits any more; the other side need not start
    waiter_ = nullptr;
    abandoned_.store(true, std::memory_order_relaxed);  // a hint: the reply comes all the same
  }
  void handle_reply() noexcept;
  void handle_end() noexcept;  // the core ends
  void destroy() noexcept { destroy_(*this); }

 protected:
  CallState(Step* call, Step* end) noexcept : call_(call), destroy_(end) {}
  ~CallState() = default;

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

  Step* call_;  // calls the function, unless abandoned, and destroys it
  Step* destroy_;
  Core* caller_ = nullptr;
  Caller* waiter_ = nullptr;
  Waiting waiting_{nullptr};  // the request, and later the reply, while there is no room for it

 protected:
  sync::Atomic<bool> abandoned_{false};
};

// The caller's side while it waits.
class CallState::Caller : protected CoreWait {
 public:
  void handle_reply() noexcept;
  void give_up(Error why) noexcept;

 protected:
  Caller(Core* core, unsigned target, Instant deadline) noexcept
      : CoreWait(core, handle_cancel), target_(target), deadline_(deadline) {}
  ~Caller();
  [[nodiscard]] bool suspend(std::coroutine_handle<> coroutine) noexcept;
  [[nodiscard]] bool suspend(CancelScope& scope, std::coroutine_handle<> coroutine) noexcept;

  CallState* state_ = nullptr;
  Error error_;

 private:
  static void handle_cancel(Wait& wait) noexcept { static_cast<Caller&>(wait).give_up(kCancelled); }
  void drop_call(Error why) noexcept;
  void cancel_timer() noexcept;

  unsigned target_;
  Instant deadline_;
  TimerId timer_;
  bool begun_ = false;
};

template <typename T>
struct CallResult {
  using Type = Result<T>;
};
template <typename T>
struct CallResult<Result<T>> {
  using Type = Result<T>;
};

template <typename F>
class CallOf final : public CallState {
 public:
  using R = std::invoke_result_t<F&>;
  using Outcome = typename CallResult<R>::Type;

  template <typename G>
  explicit CallOf(G&& function) : CallState(call, end), function_(std::forward<G>(function)) {}

  [[nodiscard]] Outcome take() noexcept { return std::move(outcome_); }

 private:
  ~CallOf() {
    if (!called_) {
      function_.~F();
    }
  }
  static void call(CallState& base) noexcept {
    auto& self = static_cast<CallOf&>(base);
    if (!self.abandoned_.load(std::memory_order_relaxed)) {
      try {
        if constexpr (std::is_void_v<R>) {
          self.function_();
          self.outcome_ = Outcome();
        } else {
          self.outcome_ = self.function_();
        }
      } catch (...) {
        self.outcome_ = Error(Errc::system, "the called function threw");
      }
    }
    self.function_.~F();
    self.called_ = true;
  }
  static void end(CallState& base) noexcept {
    auto* const self = static_cast<CallOf*>(&base);
    self->~CallOf();
    mem::pool_deallocate(self);
  }

  union {
    F function_;
  };
  bool called_ = false;
  Outcome outcome_ = Error(Errc::terminated, "the call was given up");
};

}  // namespace detail

// What Runtime::call() gives; co_await it once, on the core that made it.
template <typename F>
class [[nodiscard]] Calling final : private detail::CallState::Caller {
  using Call = detail::CallOf<F>;
  static_assert(alignof(Call) <= alignof(std::max_align_t));

 public:
  template <typename G>
  Calling(Core* core, unsigned target, Instant deadline, G&& function) : Caller(core, target, deadline) {
    if (void* const memory = mem::pool_allocate(sizeof(Call)); memory != nullptr) {
      state_ = ::new (memory) Call(std::forward<G>(function));
    }
  }

  [[nodiscard]] bool await_ready() const noexcept { return false; }
  [[nodiscard]] bool await_suspend(std::coroutine_handle<> coroutine) noexcept { return suspend(coroutine); }
  template <detail::TaskPromise Promise>
  [[nodiscard]] bool await_suspend(std::coroutine_handle<Promise> coroutine) noexcept {
    return suspend(coroutine.promise().scope(), coroutine);
  }
  [[nodiscard]] typename Call::Outcome await_resume() noexcept {
    if (state_ == nullptr) {
      return error_;
    }
    return static_cast<Call*>(state_)->take();  // the state goes with this
  }
};

// What Runtime::post_wait() gives; co_await it once, on the core that made it.
class [[nodiscard]] Posting final : private detail::CoreWait, private Waiting {
 public:
  Posting(Core* core, unsigned target, TaskFunction task) noexcept
      : CoreWait(core, handle_cancel), Waiting(handle_told), target_(target) {
    message = std::move(task);
  }
  ~Posting();

  [[nodiscard]] bool await_ready() const noexcept { return false; }
  [[nodiscard]] bool await_suspend(std::coroutine_handle<> coroutine) noexcept;
  template <detail::TaskPromise Promise>
  [[nodiscard]] bool await_suspend(std::coroutine_handle<Promise> coroutine) noexcept {
    return suspend(coroutine.promise().scope(), coroutine);
  }
  [[nodiscard]] Result<void> await_resume() const noexcept {
    return error_ == Errc::ok ? Result<void>() : Result<void>(error_);
  }

 private:
  static void handle_told(Waiting& waiting, Error outcome) noexcept;
  static void handle_cancel(Wait& wait) noexcept;
  [[nodiscard]] bool suspend(CancelScope& scope, std::coroutine_handle<> coroutine) noexcept;

  unsigned target_;
  Error error_;
};

}  // namespace weft::rt
