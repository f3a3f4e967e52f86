// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <concepts>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <new>
#include <stop_token>
#include <type_traits>
#include <utility>
#include <variant>

#include "weft/base/result.h"
#include "weft/base/time.h"
#include "weft/mem/buffer.h"
#include "weft/rt/exec/completion.h"
#include "weft/rt/loop/task_runner.h"
#include "weft/sync/spin.h"
#include "weft/sys/clock.h"
#include "weft/sys/fork.h"

namespace weft::rt {

namespace detail {

// Calls `function`, with the token if it takes one.
template <typename F>
decltype(auto) call_job(F& function, const std::stop_token& token) {
  if constexpr (std::invocable<F&, std::stop_token>) {
    return function(token);
  } else {
    return function();
  }
}
template <typename F>
using JobResult =
    std::remove_cv_t<decltype(call_job(std::declval<std::decay_t<F>&>(), std::declval<const std::stop_token&>()))>;

// Unwrap: the value type of the Future of a job or a task that returns a T. A Future returns a Result anyway, so a
// Result<X> becomes X.
template <typename T>
struct Unwrap {
  using Type = T;
};
template <typename T>
struct Unwrap<Result<T>> {
  using Type = T;
};
template <typename T>
using Unwrapped = typename Unwrap<T>::Type;

// FutureState: the pooled block that a job and its Future share. Completion decides which of them frees it.
template <typename T>
struct FutureState {
  using Value = std::conditional_t<std::is_void_v<T>, std::monostate, T>;

  Completion completion;
  sys::Birth birth;  // of the process that has the job
  bool has_value = false;
  Error error;
  std::exception_ptr exception;
  void (*continuation)(void* context) noexcept = nullptr;
  void* context = nullptr;
  void (*destroy)(FutureState*) noexcept = nullptr;
  union {
    Value value;
  };

  FutureState() noexcept {}
  FutureState(const FutureState&) = delete;
  FutureState& operator=(const FutureState&) = delete;
  ~FutureState() {
    if (has_value) {
      value.~Value();
    }
  }
  // Job side, before finish(): keeps the job's result, which may be a Result, or the error of that Result.
  template <typename Returned>
  void keep(Returned&& returned) {
    if constexpr (!std::same_as<Unwrapped<std::remove_cvref_t<Returned>>, std::remove_cvref_t<Returned>>) {
      if (!returned) {
        error = returned.error();
        return;
      }
      if constexpr (std::is_void_v<T>) {
        ::new (&value) std::monostate();
      } else {
        ::new (static_cast<void*>(std::addressof(value))) T(*std::forward<Returned>(returned));
      }
    } else {
      ::new (static_cast<void*>(std::addressof(value))) T(std::forward<Returned>(returned));
    }
    has_value = true;
  }
  void keep_nothing() noexcept {
    ::new (&value) std::monostate();
    has_value = true;
  }
  void keep_exception(StaticText text) noexcept {
    exception = std::current_exception();
    error = Error(Errc::job_threw, text);
  }
  // Job side, last call.
  void finish() noexcept {
    switch (completion.complete()) {
      case Completion::Next::free: destroy(this); break;
      case Completion::Next::resume: continuation(context); break;
      case Completion::Next::nothing: break;
    }
  }
};

// Submitted: a job that returns an R, and the state of its Future.
template <typename R, typename F, typename Token>
struct Submitted final : FutureState<Unwrapped<R>> {
  using State = FutureState<Unwrapped<R>>;

  mem::Buffer* buffer;
  Token token;  // std::stop_token, or std::monostate for none
  union {
    F function;  // until it was called or dropped
  };

  template <typename G>
  Submitted(mem::Buffer* block, Token stop, G&& source) : buffer(block), token(std::move(stop)) {
    ::new (&function) F(std::forward<G>(source));
    State::destroy = [](State* state) noexcept {
      auto* submitted = static_cast<Submitted*>(state);
      mem::Buffer* const memory = submitted->buffer;
      submitted->~Submitted();
      memory->release();
    };
  }
  ~Submitted() {}  // NOLINT(modernize-use-equals-default): run() or drop() destroyed the union's member

  // Returns null if there is no memory.
  template <typename G>
  static Submitted* make(Token stop, G&& source) {
    constexpr std::size_t kExtra = alignof(Submitted) > alignof(std::max_align_t) ? alignof(Submitted) : 0;
    mem::Buffer* memory = mem::Buffer::make(sizeof(Submitted) + kExtra);
    if (memory == nullptr) {
      return nullptr;
    }
    void* place = memory->data();
    std::size_t space = sizeof(Submitted) + kExtra;
    place = std::align(alignof(Submitted), sizeof(Submitted), place, space);
    if constexpr (std::is_nothrow_constructible_v<F, G>) {
      return ::new (place) Submitted(memory, std::move(stop), std::forward<G>(source));
    } else {
      try {
        return ::new (place) Submitted(memory, std::move(stop), std::forward<G>(source));
      } catch (...) {
        memory->release();
        throw;
      }
    }
  }

