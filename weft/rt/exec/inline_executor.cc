// SPDX-License-Identifier: MIT
#include "weft/rt/exec/inline_executor.h"

#include <atomic>
#include <utility>

#include "weft/rt/exec/job_run.h"
#include "weft/rt/exec/timekeeper.h"
#include "weft/sync/parker.h"
#include "weft/sys/clock.h"

namespace weft::rt {

struct InlineExecutor::Core {
  static constexpr std::uint64_t kClosed = std::uint64_t{1} << 63;

  explicit Core(ExceptionHandler handler) : on_exception(std::move(handler)) {}
  Result<void> run(Job& job) noexcept;
  bool wait_until_quiet(Instant deadline) noexcept;

  const ExceptionHandler on_exception;
  std::atomic<std::uint64_t> begun{0};  // number of jobs, and kClosed
  std::atomic<std::uint64_t> ended{0};
  std::atomic<std::uint64_t> threw{0};
  std::atomic<std::uint64_t> refused{0};
  std::atomic<std::uint64_t> abandoned{0};
  sync::Parker quiet;
};

Result<void> InlineExecutor::Core::run(Job& job) noexcept {
  if ((begun.fetch_add(1, std::memory_order_seq_cst) & kClosed) != 0) {
    begun.fetch_sub(1, std::memory_order_seq_cst);
    refused.fetch_add(1, std::memory_order_relaxed);
    return Error(Errc::closed, "the executor was stopped");
  }
  const detail::RunScope scope(this);
  if (Job mine = std::move(job); !detail::run_job(mine, on_exception)) {
    threw.fetch_add(1, std::memory_order_relaxed);
  }
  // Both seq_cst, as are the accesses in stop(): the last job to end sees kClosed, or stop() sees that job's end.
  ended.fetch_add(1, std::memory_order_seq_cst);
  if ((begun.load(std::memory_order_seq_cst) & kClosed) != 0) [[unlikely]] {
    quiet.wake_with_fence();
  }
  return {};
}

bool InlineExecutor::Core::wait_until_quiet(Instant deadline) noexcept {
  for (;;) {
    const auto ticket = quiet.announce_futex(false);
    if (ended.load(std::memory_order_seq_cst) == (begun.load(std::memory_order_seq_cst) & ~kClosed)) {
      return true;
    }
    const Duration left = time_left(deadline, sys::now());
    if (left == Duration::zero()) {
      return false;
    }
    quiet.sleep(ticket, left);
  }
}

InlineExecutor::InlineExecutor(ExceptionHandler on_exception)
    : core_(std::make_shared<Core>(std::move(on_exception))),
      timekeeper_(std::make_unique<Timekeeper>([core = core_](Job& job) { return core->run(job); })) {}

InlineExecutor::~InlineExecutor() {
  (void)stop(StopMode::abandon, kNever);
  detail::RunScope::keep(core_.get(), core_);
}

Result<void> InlineExecutor::run_soon(Job& job) { return core_->run(job); }
Result<void> InlineExecutor::run_after(Duration delay, Job& job) {
  auto taken = timekeeper_->schedule(delay, job);
  if (!taken) {
    core_->refused.fetch_add(1, std::memory_order_relaxed);
  }
  return taken;
}

Result<void> InlineExecutor::stop(StopMode mode, Instant deadline) {
  core_->begun.fetch_or(Core::kClosed, std::memory_order_seq_cst);
  if (mode == StopMode::abandon) {
    request_stop();
  }
  core_->abandoned.fetch_add(timekeeper_->close(), std::memory_order_relaxed);
  if (detail::RunScope::inside(core_.get())) {
    return Error(Errc::invalid_state, "a job cannot wait for the end of itself");
  }
  if (!core_->wait_until_quiet(deadline)) {
    request_stop();
    return Error(Errc::timed_out, "jobs still run");
  }
  timekeeper_->stop();
  return {};
}

ExecutorCounts InlineExecutor::counts() const noexcept {
  ExecutorCounts counts;
  counts.executed = core_->ended.load(std::memory_order_relaxed);
  counts.threw = core_->threw.load(std::memory_order_relaxed);
  counts.refused = core_->refused.load(std::memory_order_relaxed);
  counts.abandoned = core_->abandoned.load(std::memory_order_relaxed);
  return counts;
}

}  // namespace weft::rt
