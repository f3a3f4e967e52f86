// SPDX-License-Identifier: MIT
#include "weft/rt/exec/inline_executor.h"

#include <atomic>
#include <utility>

#include "weft/rt/exec/job_run.h"
#include "weft/rt/exec/timekeeper.h"
#include "weft/sync/parker.h"
#include "weft/sys/clock.h"
#include "weft/sys/fork.h"

namespace weft::rt {

struct InlineExecutor::Core {
  static constexpr std::uint64_t kClosed = std::uint64_t{1} << 63;

  explicit Core(ExceptionHandler handler) : on_exception(std::move(handler)) {}
  Result<void> run(Job& job) noexcept;
  Result<void> run_due(Job& job) noexcept;
  void run_begun(Job& job) noexcept;
  bool wait_until_quiet(Instant deadline) noexcept;

  const ExceptionHandler on_exception;
  const sys::Birth birth;
  // Numbers of jobs; both with kClosed, which stop() sets in `begun` first.
  std::atomic<std::uint64_t> begun{0};
  std::atomic<std::uint64_t> ended{0};
  std::atomic<std::uint64_t> threw{0};
  std::atomic<std::uint64_t> refused{0};
  std::atomic<std::uint64_t> abandoned{0};
  std::atomic<bool> abandoning{false};
  detail::Drops drops;
  // Of all inline executors: the end of the last job lets another thread destroy its executor before the wake.
  static inline sync::Parker quiet;
};

Result<void> InlineExecutor::Core::run(Job& job) noexcept {
  if ((begun.fetch_add(1, std::memory_order_seq_cst) & kClosed) != 0) {
    begun.fetch_sub(1, std::memory_order_seq_cst);
    quiet.wake_with_fence();  // a stop() in between counted this one as a job that runs
    refused.fetch_add(1, std::memory_order_relaxed);
    return Error(Errc::closed, "the executor was stopped");
  }
  run_begun(job);
  return {};
}

// A delayed job, which was taken before: a stop that drains lets it run.
Result<void> InlineExecutor::Core::run_due(Job& job) noexcept {
  if (abandoning.load(std::memory_order_relaxed)) {
    return Error(Errc::closed, "the executor was stopped");
  }
  begun.fetch_add(1, std::memory_order_seq_cst);
  run_begun(job);
  return {};
}

void InlineExecutor::Core::run_begun(Job& job) noexcept {
  const detail::RunScope scope(this);
  if (Job mine = std::move(job); !detail::run_job(mine, on_exception)) {
    threw.fetch_add(1, std::memory_order_relaxed);
  }
  // The last job to end sees kClosed, or stop() sees that job's end. Release pairs with the acquire in
  // wait_until_quiet(). The executor may be gone afterwards.
  if ((ended.fetch_add(1, std::memory_order_acq_rel) & kClosed) != 0) [[unlikely]] {
    quiet.wake_with_fence();
  }
}

bool InlineExecutor::Core::wait_until_quiet(Instant deadline) noexcept {
  for (;;) {
    const auto ticket = quiet.announce_futex(false);
    if (ended.load(std::memory_order_acquire) == begun.load(std::memory_order_seq_cst)) {
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
      timekeeper_(std::make_shared<Timekeeper>(Timekeeper::Sink{
          [core = core_](Job& job) { return core->run_due(job); },
          [core = core_](std::size_t count) { core->abandoned.fetch_add(count, std::memory_order_relaxed); },
          core_->drops})) {}

InlineExecutor::~InlineExecutor() {
  if (core_->birth.elsewhere()) {
    return;  // no other thread runs a job, and no lock is in the way
  }
  (void)stop(StopMode::abandon, kNever);
  detail::RunScope::keep(core_.get(), core_);
}

Result<void> InlineExecutor::run_soon(Job& job) { return core_->run(job); }
Result<void> InlineExecutor::run_after(Duration delay, std::stop_token token, Job& job) {
  auto taken = timekeeper_->schedule(delay, std::move(token), job);
  if (!taken) {
    core_->refused.fetch_add(1, std::memory_order_relaxed);
  }
  return taken;
}

Result<void> InlineExecutor::stop(StopMode mode, Instant deadline) {
  if (core_->birth.elsewhere()) {
    return detail::kInherited;
  }
  // A dropped job's destructor may end this executor.
  const std::shared_ptr<Core> core = core_;
  const std::shared_ptr<Timekeeper> timekeeper = timekeeper_;
  const auto abandon = [core, timekeeper, stopper = stop_source()] {
    core->abandoning.store(true, std::memory_order_relaxed);
    stopper.request_stop();
    timekeeper->close(StopMode::abandon);
  };
  core->begun.fetch_or(Core::kClosed, std::memory_order_seq_cst);
  core->ended.fetch_or(Core::kClosed, std::memory_order_acq_rel);
  if (mode == StopMode::abandon) {
    abandon();
  } else {
    timekeeper->close(StopMode::drain);
  }
  if (detail::RunScope::inside(core.get()) || core->drops.inside()) {
    return detail::kOwnJob;
  }
  if (!timekeeper->wait_until_ended(deadline) || !core->wait_until_quiet(deadline) ||
      !core->drops.wait_until_none(deadline)) {
    abandon();
    return detail::kStillRun;
  }
  timekeeper->join();
  return {};
}

ExecutorCounts InlineExecutor::counts() const noexcept {
  ExecutorCounts counts;
  counts.executed = core_->ended.load(std::memory_order_relaxed) & ~Core::kClosed;
  counts.threw = core_->threw.load(std::memory_order_relaxed);
  counts.refused = core_->refused.load(std::memory_order_relaxed);
  counts.abandoned = core_->abandoned.load(std::memory_order_relaxed);
  return counts;
}

}  // namespace weft::rt
