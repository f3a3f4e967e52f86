// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <new>
#include <utility>

#include "weft/base/result.h"
#include "weft/base/time.h"
#include "weft/rt/exec/executor.h"
#include "weft/sync/lock.h"

namespace weft::rt {

// StrandQueue: the jobs of a strand, and its grants: jobs of the underlying executor that let the strand run some of
// its own.
// Owner: shared by the strand and its grants. `System` has the operations: strand.cc's, or the model test's.
// Affinity: any thread.
// Cost: a lock for each step, and one job of the underlying executor for up to kGrantMax jobs.
// Invariants:
//   1. At most one grant runs, and while jobs wait there is one: waiting, running, or asked for.
//   2. A job that push() took is executed or abandoned, once; `counts` includes it before wait_until_quiet() ends.
//   3. After abandon() no job begins. After close() push() takes delayed jobs only.
template <typename System>
class BasicStrandQueue : public std::enable_shared_from_this<BasicStrandQueue<System>> {
 public:
  using Job = typename System::Job;
  static constexpr std::size_t kGrantMax = System::kGrantMax;  // then others of the executor have their turn

  BasicStrandQueue(typename System::Underlying& executor, std::size_t most, ExceptionHandler handler)
      : underlying(executor), capacity_(most), on_exception_(std::move(handler)) {}
  BasicStrandQueue(const BasicStrandQueue&) = delete;
  BasicStrandQueue& operator=(const BasicStrandQueue&) = delete;
  ~BasicStrandQueue() = default;

  // A job that was taken before, a delayed one, is pushed after a stop() that drains, too.
  // closed; resource_exhausted; the errors of the underlying executor. The job is moved from only when taken.
  Result<void> push(Job& job, bool taken_before = false) noexcept;
  void close() noexcept {
    const sync::LockGuard lock(mutex);
    closed = true;
  }
  void abandon() noexcept {
    {
      const sync::LockGuard lock(mutex);
      closed = true;
      abandoned = true;
      drop_jobs();
    }
    quiet.wake_with_fence();  // another stop(), which waited for these jobs
  }
  // Waits until no job waits or runs and `more_waits`, which is called under the mutex, returns false; or until
  // time_left() returns zero, and then returns false. A negative time is not a limit.
  template <typename Left, typename More>
  [[nodiscard]] bool wait_until_quiet(Left time_left, More more_waits) noexcept;

  typename System::Underlying& underlying;
  typename System::Drops drops;
  typename System::Parker quiet;  // woken once the strand is closed and no job waits or runs
  mutable typename System::Mutex mutex;
  bool closed WEFT_GUARDED_BY(mutex) = false;
  bool abandoned WEFT_GUARDED_BY(mutex) = false;
  ExecutorCounts counts WEFT_GUARDED_BY(mutex);
  [[nodiscard]] std::size_t waiting() const noexcept WEFT_REQUIRES(mutex) { return jobs_.size(); }  // jobs

 private:
  // idle: no job waits and none runs.
  // scheduling: the first job waits. The thread that pushed it calls execute() of the underlying executor; other
  // pushers yield until that call returns.
  // scheduled: there is a grant, waiting or running.
  enum class State : std::uint8_t { idle, scheduling, scheduled };
  class Grant;

  [[nodiscard]] bool refuses(bool taken_before) const noexcept WEFT_REQUIRES(mutex) {
    return closed && (abandoned || !taken_before);
  }
  Result<void> ask_for_grant() noexcept WEFT_REQUIRES(mutex);
  void use_grant() noexcept;
  void run_some() noexcept WEFT_REQUIRES(mutex);
  void lose_grant() noexcept;
  void drop_all() noexcept WEFT_REQUIRES(mutex);
  void drop_jobs() noexcept WEFT_REQUIRES(mutex);

  const std::size_t capacity_;
  const ExceptionHandler on_exception_;
  State state_ WEFT_GUARDED_BY(mutex) = State::idle;
  std::uint64_t asked_ WEFT_GUARDED_BY(mutex) = 0;  // grants requested
  bool lost_ WEFT_GUARDED_BY(mutex) = false;        // the requested grant was dropped before execute() returned
  bool running_ WEFT_GUARDED_BY(mutex) = false;
  std::deque<Job> jobs_ WEFT_GUARDED_BY(mutex);
};

// The job in the underlying executor's queue.
template <typename System>
class BasicStrandQueue<System>::Grant {
 public:
  using MovesAsBytes = void;

  explicit Grant(std::shared_ptr<BasicStrandQueue> strand) noexcept : strand_(std::move(strand)) {}
  Grant(Grant&&) noexcept = default;
  Grant& operator=(Grant&&) = delete;
  ~Grant() {
    if (strand_ != nullptr) {
      strand_->lose_grant();
    }
  }
  void operator()() noexcept {
    const std::shared_ptr<BasicStrandQueue> strand = std::move(strand_);
    strand->use_grant();
  }

