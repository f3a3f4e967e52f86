// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <stop_token>
#include <type_traits>
#include <utility>
#include <variant>

#include "weft/base/result.h"
#include "weft/base/time.h"
#include "weft/rt/exec/future.h"
#include "weft/rt/loop/task_function.h"

namespace weft::rt {

// What stop() does with tasks that wait.
enum class StopMode : std::uint8_t {
  drain,    // they run; delayed ones that are not due yet are dropped
  abandon,  // they are dropped, and tasks that run are asked to stop by their tokens
};

// What an executor counted since it was made.
struct ExecutorCounts {
  std::uint64_t executed = 0;   // began to run, also those that threw
  std::uint64_t threw = 0;      // of those; not counted: tasks of submit(), whose futures know
  std::uint64_t refused = 0;    // not taken: full, stopped, no memory
  std::uint64_t abandoned = 0;  // taken, and dropped by stop()
  std::uint64_t wakes = 0;      // workers that somebody had to wake
  unsigned workers = 0;         // threads now
};

// What is done with what a task of execute() throws. Called in the thread that ran the task; must be safe to call from
// several. What it throws itself is counted and dropped.
using ExceptionHandler = std::function<void(std::exception_ptr)>;

// Executor: where tasks run. A task is anything that can be called without arguments, or with a std::stop_token: that
// given with the task, else the executor's own, which stop(abandon) sets.
// Owner: whoever made it. Destruction is stop(abandon) without a deadline: what waits is dropped, what runs is waited
// for, unless it is a task of this executor that destroys it.
// Affinity: any thread, tasks included. Cost: execute() with a closure of up to TaskFunction::kInlineMax bytes and
// submit() allocate nothing but pooled blocks.
// Errors, of execute() at once and of submit() in the future: resource_exhausted: the queue is full, or no memory;
// closed: stop() was called. A task that was refused is destroyed, and does not run.
// Invariants:
//   (1) A task that was taken runs once, or is dropped by stop(), never both; its closure is destroyed in either case.
//   (2) A task's exception ends neither its thread nor the program: the future has it, or the handler and the count.
//   (3) No delay occupies a worker. A delayed task starts no earlier than its time; if the queue is full then, it waits
//       and is not lost.
class Executor {
 public:
  Executor() = default;
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;
  virtual ~Executor() = default;

  // Runs it soon. Fire and forget: what it returns is dropped.
  template <typename F>
  Result<void> execute(F&& task) {
    return take(Duration::zero(), closure(std::forward<F>(task)));
  }
  // The same, unless the token is set before it begins.
  template <typename F>
  Result<void> execute(std::stop_token token, F&& task) {
    return take(Duration::zero(), cancellable(std::move(token), std::forward<F>(task)));
  }
  // A delay that is not positive is none.
  template <typename F>
  Result<void> execute_after(Duration delay, F&& task) {
    return take(delay, closure(std::forward<F>(task)));
  }
  template <typename F>
  Result<void> execute_after(Duration delay, std::stop_token token, F&& task) {
    return take(delay, cancellable(std::move(token), std::forward<F>(task)));
  }

  template <typename F>
  auto submit(F&& task) {
    return submit_after(Duration::zero(), std::forward<F>(task));
  }
  template <typename F>
  auto submit(std::stop_token token, F&& task) {
    return submit_after(Duration::zero(), std::move(token), std::forward<F>(task));
  }
  template <typename F>
  auto submit_after(Duration delay, F&& task) {
    if constexpr (std::invocable<std::decay_t<F>&, std::stop_token>) {
      return submit_after(delay, stop_token(), std::forward<F>(task));
    } else {
      return submit_job(delay, std::monostate(), std::forward<F>(task));
    }
  }
  template <typename F>
  auto submit_after(Duration delay, std::stop_token token, F&& task) {
    return submit_job(delay, std::move(token), std::forward<F>(task));
  }

  // Refuses what comes from now on, does with what waits as told, and waits until no task runs. timed_out: some still
  // run at the deadline; what waited then is dropped, and stop() may be called again to wait on. invalid_state: called
  // by a task of this executor, which cannot wait for itself; the stopping has begun all the same. Idempotent.
  virtual Result<void> stop(StopMode mode, Instant deadline) = 0;
  [[nodiscard]] virtual ExecutorCounts counts() const noexcept = 0;
  [[nodiscard]] std::stop_token stop_token() const noexcept { return stop_source_.get_token(); }

 protected:
  // Moved from only when taken.
  virtual Result<void> run_soon(TaskFunction& task) = 0;
  virtual Result<void> run_after(Duration delay, TaskFunction& task) = 0;
  void request_stop() noexcept { stop_source_.request_stop(); }

 private:
  Result<void> take(Duration delay, TaskFunction task) {
    if (!task) [[unlikely]] {
      return Error(Errc::resource_exhausted, "no memory for the task");
    }
    return delay > Duration::zero() ? run_after(delay, task) : run_soon(task);
  }

  template <typename F>
  TaskFunction closure(F&& task) {
    if constexpr (std::invocable<std::decay_t<F>&, std::stop_token>) {
      return cancellable(stop_token(), std::forward<F>(task));
    } else {
      return TaskFunction(std::forward<F>(task));
    }
  }
  template <typename F>
  static TaskFunction cancellable(std::stop_token token, F&& task) {
    return TaskFunction([token = std::move(token), function = std::decay_t<F>(std::forward<F>(task))]() mutable {
      if (!token.stop_requested()) {
        static_cast<void>(detail::call_task(function, token));
      }
    });
  }
  template <typename Token, typename F>
  auto submit_job(Duration delay, Token token, F&& task) {
    using T = detail::TaskResult<F>;
    using Job = detail::Job<T, std::decay_t<F>, Token>;
    Job* const job = Job::make(std::move(token), std::forward<F>(task));
    if (job == nullptr) [[unlikely]] {
      return Future<T>(Error(Errc::resource_exhausted, "no memory for the task"));
    }
    Future<T> future(job);
    const Result<void> taken = take(delay, TaskFunction(detail::JobHandle<Job>(job)));
    if (!taken) [[unlikely]] {
      return Future<T>(taken.error());
    }
    return future;
  }

  std::stop_source stop_source_;
};

}  // namespace weft::rt
