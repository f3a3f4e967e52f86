// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <utility>
#include <vector>

#include "weft/rt/exec/executor.h"
#include "weft/sync/parker.h"
#include "weft/sys/clock.h"
#include "weft/sys/fork.h"

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

// Drops: the threads that destroy dropped jobs of an executor. Its stop() waits for them, in whatever thread they are.
// Owner: what the executor's threads share. Affinity: any thread.
class Drops {
 public:
  // Scope: a value on the stack, while this thread destroys dropped jobs. It begins before another thread can find that
  // the jobs wait no more. The caller keeps the Drops alive until the scope has ended.
  class Scope {
   public:
    explicit Scope(Drops& drops) noexcept : drops_(drops), mark_(&drops) {
      drops.running_.fetch_add(1, std::memory_order_acq_rel);  // as in none()
    }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
    ~Scope() {
      if (drops_.running_.fetch_sub(1, std::memory_order_acq_rel) == 1) {  // release pairs with none()
        drops_.over_.wake_with_fence();
      }
    }

   private:
    Drops& drops_;
    RunScope mark_;
  };

  // Whether this thread is in a scope: a destructor that stops its own executor cannot wait for itself.
  [[nodiscard]] bool inside() const noexcept { return RunScope::inside(this); }
  [[nodiscard]] bool wait_until_none(Instant deadline) noexcept {
    for (;;) {
      const auto ticket = over_.announce_futex(false);
      if (none()) {
        return true;
      }
      const Duration left = time_left(deadline, sys::now());
      if (left == Duration::zero()) {
        return false;
      }
      over_.sleep(ticket, left);
    }
  }

 private:
  // A read-modify-write: it comes before the increment of a scope, or sees it. If it came before, then everything that
  // its caller saw happened before the scope: the jobs still waited.
  bool none() noexcept { return running_.fetch_add(0, std::memory_order_acq_rel) == 0; }

  std::atomic<std::uint32_t> running_{0};
  sync::Parker over_;
};

// Birth: the process in which an object was made. In a forked child the object's threads are not there, and one of its
// locks may be held for ever: the child waits for nothing and takes no lock of it.
class Birth {
 public:
  [[nodiscard]] bool elsewhere() const noexcept { return generation_ != sys::fork_generation(); }
  // Instead of the destructor of what the object shared.
  static void keep_for_ever(std::shared_ptr<void> what) {
    static auto& kept = *new std::vector<std::shared_ptr<void>>;  // a child has one thread
    kept.push_back(std::move(what));
  }

 private:
  std::uint32_t generation_ = sys::fork_generation();
};
// The errors of a stop() that has not waited until the end.
inline constexpr Error kOwnJob(Errc::invalid_state, "a job cannot wait for the end of itself");
inline constexpr Error kStillRun(Errc::timed_out, "jobs still run");
inline constexpr Error kInherited(Errc::invalid_state, "a forked child has none of the threads");

// Runs the job and destroys its closure. False: the job threw, and the handler got the exception.
inline bool run_job(Job& job, const ExceptionHandler& handler) noexcept {
  bool ran = true;
  try {
    job();
  } catch (...) {
    ran = false;
    try {
      if (handler) {
        handler(std::current_exception());
      }
    } catch (...) {  // NOLINT(bugprone-empty-catch): dropped; the caller counts the job's own exception
    }
  }
  job.reset();
  return ran;
}

}  // namespace weft::rt::detail
