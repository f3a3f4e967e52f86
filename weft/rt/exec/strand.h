// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <memory>

#include "weft/rt/exec/executor.h"

namespace weft::rt {

// Strand: an Executor whose jobs run one at a time, in the order of their execute(), on the threads of another
// executor. The writes of each job are visible to the next one.
// Owner, affinity: those of Executor; the underlying executor outlives the strand.
// Errors: those of Executor. An idle strand returns the refusal of the underlying executor. A strand with jobs does
// not: its grant continues in the present thread.
// Cost: a mutex; of a burst only the first job costs an execute() of the underlying executor. After kGrantMax jobs the
// strand moves to the end of the underlying queue.
// A delayed job takes a place among those of the underlying executor until its time, and three allocations.
// Invariants, besides those of Executor:
//   1. If the underlying executor is stopped and drops the strand's grant, the strand closes and drops its jobs.
class Strand final : public Executor {
 public:
  static constexpr std::size_t kGrantMax = 64;
  static constexpr std::size_t kQueueDefault = 4096;

  explicit Strand(Executor& underlying, std::size_t queue_capacity = kQueueDefault, ExceptionHandler on_exception = {});
  ~Strand() override;

  Result<void> stop(StopMode mode, Instant deadline) override;
  [[nodiscard]] ExecutorCounts counts() const noexcept override;

 protected:
  Result<void> run_soon(Job& job) override;
  Result<void> run_after(Duration delay, std::stop_token token, Job& job) override;

 private:
  struct Core;
  struct Delay;
  class Delayed;
  Error refuse(Error why);
  std::shared_ptr<Core> core_;  // shared with its grants
};

}  // namespace weft::rt
