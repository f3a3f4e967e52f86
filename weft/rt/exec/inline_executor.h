// SPDX-License-Identifier: MIT
#pragma once

#include <memory>

#include "weft/rt/exec/executor.h"

namespace weft::rt {

class Timekeeper;

// InlineExecutor: an Executor whose tasks run at once, inside execute() and submit(), in the thread that calls; a task
// that executes another runs it inside itself. Delayed tasks run in a thread of its own, which the first one starts.
// Nothing waits but delayed tasks, so nothing is ever full. For tests, and where a thread would be in the way.
// Owner, affinity, errors: as Executor. Cost: two read-modify-writes and the call.
class InlineExecutor final : public Executor {
 public:
  explicit InlineExecutor(ExceptionHandler on_exception = {});
  ~InlineExecutor() override;

  // Waits for tasks that other threads run, too.
  Result<void> stop(StopMode mode, Instant deadline) override;
  [[nodiscard]] ExecutorCounts counts() const noexcept override;

 protected:
  Result<void> run_soon(TaskFunction& task) override;
  Result<void> run_after(Duration delay, TaskFunction& task) override;

 private:
  struct Core;
  std::shared_ptr<Core> core_;
  std::unique_ptr<Timekeeper> timekeeper_;
};

}  // namespace weft::rt
