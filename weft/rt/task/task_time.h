// SPDX-License-Identifier: MIT
#pragma once

#include <coroutine>
#include <type_traits>
#include <utility>

#include "weft/base/result.h"
#include "weft/base/time.h"
#include "weft/rt/task/task.h"

namespace weft::rt {

namespace detail {

template <typename T>
inline constexpr bool kIsResult = false;
template <typename T>
inline constexpr bool kIsResult<Result<T>> = true;

// AsResult: a type that can report an interrupted await: a Result as it is, any other type in a Result.
template <typename T>
using AsResult = std::conditional_t<kIsResult<T>, T, Result<T>>;

inline constexpr Error kNoTimer(Errc::resource_exhausted, "no timer");

}  // namespace detail

// Sleeping: the awaiter of sleep() and sleep_until(). A timer of the wheel, no allocation.
class [[nodiscard]] Sleeping {
 public:
  Sleeping(bool relative, Duration wait, Instant deadline) noexcept
      : wait_(this), relative_(relative), duration_(wait), deadline_(deadline) {}
  Sleeping(Sleeping&& other) noexcept : Sleeping(other.relative_, other.duration_, other.deadline_) {}
  Sleeping& operator=(Sleeping&&) = delete;
  ~Sleeping() = default;

  [[nodiscard]] bool await_ready() const noexcept { return false; }
  template <detail::TaskPromise Promise>
  bool await_suspend(std::coroutine_handle<Promise> coroutine) {
    return suspend(coroutine.promise().scope(), coroutine);
  }
  [[nodiscard]] Result<void> await_resume() const noexcept { return result_; }

 private:
  struct SleepWait : Wait {
    explicit SleepWait(Sleeping* who) noexcept : Wait(give_up), sleeping(who) {}
    static void give_up(Wait& self) noexcept;
    Sleeping* sleeping;
  };
  bool suspend(CancelScope& scope, std::coroutine_handle<> coroutine);

  SleepWait wait_;
  TimerId timer_;
  bool relative_;
  Duration duration_;
  Instant deadline_;
  Result<void> result_;
};

// `co_await sleep(10ms)` -> Result<void>. Counts from the beginning of the loop's turn, as exactly as the timer wheel:
// never too short, up to a tick too long. A negative time never ends. A deadline in the past ends in the next turn.
// Errors: kCancelled; resource_exhausted.
inline Sleeping sleep(Duration wait) noexcept { return {true, wait, Instant()}; }
inline Sleeping sleep_until(Instant deadline) noexcept { return {false, Duration(), deadline}; }
// Resumes in the next turn, after the coroutines that are ready now.
inline Sleeping yield() noexcept { return {false, Duration(), Instant::min()}; }

namespace detail {
template <typename Awaiter>
Task<decltype(std::declval<Awaiter&>().await_resume())> await_moved(Awaiter awaiter) {
  co_return co_await awaiter;
}
}  // namespace detail

// Timed: the awaiter of with_timeout().
template <typename T>
class [[nodiscard]] Timed {
 public:
  Timed(Task<T> task, Duration timeout) noexcept : task_(std::move(task)), timeout_(timeout) {}
  Timed(Timed&& other) noexcept : Timed(std::move(other.task_), other.timeout_) {}
  Timed& operator=(Timed&&) = delete;
  ~Timed() = default;

  [[nodiscard]] bool await_ready() noexcept {
    refused_ = !task_.may_begin();
    return refused_;
  }
  template <detail::TaskPromise Promise>
  std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> parent) {
    CancelScope& outer = parent.promise().scope();
    scope_.open(outer);
    TaskRunner& runner = outer.runner();
    timer_ = runner.timers().schedule(deadline_after(runner.now(), timeout_), {handle_timer, this});
    if (!timer_) [[unlikely]] {
      no_timer_ = true;
      return parent;
    }
    task_.handle().promise().start_in(scope_, parent);
    return detail::transfer(task_.handle());
  }
  detail::AsResult<T> await_resume() {
    if (refused_) [[unlikely]] {
      return detail::kNoTask;
    }
    if (no_timer_) [[unlikely]] {
      return detail::kNoTimer;
    }
    if (!timed_out_) {
      scope_.runner().timers().cancel(timer_);
    }
    scope_.close();
    if constexpr (std::is_void_v<T>) {
      task_.handle().promise().take();
      return timed_out_ ? Result<void>(Errc::timed_out) : Result<void>();
    } else {
      T value = task_.handle().promise().take();
      if constexpr (detail::kIsResult<T>) {
        if (value) {
          return value;
        }
      }
      if (timed_out_) {
        return Error(Errc::timed_out);
      }
      return value;
    }
  }

 private:
  static void handle_timer(void* context) {
    auto* const self = static_cast<Timed*>(context);
    self->timed_out_ = true;
    self->scope_.cancel();
  }

  Task<T> task_;
  Duration timeout_;
  CancelScope scope_;
  TimerId timer_;
  bool timed_out_ = false;
  bool no_timer_ = false;
  bool refused_ = false;
};

// `co_await with_timeout(f(), 1s)`: the result of f(), as a Result. A task that takes longer is cancelled. The await
// then returns timed_out after the end of the task, or the X if a Task<Result<X>> returned one nevertheless. A negative
// time is not a limit. The await rethrows the task's exception.
template <typename T>
Timed<T> with_timeout(Task<T> task, Duration timeout) noexcept {
  return Timed<T>(std::move(task), timeout);
}
// The same for awaiters that can be moved before they are awaited: `co_await with_timeout(stream->next(), 1s)`.
template <typename Awaiter>
  requires(!std::is_lvalue_reference_v<Awaiter> && requires(Awaiter& awaiter) { awaiter.await_resume(); })
auto with_timeout(Awaiter&& awaiter, Duration timeout) {
  return with_timeout(detail::await_moved(std::forward<Awaiter>(awaiter)), timeout);
}

}  // namespace weft::rt
