// SPDX-License-Identifier: MIT
#pragma once

#include <functional>
#include <memory>

#include "weft/base/result.h"
#include "weft/base/time.h"
#include "weft/rt/core/core_job.h"
#include "weft/sync/condition.h"
#include "weft/sync/lock.h"

namespace weft::rt {

class Runtime;

// CoreVisits: runs a function once on each core of a runtime, and waits for the end of all calls.
// Owner: a shared_ptr, and the calls that have not ended. Affinity: begin() and wait() any thread, but a core that
// waits for itself never ends the wait.
// Cost: make() allocates; begin() and wait() do not. A core that has ended does not refuse its call, which then runs in
// the thread of begin(), see Core.
class CoreVisits : public std::enable_shared_from_this<CoreVisits> {
 public:
  // An exception of the function counts as the error job_threw.
  using Function = std::function<Result<void>(unsigned core)>;

  [[nodiscard]] static std::shared_ptr<CoreVisits> make(Runtime& runtime, Function function);  // throws std::bad_alloc
  // The same with begin() and wait() without a deadline. Throws std::bad_alloc before the first call.
  static Result<void> run(Runtime& runtime, Function function);
  CoreVisits(const CoreVisits&) = delete;
  CoreVisits& operator=(const CoreVisits&) = delete;

  void begin() noexcept { begin(false); }  // idempotent. The runtime outlives the call
  // The same; each call comes after all messages that any thread posted and showed to its core before (CoreJob).
  void begin_behind_all() noexcept { begin(true); }
  // After begin(): the first error of the calls. Errors of its own: timed_out (calls are left at the deadline).
  Result<void> wait(Instant deadline);

 private:
  struct Visit final : CoreJob {
    Visit() noexcept;
    std::shared_ptr<CoreVisits> keep;  // from begin() until the call
    unsigned core = 0;
  };

  CoreVisits(Runtime& runtime, Function function);
  void begin(bool behind_all) noexcept;
  [[nodiscard]] Result<void> call(unsigned core) noexcept;
  void visit(unsigned core) noexcept;

  Runtime& runtime_;
  const Function function_;
  const unsigned cores_;
  const std::unique_ptr<Visit[]> visits_;

  sync::StdMutex mutex_;
  sync::Condition changed_;
  bool begun_ WEFT_GUARDED_BY(mutex_) = false;
  unsigned left_ WEFT_GUARDED_BY(mutex_);
  Result<void> result_ WEFT_GUARDED_BY(mutex_);
};

}  // namespace weft::rt
