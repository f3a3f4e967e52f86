// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <memory>

#include "weft/rt/exec/executor.h"

namespace weft::rt {

// Strand: an Executor whose jobs run one at a time, in the order of their execute(), each seeing what the one before
// did, on whatever threads another executor has.
// Owner, affinity, errors: as Executor; the underlying executor outlives it. Errors of the underlying one are passed on
// when the strand has nothing to do, and are no matter while it has: its grant goes on in the thread it has.
// Cost: a mutex; of a burst only the first job costs an execute() of the underlying executor. After kGrantMax jobs the
// strand goes to the end of the underlying queue.
// Invariants: those of Executor, and: a strand whose grant was dropped, because the underlying executor was stopped, is
// closed, and its jobs are dropped.
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
  Result<void> run_after(Duration delay, Job& job) override;

 private:
  struct Core;
  class Grant;
  class Delayed;
  std::shared_ptr<Core> core_;  // its grants' too
};

}  // namespace weft::rt
