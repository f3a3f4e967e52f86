// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <memory>

#include "weft/base/result.h"
#include "weft/rt/exec/executor.h"
#include "weft/rt/exec/timekeeper.h"
#include "weft/sys/thread.h"

namespace weft::rt {

struct ThreadPoolOptions {
  std::size_t queue_capacity = 4096;  // jobs that wait; rounded up, at most kQueueMax
  Duration idle_limit =
      std::chrono::seconds(10);      // the time for which a worker above the minimum sleeps before it ends
  ExceptionHandler on_exception{};   // empty: the pool only counts exceptions
  const char* name = "weft-worker";  // of its threads; static storage
  sys::ThreadOptions threads{};
};

// ThreadPool: an Executor with threads of its own: a fixed number, one, or a number that follows the work within
// bounds. Each worker has a queue. A thread that is not a worker of the pool pushes to the queue that its thread token
// selects. A worker without jobs takes from the others' queues. So with one worker the jobs of one thread begin in
// their order; with more workers there is no order.
// A dynamic pool starts a worker if a job arrives while all workers are busy. A worker that slept for idle_limit ends.
// Owner, affinity, errors: those of Executor. A forked child has none of the threads: it makes pools of its own.
// Cost: execute() is a compare-exchange, a fence and a line of the queue; a system call only when no worker searches
// and one sleeps, so once per burst. A worker without jobs spins for some microseconds, then sleeps.
// Invariants, besides those of Executor:
//   1. workers_min <= workers <= workers_max until the pool is stopped.
//   2. At most one worker searches without having been woken.
class ThreadPool final : public Executor {
 public:
  static constexpr unsigned kWorkersMax = 256;
  static constexpr std::size_t kQueueMax = std::size_t{1} << 20;

  // Errors: invalid_argument (no workers, more than kWorkersMax, workers_min > workers_max, a queue of 0 or above
  // kQueueMax); resource_exhausted (threads or memory).
  static Result<std::unique_ptr<ThreadPool>> make_fixed(unsigned workers, const ThreadPoolOptions& options = {});
  static Result<std::unique_ptr<ThreadPool>> make_single(
      const ThreadPoolOptions& options = {});  // jobs run in push order
  static Result<std::unique_ptr<ThreadPool>> make_dynamic(unsigned workers_min, unsigned workers_max,
                                                          const ThreadPoolOptions& options = {});
  ~ThreadPool() override;

  Result<void> stop(StopMode mode, Instant deadline) override;
  [[nodiscard]] ExecutorCounts counts() const noexcept override;

 protected:
  Result<void> run_soon(Job& job) override;
  Result<void> run_after(Duration delay, std::stop_token token, Job& job) override;

 private:
  struct Shared;
  explicit ThreadPool(std::shared_ptr<Shared> shared);

  std::shared_ptr<Shared> shared_;  // shared with its threads
  std::shared_ptr<Timekeeper> timekeeper_;
};

}  // namespace weft::rt