 private:
  std::shared_ptr<BasicStrandQueue> strand_;
};

template <typename System>
Result<void> BasicStrandQueue<System>::push(Job& job, bool taken_before) noexcept {
  std::shared_ptr<BasicStrandQueue>
      kept;  // outlives the lock: the granted job may end the strand before execute() returns
  sync::UniqueLock lock(mutex);
  while (state_ == State::scheduling && !refuses(taken_before)) {
    lock.unlock();
    System::yield();  // until the other thread's execute() of the underlying executor returns
    lock.lock();
  }
  if (refuses(taken_before)) {
    return Error(Errc::closed, "the strand was stopped");
  }
  if (jobs_.size() >= capacity_) {
    return Error(Errc::resource_exhausted, "the strand's queue is full");
  }
  try {
    jobs_.push_back(std::move(job));
  } catch (const std::bad_alloc&) {
    return Error(Errc::resource_exhausted, "no memory for the job");
  }
  if (state_ == State::scheduled) {
    return {};
  }
  kept = this->shared_from_this();
  if (const auto granted = ask_for_grant(); !granted) {
    state_ = State::idle;
    if (jobs_.empty()) {
      return {};  // a stop() dropped the job meanwhile, and counted it
    }
    job = std::move(jobs_.front());  // the caller's own: other pushers waited
    jobs_.pop_front();
    if (closed) {
      lock.unlock();
      quiet.wake_with_fence();  // a stop(), which saw the job
    }
    return granted;
  }
  return {};
}

// Holds the lock before and after execute(), not during it. After an error the strand is still `scheduling`, and the
// caller sets the state.
template <typename System>
Result<void> BasicStrandQueue<System>::ask_for_grant() noexcept {
  state_ = State::scheduling;
  lost_ = false;
  const std::uint64_t mine = ++asked_;
  mutex.unlock();
  const auto granted = underlying.execute(Grant(this->shared_from_this()));
  mutex.lock();
  if (granted && asked_ == mine && state_ == State::scheduling) {
    state_ = State::scheduled;
    if (lost_) {
      drop_all();
    }
  }
  return granted;
}

// The grant was refused, or was dropped with the underlying executor's queue.
template <typename System>
void BasicStrandQueue<System>::lose_grant() noexcept {
  const sync::LockGuard lock(mutex);
  if (state_ == State::scheduling) {
    lost_ = true;  // ask_for_grant() checks it after execute()
  } else {
    drop_all();
  }
}

template <typename System>
void BasicStrandQueue<System>::drop_all() noexcept {
  closed = true;
  abandoned = true;
  state_ = State::idle;
  drop_jobs();
  const sync::Unlocked unlocked(mutex);
  quiet.wake_with_fence();
}

// Drops the jobs one by one, each outside the mutex: a closure's destructor may run any code. A second deque to swap
// with would cost an allocation.
template <typename System>
void BasicStrandQueue<System>::drop_jobs() noexcept {
  const typename System::Drops::Scope dropping(drops);
  while (!jobs_.empty()) {
    Job job = std::move(jobs_.front());
    jobs_.pop_front();
    ++counts.abandoned;
    const sync::Unlocked unlocked(mutex);
    job.reset();
  }
}

template <typename System>
void BasicStrandQueue<System>::run_some() noexcept {
  for (std::size_t ran_jobs = 0; ran_jobs < kGrantMax && !jobs_.empty(); ++ran_jobs) {
    Job job = std::move(jobs_.front());
    jobs_.pop_front();
    mutex.unlock();
    const bool ran = System::run(job, on_exception_);
    mutex.lock();
    ++counts.executed;
    counts.threw += ran ? 0 : 1;
  }
}

template <typename System>
void BasicStrandQueue<System>::use_grant() noexcept {
  sync::UniqueLock lock(mutex);
  state_ = State::scheduled;
  if (System::RunScope::inside(this)) {  // an inline executor runs the grant inside ask_for_grant(): continue there
    System::came_back() = this;
    return;
  }
  const typename System::RunScope scope(this);
  for (;;) {
    running_ = true;
    run_some();
    running_ = false;
    if (jobs_.empty()) {
      state_ = State::idle;
      if (closed) {
        lock.unlock();
        quiet.wake_with_fence();
      }
      return;
    }
    if (!ask_for_grant()) {
      state_ = State::scheduled;  // full: continue in this thread, as there is no other grant
      if (underlying.stop_token().stop_requested()) {
        return drop_all();
      }
    } else if (std::exchange(System::came_back(), nullptr) != this) {
      return;  // another thread runs the grant, perhaps already now
    }
  }
}

template <typename System>
template <typename Left, typename More>
bool BasicStrandQueue<System>::wait_until_quiet(Left time_left, More more_waits) noexcept {
  for (;;) {
    const auto ticket = quiet.announce_futex(false);
    {
      const sync::LockGuard lock(mutex);
      if (jobs_.empty() && !running_ && !more_waits()) {
        return true;
      }
    }
    const Duration left = time_left();
    if (left == Duration::zero()) {
      return false;
    }
    quiet.sleep(ticket, left);
  }
}

}  // namespace weft::rt
