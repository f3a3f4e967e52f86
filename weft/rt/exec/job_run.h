// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "weft/rt/exec/drop_count.h"
#include "weft/rt/exec/executor.h"
#include "weft/sys/clock.h"

namespace weft::rt::detail {

// RunScope: a value on the stack that marks this thread as running jobs of an executor.
class RunScope {
 public:
  explicit RunScope(const void* executor) noexcept : executor_(executor), outer_(innermost) { innermost = this; }
  RunScope(const RunScope&) = delete;
  RunScope& operator=(const RunScope&) = delete;
  ~RunScope() { innermost = outer_; }

  [[nodiscard]] static bool inside(const void* executor) noexcept { return find(executor) != nullptr; }
  // Keeps `what` alive until the running job of that executor ends, for an executor that its own job destroys. Does
  // nothing outside of its jobs.
  static void keep(const void* executor, const std::shared_ptr<void>& what) noexcept {
    for (RunScope* scope = find(executor); scope != nullptr; scope = find(executor, scope->outer_)) {
      scope->kept_ = what;
    }
  }

 private:
  static inline thread_local RunScope* innermost = nullptr;

  static RunScope* find(const void* executor, RunScope* scope = innermost) noexcept {
    while (scope != nullptr && scope->executor_ != executor) {
      scope = scope->outer_;
    }
    return scope;
  }

  const void* executor_;
  RunScope* outer_;
  std::shared_ptr<void> kept_;
};

// Drops: a DropCount with the list of its threads.
class Drops {
 public:
  // Scope: a value on the stack, while this thread destroys dropped jobs, from begin() to end() of the count.
  class Scope {
   public:
    explicit Scope(Drops& drops) noexcept : drops_(drops), mark_(&drops) { drops.count_.begin(); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
    ~Scope() { drops_.count_.end(); }

   private:
    Drops& drops_;
    RunScope mark_;
  };

  // Whether this thread is in a scope: a destructor that stops its own executor cannot wait for itself.
  [[nodiscard]] bool inside() const noexcept { return RunScope::inside(this); }
  [[nodiscard]] bool wait_until_none(Instant deadline) noexcept {
    return count_.wait_until_none([deadline] { return time_left(deadline, sys::now()); });
  }

 private:
  DropCount count_;
};

// Instead of the destructor of an executor's shared state, in a forked child.
inline void keep_for_ever(std::shared_ptr<void> what) {
  static auto& kept = *new std::vector<std::shared_ptr<void>>;  // a child has one thread
  kept.push_back(std::move(what));
}

// The errors of a stop() that has not waited until the end.
inline constexpr Error kOwnJob(Errc::invalid_state, "a job cannot wait for the end of itself");
inline constexpr Error kStillRun(Errc::timed_out, "jobs still run");
inline constexpr Error kInherited(Errc::invalid_state, "a forked child has none of the threads");
// Of an executor, in a forked child.
inline constexpr Error kTakenByNobody(Errc::closed, "a forked child has none of the threads");

// Runs the job and destroys its closure. Returns false if the job threw, and the handler got the exception.
inline bool run_job(Job& job, const ExceptionHandler& handler) noexcept {
  bool ran = true;
  try {
    job();
  } catch (...) {
    ran = false;
    handle_exception(handler);
  }
  job.reset();
  return ran;
}

}  // namespace weft::rt::detail