  void drop(Error why) noexcept {
    function.~F();
    State::error = why;
    State::finish();
  }
  void run() noexcept {
    if constexpr (std::same_as<Token, std::stop_token>) {
      if (token.stop_requested()) {
        return drop(Error(Errc::cancelled, "its stop token was set before the job began"));
      }
    }
    try {
      if constexpr (std::is_void_v<R>) {
        call();
        State::keep_nothing();
      } else if constexpr (std::same_as<R, Unwrapped<R>>) {
        ::new (static_cast<void*>(std::addressof(this->value))) R(call());  // in place: an R need not be movable
        State::has_value = true;
      } else {
        State::keep(call());
      }
    } catch (...) {
      State::keep_exception("its Future has the exception");
    }
    function.~F();
    State::finish();
  }

 private:
  decltype(auto) call() {
    if constexpr (std::same_as<Token, std::stop_token>) {
      return call_job(function, token);
    } else {
      return function();
    }
  }
};

// SubmittedHandle: the job side's hold on a Submitted. Destroyed before it ran, the handle ends the future with
// `terminated`.
template <typename SubmittedType>
class SubmittedHandle {
 public:
  using MovesAsBytes = void;

  explicit SubmittedHandle(SubmittedType* submitted) noexcept : submitted_(submitted) {}
  SubmittedHandle(SubmittedHandle&& other) noexcept : submitted_(std::exchange(other.submitted_, nullptr)) {}
  SubmittedHandle& operator=(SubmittedHandle&&) = delete;
  ~SubmittedHandle() {
    if (submitted_ != nullptr) {
      submitted_->drop(Error(Errc::terminated, "the job was dropped before it ran"));
    }
  }
  void operator()() noexcept { std::exchange(submitted_, nullptr)->run(); }
  // Ends the future with `why`. The job does not run.
  void refuse(Error why) noexcept { std::exchange(submitted_, nullptr)->drop(why); }

 private:
  SubmittedType* submitted_;
};

}  // namespace detail

template <typename T>
class FutureAwait;

// Future: the result of a submitted job, when it is ready: the value, or an Error.
// Owner: a move-only value; dropping it does not affect the job.
// Affinity: one thread at a time.
// Cost: no allocation of its own; get() of a ready result is one load.
// Errors of a result: those of Executor::submit(), if the job was refused; cancelled (its stop token was set before the
// job began); terminated (stop() dropped the job before it began). After these three the job did not run at all.
// job_threw (see exception()). The error of the Result that the job returned: its Future is that of the Result's value.
// A job that began and finds its token set may return a value or throw.
template <typename T>
class [[nodiscard]] Future {
  static_assert(!std::is_reference_v<T>, "return a pointer, or std::ref");
  using State = detail::FutureState<T>;

 public:
  Future() noexcept : error_(Errc::invalid_state, "this future is of no job") {}
  explicit Future(Error error) noexcept : error_(error) {}
  explicit Future(State* state) noexcept : state_(state) {}
  Future(Future&& other) noexcept
      : state_(std::exchange(other.state_, nullptr)),
        error_(std::exchange(other.error_, Error(Errc::invalid_state, "this future was moved from"))) {}
  Future& operator=(Future&& other) noexcept {
    if (this != &other) {
      leave();
      state_ = std::exchange(other.state_, nullptr);
      error_ = std::exchange(other.error_, Error(Errc::invalid_state, "this future was moved from"));
    }
    return *this;
  }
  ~Future() { leave(); }

  // Whether get() returns at once. The future of a refused job is ready.
  [[nodiscard]] bool ready() const noexcept { return state_ == nullptr || state_->completion.ready(); }
  // Returns false if the result is not ready by then. Inside a job, waiting for a job that only this thread can run
  // lasts until the deadline. Does not wait in a forked child of the job's process, where no job runs.
  bool wait_until(Instant deadline) const noexcept;
  // Moves the value out: a later call fails with invalid_state. Rethrows an exception of the value's move; then the
  // value counts as taken. In a forked child, which does not have the job, it fails with invalid_state, too.
  Result<T> get() { return get_until(kNever); }
  // Fails with timed_out if the result is not ready; the caller may call again. If the job itself returned timed_out,
  // the first call returns it and later calls fail with invalid_state, so a caller that retries ends.
  Result<T> get_until(Instant deadline) {
    if (!wait_until(deadline)) {
      return inherited() ? Error(Errc::invalid_state, "a forked child has not the job") : Error(Errc::timed_out);
    }
    return take();
  }
  // Returns the job's exception if the result is ready, otherwise null.
  [[nodiscard]] std::exception_ptr exception() const noexcept {
    return state_ != nullptr && ready() ? state_->exception : nullptr;
  }

