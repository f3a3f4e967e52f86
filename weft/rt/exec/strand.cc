// SPDX-License-Identifier: MIT
#include "weft/rt/exec/strand.h"

#include <deque>
#include <mutex>
#include <new>
#include <utility>

#include "weft/rt/exec/job_run.h"
#include "weft/sync/parker.h"
#include "weft/sys/clock.h"
#include "weft/sys/cpu.h"

namespace weft::rt {

struct Strand::Core : std::enable_shared_from_this<Strand::Core> {
  // idle: no job waits and none runs.
  // scheduling: the first job waits. The thread that pushed it calls execute() of the underlying executor; other
  // pushers yield until that call returns.
  // scheduled: there is a grant, waiting or running.
  enum class State : std::uint8_t { idle, scheduling, scheduled };

  Core(Executor& executor, std::size_t most, ExceptionHandler handler)
      : underlying(executor), capacity(most), on_exception(std::move(handler)) {}

  Result<void> push(Job& job);
  Result<void> refuse(Error why);
  Result<void> ask_for_grant(std::unique_lock<std::mutex>& lock);
  void use_grant() noexcept;
  void run_some(std::unique_lock<std::mutex>& lock) noexcept;
  void lose_grant() noexcept;
  void drop_all(std::unique_lock<std::mutex>& lock) noexcept;
  void drop_jobs(std::unique_lock<std::mutex>& lock) noexcept;
  bool wait_until_quiet(Instant deadline) noexcept;

  Executor& underlying;
  const std::size_t capacity;
  const ExceptionHandler on_exception;
  sync::Parker quiet;  // woken once the strand is closed and no job waits or runs
  mutable std::mutex mutex;
  // Guarded by mutex:
  State state = State::idle;
  std::uint64_t asked = 0;  // grants requested
  bool lost = false;        // the requested grant was dropped before execute() returned
  bool running = false;
  bool closed = false;
  std::deque<Job> jobs;
  ExecutorCounts counts;

  // The strand whose grant ran inside its own ask_for_grant(), in the same thread.
  static thread_local const Core* came_back;
};

thread_local const Strand::Core* Strand::Core::came_back = nullptr;

// The job in the underlying executor's queue that lets the strand run at most kGrantMax of its own jobs.
class Strand::Grant {
 public:
  using MovesAsBytes = void;

  explicit Grant(std::shared_ptr<Core> core) noexcept : core_(std::move(core)) {}
  Grant(Grant&&) noexcept = default;
  Grant& operator=(Grant&&) = delete;
  ~Grant() {
    if (core_ != nullptr) {
      core_->lose_grant();
    }
  }
  void operator()() noexcept {
    const std::shared_ptr<Core> core = std::move(core_);
    core->use_grant();
  }

 private:
  std::shared_ptr<Core> core_;
};

// A delayed job. While the strand is full, the job retries every millisecond.
class Strand::Delayed {
 public:
  Delayed(std::shared_ptr<Core> core, Job job) noexcept : core_(std::move(core)), job_(std::move(job)) {}
  void operator()() {
    const auto taken = core_->push(job_);
    if (!taken && taken.error() == Errc::resource_exhausted) {
      // The underlying executor drops and counts the job if it refuses: no queue is left to keep the job in.
      Executor& underlying = core_->underlying;
      (void)underlying.execute_after(std::chrono::milliseconds(1), Delayed(core_, std::move(job_)));
    }
  }

