// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
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

// StopMode: how stop() treats the jobs that wait.
enum class StopMode : std::uint8_t {
  drain,    // stop() lets them run, also delayed ones that are due; it drops those that are not due yet
  abandon,  // stop() drops them, and sets the executor's stop token for the jobs that run
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
      "Jobs that were taken, and dropped by stop(), or by their token while they waited for their time.",        \
      "rt/exec/thread_pool.cc")                                                                                  \
  ROW(wakes, counter, "wakes_total", "", "", "wake-ups",                                                         \
      "Workers that a caller of execute() had to wake.", "rt/exec/thread_pool.cc")                               \
  ROW(workers, gauge, "workers", "", "", "threads",                                                              \
      "Worker threads that there are.", "rt/exec/thread_pool.cc")                                                \
  ROW(queued, gauge, "jobs_queued", "", "", "jobs",                                                              \
      "Jobs that wait in the queue.", "rt/exec/thread_pool.cc")
// clang-format on

// ExecutorCounts: an executor's counters since it was made.
struct ExecutorCounts {
  using Number = std::uint64_t;
  WEFT_COUNTER_BLOCK(WEFT_EXECUTOR_COUNTERS)
};
extern const CounterTable kExecutorTable;

// Executor: runs jobs. A job is a closure without arguments, or with a std::stop_token: the token given with the job,
// otherwise the executor's own, which stop(abandon) sets.
// Owner: its maker. Destruction is stop(abandon) without a deadline: the executor drops jobs that wait, and waits for
// jobs that run, unless one of its own jobs destroys it, or the destructor of one. In a forked child destruction waits
// for nothing and destroys no job.
// Affinity: any thread, jobs included.
// Cost: execute() with a closure of up to Job::kInlineMax bytes, and submit(), allocate only pooled blocks. Errors, of
// execute() at once and of submit() in the future: resource_exhausted (the queue is full, or no memory); closed (stop()
// was called, or the process is a forked child). A refused job is destroyed, and does not run.
// Invariants:
//   1. A job that was taken runs once, or is dropped: by stop(), by the destructor, or by its token while it waits for
//      its time. Never both: taken = executed + abandoned + those that still wait. Its closure is destroyed in either
//      case, and its future ends: with the job's result, or cancelled, or terminated.
//   2. A job's exception ends neither its thread nor the program: the future has it, or the handler and the count.
//   3. No delay occupies a worker. A delayed job starts no earlier than its time. If the queue is full then, the job
//      waits and is not lost.
class Executor {
 public:
  Executor() = default;
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;
  virtual ~Executor() = default;

  // Runs the job soon. Fire and forget: the job's result is dropped.
  template <typename F>
  Result<void> execute(F&& job) {
    return take(Duration::zero(), {}, closure(std::forward<F>(job)));
  }
  // The same, unless the token is set before the job begins.
  template <typename F>
  Result<void> execute(std::stop_token token, F&& job) {
    return take(Duration::zero(), {}, cancellable(std::move(token), std::forward<F>(job)));
  }
  // A delay of zero or less is the same as execute(). A job whose token is set while it waits is dropped at once, in
  // the thread that sets the token; its place is free then.
  template <typename F>
  Result<void> execute_after(Duration delay, F&& job) {
    return take(delay, {}, closure(std::forward<F>(job)));
  }
  template <typename F>
  Result<void> execute_after(Duration delay, std::stop_token token, F&& job) {
    Job made = cancellable(token, std::forward<F>(job));
    return take(delay, std::move(token), std::move(made));
  }

  // Runs the job soon. Returns the Future of the job's result; for a job that returns a Result<T>, a Future<T>, which
  // has the Result's error.
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
      return submit_job(delay, {}, stop_token(), std::forward<F>(job));
    } else {
      return submit_job(delay, {}, std::monostate(), std::forward<F>(job));
    }
  }
  template <typename F>
  auto submit_after(Duration delay, std::stop_token token, F&& job) {
    return submit_job(delay, token, token, std::forward<F>(job));
  }

  // Refuses new jobs, treats waiting jobs by `mode`, and waits until no job runs and every dropped job, in whatever
  // thread, is destroyed. Idempotent.
  // Errors: timed_out (jobs, or the destructors of some, still run at the deadline). Then stop() drops waiting jobs;
  // the caller may call stop() again to wait.
  // Errors: invalid_state (the caller is a job of this executor, or the destructor of one, and cannot wait for itself;
  // the stop has begun nevertheless); invalid_state, without an effect, in a forked child, which has none of the
  // executor's threads.
  virtual Result<void> stop(StopMode mode, Instant deadline) = 0;
  [[nodiscard]] virtual ExecutorCounts counts() const noexcept = 0;
  // The same for a page of metrics. The executor outlives the source.
  [[nodiscard]] CounterSource counter_source() const;
  [[nodiscard]] std::stop_token stop_token() const noexcept { return stop_source_.get_token(); }

 protected:
  // A refused job stays unchanged.
  virtual Result<void> run_soon(Job& job) = 0;
  // If the token is set before the job's time, the thread that sets the token calls the job at once, and counts it as
  // abandoned: such a job checks its token.
  virtual Result<void> run_after(Duration delay, std::stop_token token, Job& job) = 0;
  static Result<void> delay_on(Executor& other, Duration delay, std::stop_token token, Job& job) {
    return delay > Duration::zero() ? other.run_after(delay, std::move(token), job) : other.run_soon(job);
  }
  // The source that stop() sets. A copy: a job's destructor or a stop callback may end the executor.
  [[nodiscard]] std::stop_source stop_source() const noexcept { return stop_source_; }

 private:
  Result<void> take(Duration delay, std::stop_token cancel, Job job) {
    if (!job) [[unlikely]] {
      return Error(Errc::resource_exhausted, "no memory for the job");
    }
    return delay > Duration::zero() ? run_after(delay, std::move(cancel), job) : run_soon(job);
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
  auto submit_job(Duration delay, std::stop_token cancel, Token token, F&& job) {
    using T = detail::Unwrapped<detail::JobResult<F>>;
    using Submitted = detail::Submitted<detail::JobResult<F>, std::decay_t<F>, Token>;
    Submitted* const submitted = Submitted::make(std::move(token), std::forward<F>(job));
    if (submitted == nullptr) [[unlikely]] {
      return Future<T>(Error(Errc::resource_exhausted, "no memory for the job"));
    }
    Future<T> future(submitted);
    const Result<void> taken = take(delay, std::move(cancel), Job(detail::SubmittedHandle<Submitted>(submitted)));
    if (!taken) [[unlikely]] {
      return Future<T>(taken.error());
    }
    return future;
  }

  std::stop_source stop_source_;
};

}  // namespace weft::rt