  // Calls the continuation when the result is ready, in the thread that ran the job, inside the job's turn. Returns
  // false if the result is ready already: then it never calls the continuation. Requires that no other continuation is
  // set, and that the future is not moved until the call.
  [[nodiscard]] bool try_continue(void (*continuation)(void* context) noexcept, void* context) noexcept {
    if (state_ == nullptr) {
      return false;
    }
    State* const state = state_;  // once it is accepted *this may be gone
    state->continuation = continuation;
    state->context = context;
    return state->completion.try_continue();
  }
  // Takes the continuation back. Returns false if its call runs at the moment, or is over.
  [[nodiscard]] bool try_withdraw() noexcept { return state_ != nullptr && state_->completion.try_withdraw(); }

  // co_await yields the result of get(). A Task (task.h) resumes on its own loop and can be cancelled: kCancelled, and
  // the future is unchanged. Any other coroutine resumes in the thread that ran the job, inside the job's turn.
  FutureAwait<T> operator co_await() noexcept { return FutureAwait<T>(*this); }

 private:
  [[nodiscard]] bool inherited() const noexcept { return state_ != nullptr && state_->birth.elsewhere(); }
  Result<T> take() {
    if (state_ == nullptr) {
      return error_;
    }
    if (!state_->has_value && (state_->error != Errc::timed_out || !std::exchange(taken_, true))) {
      return state_->error;
    }
    if (std::exchange(taken_, true)) {
      return Error(Errc::invalid_state, "the result was taken already");
    }
    if constexpr (std::is_void_v<T>) {
      return {};
    } else {
      return std::move(state_->value);
    }
  }
  void leave() noexcept {
    taken_ = false;
    if (State* const state = std::exchange(state_, nullptr); state != nullptr && state->completion.leave()) {
      state->destroy(state);
    }
  }

  State* state_ = nullptr;
  Error error_;
  bool taken_ = false;
};

// FutureAwait: the awaiter of a Future. No allocation.
template <typename T>
class [[nodiscard]] FutureAwait {
 public:
  explicit FutureAwait(Future<T>& future) noexcept : future_(future), wait_(this), arrival_(this) {}
  FutureAwait(const FutureAwait&) = delete;
  FutureAwait& operator=(const FutureAwait&) = delete;
  ~FutureAwait() = default;

  [[nodiscard]] bool await_ready() const noexcept { return future_.ready(); }
  template <detail::TaskPromise Promise>
  bool await_suspend(std::coroutine_handle<Promise> coroutine) {
    if (!wait_.begin(coroutine.promise().scope(), coroutine)) {
      withdrawn_ = true;
      return wait_.deferred();
    }
    if (!future_.try_continue([](void* self) noexcept { static_cast<FutureAwait*>(self)->post(); }, this)) {
      wait_.finish();  // the result is ready by now
    }
    return true;
  }
  bool await_suspend(std::coroutine_handle<> coroutine) noexcept {
    return future_.try_continue([](void* frame) noexcept { std::coroutine_handle<>::from_address(frame).resume(); },
                                coroutine.address());
  }
  Result<T> await_resume() { return withdrawn_ ? Result<T>(kCancelled) : future_.get(); }

 private:
  struct FutureWait : Wait {
    explicit FutureWait(FutureAwait* who) noexcept : Wait(give_up), await(who) {}
    static void give_up(Wait& self) noexcept {
      FutureAwait& await = *static_cast<FutureWait&>(self).await;
      if (await.future_.try_withdraw()) {
        await.withdrawn_ = true;
        self.finish();
      }  // otherwise the job's thread posts the arrival, which finishes the wait
    }
    FutureAwait* await;
  };
  struct Arrival : detail::Ready {
    explicit Arrival(FutureAwait* who) noexcept : Ready(handle), await(who) {}
    static void handle(Ready& self) noexcept { static_cast<Arrival&>(self).await->wait_.finish(); }
    FutureAwait* await;
  };
  void post() noexcept { wait_.runner().post(arrival_); }  // in the thread that ran the job

  Future<T>& future_;
  FutureWait wait_;
  Arrival arrival_;
  bool withdrawn_ = false;
};

template <typename T>
bool Future<T>::wait_until(Instant deadline) const noexcept {
  static thread_local sync::SpinBudget budget;
  if (ready()) {
    return true;
  }
  const bool bounded = deadline != kNever;
  if ((bounded && deadline <= sys::now()) || inherited()) {
    return false;
  }
  (void)sync::spin_until(budget, sync::WaitMode::adaptive, [this] { return state_->completion.ready(); });
  while (!ready()) {
    const Duration left = time_left(deadline, sys::now());
    if (left == Duration::zero()) {
      return false;
    }
    (void)state_->completion.sleep(left);
  }
  return true;
}

}  // namespace weft::rt