 private:
  std::shared_ptr<Core> core_;
  Job job_;
};

Result<void> Strand::Core::refuse(Error why) {
  ++counts.refused;
  return why;
}

Result<void> Strand::Core::push(Job& job) {
  std::unique_lock lock(mutex);
  while (state == State::scheduling && !closed) {
    lock.unlock();
    sys::yield();  // until the other thread's execute() of the underlying executor returns
    lock.lock();
  }
  if (closed) {
    return refuse(Error(Errc::closed, "the strand was stopped"));
  }
  if (jobs.size() >= capacity) {
    return refuse(Error(Errc::resource_exhausted, "the strand's queue is full"));
  }
  try {
    jobs.push_back(std::move(job));
  } catch (const std::bad_alloc&) {
    return refuse(Error(Errc::resource_exhausted, "no memory for the job"));
  }
  if (state == State::scheduled) {
    return {};
  }
  if (const auto granted = ask_for_grant(lock); !granted) {
    state = State::idle;
    if (!jobs.empty()) {
      job = std::move(jobs.front());  // the caller's own: other pushers waited
      jobs.pop_front();
    }
    return refuse(granted.error());
  }
  return {};
}

// Holds the lock before and after execute(), not during it. After an error the strand is still `scheduling`, and the
// caller sets the state.
Result<void> Strand::Core::ask_for_grant(std::unique_lock<std::mutex>& lock) {
  state = State::scheduling;
  lost = false;
  const std::uint64_t mine = ++asked;
  lock.unlock();
  const auto granted = underlying.execute(Grant(shared_from_this()));
  lock.lock();
  if (granted && asked == mine && state == State::scheduling) {
    state = State::scheduled;
    if (lost) {
      drop_all(lock);
    }
  }
  return granted;
}

// The grant was refused, or was dropped with the underlying executor's queue.
void Strand::Core::lose_grant() noexcept {
  std::unique_lock lock(mutex);
  if (state == State::scheduling) {
    lost = true;  // ask_for_grant() checks it after execute()
  } else {
    drop_all(lock);
  }
}

void Strand::Core::drop_all(std::unique_lock<std::mutex>& lock) noexcept {
  closed = true;
  state = State::idle;
  drop_jobs(lock);
  lock.unlock();
  quiet.wake_with_fence();
  lock.lock();
}

// Drops the jobs one by one, each outside the mutex: a closure's destructor may run any code. A second deque to swap
// with would cost an allocation.
void Strand::Core::drop_jobs(std::unique_lock<std::mutex>& lock) noexcept {
  while (!jobs.empty()) {
    Job job = std::move(jobs.front());
    jobs.pop_front();
    ++counts.abandoned;
    lock.unlock();
    job.reset();
    lock.lock();
  }
}

void Strand::Core::run_some(std::unique_lock<std::mutex>& lock) noexcept {
  for (std::size_t ran_jobs = 0; ran_jobs < kGrantMax && !jobs.empty(); ++ran_jobs) {
    Job job = std::move(jobs.front());
    jobs.pop_front();
    lock.unlock();
    const bool ran = detail::run_job(job, on_exception);
    lock.lock();
    ++counts.executed;
    counts.threw += ran ? 0 : 1;
  }
}

void Strand::Core::use_grant() noexcept {
  std::unique_lock lock(mutex);
  state = State::scheduled;
  if (detail::RunScope::inside(this)) {  // an inline executor runs the grant inside ask_for_grant(): continue there
    came_back = this;
    return;
  }
  const detail::RunScope scope(this);
  for (;;) {
    running = true;
    run_some(lock);
    running = false;
    if (jobs.empty()) {
      state = State::idle;
      if (closed) {
        lock.unlock();
        quiet.wake_with_fence();
      }
      return;
    }
    if (!ask_for_grant(lock)) {
      state = State::scheduled;  // full: continue in this thread, as there is no other grant
      if (underlying.stop_token().stop_requested()) {
        return drop_all(lock);
      }
    } else if (std::exchange(came_back, nullptr) != this) {
      return;  // another thread runs the grant, perhaps already now
    }
  }
}

bool Strand::Core::wait_until_quiet(Instant deadline) noexcept {
  for (;;) {
    const auto ticket = quiet.announce_futex(false);
    {
      const std::lock_guard lock(mutex);
      if (jobs.empty() && !running) {
        return true;
      }
    }
    const Duration left = time_left(deadline, sys::now());
    if (left == Duration::zero()) {
      return false;
    }
    quiet.sleep(ticket, left);
  }
}

Strand::Strand(Executor& underlying, std::size_t queue_capacity, ExceptionHandler on_exception)
    : core_(std::make_shared<Core>(underlying, queue_capacity, std::move(on_exception))) {}

Strand::~Strand() { (void)stop(StopMode::abandon, kNever); }

Result<void> Strand::run_soon(Job& job) { return core_->push(job); }
Result<void> Strand::run_after(Duration delay, Job& job) {
  Executor& underlying = core_->underlying;
  return underlying.execute_after(delay, Delayed(core_, std::move(job)));
}

Result<void> Strand::stop(StopMode mode, Instant deadline) {
  const auto abandon = [this] {
    request_stop();
    std::unique_lock lock(core_->mutex);
    core_->drop_jobs(lock);
  };
  {
    const std::lock_guard lock(core_->mutex);
    core_->closed = true;
  }
  if (mode == StopMode::abandon) {
    abandon();
  }
  if (detail::RunScope::inside(core_.get())) {
    return Error(Errc::invalid_state, "a job cannot wait for the end of itself");
  }
  if (!core_->wait_until_quiet(deadline)) {
    abandon();
    return Error(Errc::timed_out, "jobs still run");
  }
  return {};
}

ExecutorCounts Strand::counts() const noexcept {
  const std::lock_guard lock(core_->mutex);
  return core_->counts;
}

}  // namespace weft::rt
