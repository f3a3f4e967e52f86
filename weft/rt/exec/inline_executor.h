// SPDX-License-Identifier: MIT
#pragma once

#include <memory>

#include "weft/rt/exec/executor.h"

namespace weft::rt {

class Timekeeper;

// InlineExecutor: an Executor whose jobs run at once, inside execute() and submit(), in the calling thread. A job that
// executes another runs it inside itself. Delayed jobs run in a thread of the executor, which the first one starts.
// Only delayed jobs wait, so the executor is never full. For tests, and for programs without further threads.
// Owner, affinity, errors: those of Executor.
// Cost: two read-modify-writes and the call.
class InlineExecutor final : public Executor {
 public:
  explicit InlineExecutor(ExceptionHandler on_exception = {});
  ~InlineExecutor() override;

  // Waits for jobs that other threads run, too.
  Result<void> stop(StopMode mode, Instant deadline) override;
  [[nodiscard]] ExecutorCounts counts() const noexcept override;

 protected:
  Result<void> run_soon(Job& job) override;
  Result<void> run_after(Duration delay, std::stop_token token, Job& job) override;

 private:
  struct Core;
  std::shared_ptr<Core> core_;
  std::shared_ptr<Timekeeper> timekeeper_;
};

}  // namespace weft::rt
