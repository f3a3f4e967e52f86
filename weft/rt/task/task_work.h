// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <concepts>
#include <coroutine>
#include <exception>
#include <memory>
#include <new>
#include <stop_token>
#include <type_traits>
#include <utility>
#include <variant>

#include "weft/base/result.h"
#include "weft/rt/exec/executor.h"
#include "weft/rt/task/closure_await.h"
#include "weft/rt/task/task.h"

namespace weft::rt {

// RunOn: the awaiter of run_on().
template <typename F>
class [[nodiscard]] RunOn {
  using T = detail::JobResult<F>;
  using Value = std::conditional_t<std::is_void_v<T>, std::monostate, T>;
  static constexpr bool kTakesToken = std::invocable<F&, std::stop_token>;
  static_assert(!std::is_reference_v<T>, "return a pointer, or std::ref");

 public:
  template <typename G>
  RunOn(Executor& executor, G&& function) : executor_(executor), function_(std::forward<G>(function)), wait_(this) {}
  RunOn(RunOn&&) = delete;
  RunOn& operator=(RunOn&&) = delete;
  ~RunOn() {
    if (state_ == State::done) {
      value_.~Value();
    }
  }

  [[nodiscard]] bool await_ready() const noexcept { return false; }
  template <detail::TaskPromise Promise>
  bool await_suspend(std::coroutine_handle<Promise> coroutine) {
    if (std::exchange(awaited_, true)) [[unlikely]] {
      again_ = true;
      return false;
    }
    if (!wait_.begin(coroutine.promise().scope(), coroutine)) {
      error_ = kCancelled;
      return wait_.deferred();
    }
    const Result<void> taken = executor_.execute(Offer(this));
    if (!taken) [[unlikely]] {
      error_ = taken.error();  // the executor destroyed the offer, so the coroutine resumes in the next turn
    }
    return true;
  }
  Result<T> await_resume() {
    if (again_) [[unlikely]] {
      return Error(Errc::invalid_state, "the work is awaited once");
    }
    if (exception_) {
      std::rethrow_exception(exception_);
    }
    if (state_ != State::done) {
      return error_;
    }
    if constexpr (std::is_void_v<T>) {
      return {};
    } else {
      return std::move(value_);
    }
  }

 private:
  enum class State : unsigned char { waiting, done };

  // Offer: the executor's hold on the work. Its destruction resumes the coroutine.
  class Offer {
   public:
    using MovesAsBytes = void;
    explicit Offer(RunOn* work) noexcept : work_(work) {}
    Offer(Offer&& other) noexcept : work_(std::exchange(other.work_, nullptr)) {}
    Offer& operator=(Offer&&) = delete;
    ~Offer() {
      if (work_ != nullptr) {
        work_->handle_end();
      }
    }
    void operator()() noexcept { work_->run(); }

   private:
    RunOn* work_;
  };
  struct WorkWait : Wait {
    explicit WorkWait(RunOn* who) noexcept : Wait(give_up), work(who) {}
    static void give_up(Wait& self) noexcept {  // does not finish the wait: the work refers to the coroutine's frame
      RunOn& work = *static_cast<WorkWait&>(self).work;
      work.cancelled_.store(true, std::memory_order_relaxed);
      if constexpr (kTakesToken) {
        work.stop_.request_stop();
      }
    }
    RunOn* work;
  };
  struct Arrival : detail::Ready {
    explicit Arrival(RunOn* who) noexcept : Ready(handle), work(who) {}
    static void handle(Ready& self) noexcept { static_cast<Arrival&>(self).work->wait_.finish(); }
    RunOn* work;
  };

  // In the executor's thread.
  void run() noexcept {
    if (cancelled_.load(std::memory_order_relaxed)) {  // relaxed: a hint; partner is the store in give_up()
      error_ = kCancelled;
      return;
    }
    try {
      if constexpr (std::is_void_v<T>) {
        call();
        ::new (&value_) std::monostate();
      } else {
        ::new (static_cast<void*>(std::addressof(value_))) T(call());
      }
      state_ = State::done;
    } catch (...) {
      exception_ = std::current_exception();
    }
  }
  decltype(auto) call() {
    if constexpr (kTakesToken) {
      return function_(stop_.get_token());
    } else {
      return function_();
    }
  }
  void handle_end() noexcept { wait_.runner().post(arrival_); }

  Executor& executor_;
  F function_;
  WorkWait wait_;
  Arrival arrival_{this};
  [[no_unique_address]] std::conditional_t<kTakesToken, std::stop_source, std::monostate> stop_;
  std::atomic<bool> cancelled_{false};
  State state_ = State::waiting;
  bool awaited_ = false;
  bool again_ = false;
  Error error_ = Error(Errc::terminated, "the job was dropped before it ran");
  std::exception_ptr exception_;
  union {
    Value value_;
  };
};

// `co_await run_on(pool, [&] { return read_file(path); })`: runs a blocking function on the executor. The coroutine
// resumes on its own loop with a Result<T>; the await rethrows the function's exception. The function may refer to the
// coroutine's variables: when the await ends, the function has ended or will never run.
// When the task is cancelled, a function that has not begun does not run (kCancelled). For a function that runs, the
// await sets its std::stop_token if it takes one, waits for it, and returns its result.
// With GCC 12 a function that owns something is awaited in two steps, or the compiler refuses it (closure_await.h):
// `auto work = run_on(pool, [text] {...}); const auto done = co_await work;`.
// Errors: resource_exhausted, closed (the executor refused); terminated (the executor dropped the function);
// kCancelled.
// Cost: a closure of 8 bytes through Executor::execute(); no allocation unless the function takes a token.
template <typename F>
detail::ClosureAwaiter<RunOn<std::decay_t<F>>, F> run_on(Executor& executor, F&& function) {
  return detail::ClosureAwaiter<RunOn<std::decay_t<F>>, F>(executor, std::forward<F>(function));
}

}  // namespace weft::rt
