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

#include "weft/base/counter_table.h"
#include "weft/base/result.h"
#include "weft/base/time.h"
#include "weft/rt/exec/future.h"
#include "weft/rt/loop/job.h"
#include "weft/sync/counter_block.h"

namespace weft::rt {

// What stop() does with jobs that wait.
enum class StopMode : std::uint8_t {
  drain,    // they run; delayed ones that are not due yet are dropped
  abandon,  // they are dropped, and jobs that run are asked to stop by their tokens
};

// clang-format off
#define WEFT_EXECUTOR_COUNTERS(ROW)                                                                              \
  ROW(executed, counter, "jobs_executed_total", "", "", "jobs",                                                  \
      "Jobs that began to run, also those that threw.", "rt/exec/thread_pool.cc")                                \
  ROW(threw, counter, "jobs_threw_total", "", "", "jobs",                                                        \
      "Jobs of execute() that threw; the future of submit() has its own.", "rt/exec/thread_pool.cc")             \
  ROW(refused, counter, "jobs_refused_total", "", "", "jobs",                                                    \
      "Jobs that were not taken: the queue was full, the executor stopped, no memory.", "rt/exec/thread_pool.cc") \
  ROW(abandoned, counter, "jobs_abandoned_total", "", "", "jobs",                                                \
      "Jobs that were taken, and dropped by stop().", "rt/exec/thread_pool.cc")                                  \
  ROW(wakes, counter, "wakes_total", "", "", "wake-ups",                                                         \
      "Workers that a caller of execute() had to wake.", "rt/exec/thread_pool.cc")                               \
  ROW(workers, gauge, "workers", "", "", "threads",                                                              \
      "Worker threads that there are.", "rt/exec/thread_pool.cc")
// clang-format on

// What an executor counted since it was made.
struct ExecutorCounts {
  using Number = std::uint64_t;
  WEFT_COUNTER_BLOCK(WEFT_EXECUTOR_COUNTERS)
};
extern const CounterTable kExecutorTable;

// What is done with what a job of execute() throws. Called in the thread that ran the job; must be safe to call from
// several. What it throws itself is counted and dropped.
using ExceptionHandler = std::function<void(std::exception_ptr)>;

// Executor: where jobs run. A job is anything that can be called without arguments, or with a std::stop_token: that
// given with the job, else the executor's own, which stop(abandon) sets.
// Owner: whoever made it. Destruction is stop(abandon) without a deadline: what waits is dropped, what runs is waited
// for, unless it is a job of this executor that destroys it.
// Affinity: any thread, jobs included. Cost: execute() with a closure of up to Job::kInlineMax bytes and
// submit() allocate nothing but pooled blocks.
// Errors, of execute() at once and of submit() in the future: resource_exhausted: the queue is full, or no memory;
// closed: stop() was called. A job that was refused is destroyed, and does not run.
// Invariants:
//   (1) A job that was taken runs once, or is dropped by stop(), never both; its closure is destroyed in either case.
//   (2) A job's exception ends neither its thread nor the program: the future has it, or the handler and the count.
//   (3) No delay occupies a worker. A delayed job starts no earlier than its time; if the queue is full then, it waits
//       and is not lost.
class Executor {
 public:
  Executor() = default;
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;
  virtual ~Executor() = default;

  // Runs it soon. Fire and forget: what it returns is dropped.
  template <typename F>
  Result<void> execute(F&& job) {
    return take(Duration::zero(), closure(std::forward<F>(job)));
  }
  // The same, unless the token is set before it begins.
  template <typename F>
  Result<void> execute(std::stop_token token, F&& job) {
    return take(Duration::zero(), cancellable(std::move(token), std::forward<F>(job)));
  }
  // A delay that is not positive is none.
  template <typename F>
  Result<void> execute_after(Duration delay, F&& job) {
    return take(delay, closure(std::forward<F>(job)));
  }
  template <typename F>
  Result<void> execute_after(Duration delay, std::stop_token token, F&& job) {
    return take(delay, cancellable(std::move(token), std::forward<F>(job)));
  }

  template <typename F>
  auto submit(F&& job) {
    return submit_after(Duration::zero(), std::forward<F>(job));
  }
  template <typename F>
  auto submit(std::stop_token token, F&& job) {
    return submit_after(Duration::zero(), std::move(token), std::forward<F>(job));
  }
  template <typename F>
  auto submit_after(Duration delay, F&& job) {
    if constexpr (std::invocable<std::decay_t<F>&, std::stop_token>) {
      return submit_after(delay, stop_token(), std::forward<F>(job));
    } else {
      return submit_job(delay, std::monostate(), std::forward<F>(job));
    }
  }
  template <typename F>
  auto submit_after(Duration delay, std::stop_token token, F&& job) {
    return submit_job(delay, std::move(token), std::forward<F>(job));
  }

  // Refuses what comes from now on, does with what waits as told, and waits until no job runs. timed_out: some still
  // run at the deadline; what waited then is dropped, and stop() may be called again to wait on. invalid_state: called
  // by a job of this executor, which cannot wait for itself; the stopping has begun all the same. Idempotent.
  virtual Result<void> stop(StopMode mode, Instant deadline) = 0;
  [[nodiscard]] virtual ExecutorCounts counts() const noexcept = 0;
  // The same for a page of metrics. The executor outlives it.
  [[nodiscard]] CounterSource counter_source() const;
  [[nodiscard]] std::stop_token stop_token() const noexcept { return stop_source_.get_token(); }

 protected:
  // Moved from only when taken.
  virtual Result<void> run_soon(Job& job) = 0;
  virtual Result<void> run_after(Duration delay, Job& job) = 0;
  void request_stop() noexcept { stop_source_.request_stop(); }

 private:
  Result<void> take(Duration delay, Job job) {
    if (!job) [[unlikely]] {
      return Error(Errc::resource_exhausted, "no memory for the job");
    }
    return delay > Duration::zero() ? run_after(delay, job) : run_soon(job);
  }

  template <typename F>
  Job closure(F&& job) {
    if constexpr (std::invocable<std::decay_t<F>&, std::stop_token>) {
      return cancellable(stop_token(), std::forward<F>(job));
    } else {
      return Job(std::forward<F>(job));
    }
  }
  template <typename F>
  static Job cancellable(std::stop_token token, F&& job) {
    return Job([token = std::move(token), function = std::decay_t<F>(std::forward<F>(job))]() mutable {
      if (!token.stop_requested()) {
        static_cast<void>(detail::call_job(function, token));
      }
    });
  }
  template <typename Token, typename F>
  auto submit_job(Duration delay, Token token, F&& job) {
    using T = detail::JobResult<F>;
    using Submitted = detail::Submitted<T, std::decay_t<F>, Token>;
    Submitted* const submitted = Submitted::make(std::move(token), std::forward<F>(job));
    if (submitted == nullptr) [[unlikely]] {
      return Future<T>(Error(Errc::resource_exhausted, "no memory for the job"));
    }
    Future<T> future(submitted);
    const Result<void> taken = take(delay, Job(detail::SubmittedHandle<Submitted>(submitted)));
    if (!taken) [[unlikely]] {
      return Future<T>(taken.error());
    }
    return future;
  }

  std::stop_source stop_source_;
};

}  // namespace weft::rt
