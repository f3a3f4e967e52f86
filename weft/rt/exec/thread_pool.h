// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <memory>

#include "weft/base/result.h"
#include "weft/rt/exec/executor.h"
#include "weft/sys/thread.h"

namespace weft::rt {

struct PoolOptions {
  std::size_t queue_capacity = 4096;               // jobs that wait; rounded up, at most kQueueMax
  Duration idle_limit = std::chrono::seconds(10);  // how long a worker above the minimum sleeps before it ends
  ExceptionHandler on_exception;                   // none: exceptions are only counted
  const char* name = "weft-worker";                // static storage; of its threads
  sys::ThreadOptions threads;
};

// ThreadPool: an Executor with threads of its own: a fixed number, one, or as many as work asks for within bounds.
// Each worker has a queue; a thread that is none of its workers uses one of them by its own identity; a worker without
// jobs takes from the others' queues. So jobs of one thread begin in their order where there is one worker, and no
// order is promised where there are more.
// A dynamic pool starts a worker when a job comes and all of them are busy, and ends one that slept for idle_limit.
// Owner, affinity, errors: as Executor. A forked child has none of the threads: it makes pools of its own.
// Cost: execute() is a compare-exchange, a fence and a line of the queue; a system call only when every worker sleeps
// and none has been woken yet, so once per burst. A worker without jobs looks for some microseconds, then sleeps.
// Invariants: those of Executor, and 1. workers_min <= workers <= workers_max until it is stopped. 2. at most one
// worker searches without having been woken.
class ThreadPool final : public Executor {
 public:
  static constexpr unsigned kWorkersMax = 256;
  static constexpr std::size_t kQueueMax = std::size_t{1} << 20;

  // invalid_argument: no workers, more than kWorkersMax, workers_min > workers_max, a queue of none or above kQueueMax;
  // resource_exhausted: no thread or no memory to be had.
  static Result<std::unique_ptr<ThreadPool>> make_fixed(unsigned workers, const PoolOptions& options = {});
  static Result<std::unique_ptr<ThreadPool>> make_single(const PoolOptions& options = {});  // in the order of coming
  static Result<std::unique_ptr<ThreadPool>> make_dynamic(unsigned workers_min, unsigned workers_max,
                                                          const PoolOptions& options = {});
  ~ThreadPool() override;

  Result<void> stop(StopMode mode, Instant deadline) override;
  [[nodiscard]] ExecutorCounts counts() const noexcept override;

 protected:
  Result<void> run_soon(Job& job) override;
  Result<void> run_after(Duration delay, Job& job) override;

 private:
  struct Shared;
  explicit ThreadPool(std::shared_ptr<Shared> shared);

  std::shared_ptr<Shared> shared_;  // its threads' too
};

}  // namespace weft::rt
