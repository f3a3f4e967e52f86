// SPDX-License-Identifier: MIT
#include "weft/rt/exec/strand.h"

#include <deque>
#include <mutex>
#include <new>
#include <optional>
#include <utility>

#include "weft/base/list.h"
#include "weft/rt/exec/job_run.h"
#include "weft/sync/parker.h"
#include "weft/sys/clock.h"
#include "weft/sys/cpu.h"
#include "weft/sys/fork.h"

namespace weft::rt {

struct Strand::Core : std::enable_shared_from_this<Strand::Core> {
  // idle: no job waits and none runs.
  // scheduling: the first job waits. The thread that pushed it calls execute() of the underlying executor; other
  // pushers yield until that call returns.
  // scheduled: there is a grant, waiting or running.
  enum class State : std::uint8_t { idle, scheduling, scheduled };

  Core(Executor& executor, std::size_t most, ExceptionHandler handler)
      : underlying(executor), capacity(most), on_exception(std::move(handler)) {}

  Result<void> push(Job& job, bool taken_before = false);
  Result<void> ask_for_grant(std::unique_lock<std::mutex>& lock);
  void use_grant() noexcept;
  void run_some(std::unique_lock<std::mutex>& lock) noexcept;
  void lose_grant() noexcept;
  void drop_all(std::unique_lock<std::mutex>& lock) noexcept;
  void drop_jobs(std::unique_lock<std::mutex>& lock) noexcept;
  void arrive(const std::shared_ptr<Delay>& delay) noexcept;
  void cancel(Delay& delay);
  void lose_delay(Delay& delay) noexcept;
  void drop_delays(std::unique_lock<std::mutex>& lock, Instant later_than) noexcept;
  bool wait_until_quiet(Instant deadline) noexcept;

  Executor& underlying;
  const std::size_t capacity;
  const ExceptionHandler on_exception;
  const sys::Birth birth;
  detail::Drops drops;
  sync::Parker quiet;  // woken once the strand is closed and no job waits or runs
  mutable std::mutex mutex;
  // Guarded by mutex:
  State state = State::idle;
  std::uint64_t asked = 0;  // grants requested
  bool lost = false;        // the requested grant was dropped before execute() returned
  bool running = false;
  bool closed = false;
  bool abandoned = false;
  unsigned arriving = 0;  // delayed jobs on their way into `jobs`
  std::deque<Job> jobs;
  List<Delay> delays;
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

// Delay: a delayed job that was taken. Its handle, Delayed, waits in the underlying executor.
struct Strand::Delay : ListHook, std::enable_shared_from_this<Strand::Delay> {
  struct Cancel {
    Delay* delay;
    void operator()() const { delay->core->cancel(*delay); }
  };
  Delay(std::shared_ptr<Core> of, Instant when) : core(std::move(of)), due(when) {}

  const std::shared_ptr<Core> core;
  const Instant due;
  std::stop_source let_go;  // takes the handle out of the underlying executor
  // Guarded by the core's mutex:
  Job job;  // while this is in a list
  bool cancelled = false;
  // Destroyed without the mutex: its destructor waits for a call of cancel() in another thread.
  std::optional<std::stop_callback<Cancel>> on_stop;
};

class Strand::Delayed {
 public:
  using MovesAsBytes = void;

  explicit Delayed(std::shared_ptr<Delay> delay) noexcept : delay_(std::move(delay)) {}
  Delayed(Delayed&&) noexcept = default;
  Delayed& operator=(Delayed&&) = delete;
  ~Delayed() {
    if (delay_ != nullptr) {
      delay_->core->lose_delay(*delay_);
    }
  }
  void operator()() noexcept {
    const std::shared_ptr<Delay> delay = std::move(delay_);
    delay->core->arrive(delay);
  }

 private:
  std::shared_ptr<Delay> delay_;
};

// A job that was taken before, a delayed one, is pushed after a stop() that drains, too.
Result<void> Strand::Core::push(Job& job, bool taken_before) {
  std::shared_ptr<Core> kept;  // outlives the lock: the granted job may end the strand before execute() returns
  std::unique_lock lock(mutex);
  const auto refused = [&] { return closed && (abandoned || !taken_before); };
  while (state == State::scheduling && !refused()) {
    lock.unlock();
    sys::yield();  // until the other thread's execute() of the underlying executor returns
    lock.lock();
  }
  if (refused()) {
    return Error(Errc::closed, "the strand was stopped");
  }
  if (jobs.size() >= capacity) {
    return Error(Errc::resource_exhausted, "the strand's queue is full");
  }
  try {
    jobs.push_back(std::move(job));
  } catch (const std::bad_alloc&) {
    return Error(Errc::resource_exhausted, "no memory for the job");
  }
  if (state == State::scheduled) {
    return {};
  }
  kept = shared_from_this();
  if (const auto granted = ask_for_grant(lock); !granted) {
    state = State::idle;
    if (jobs.empty()) {
      return {};  // a stop() dropped the job meanwhile, and counted it
    }
    job = std::move(jobs.front());  // the caller's own: other pushers waited
    jobs.pop_front();
    return granted;
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
  abandoned = true;
  state = State::idle;
  drop_jobs(lock);
  lock.unlock();
  quiet.wake_with_fence();
  lock.lock();
}

// Drops the jobs one by one, each outside the mutex: a closure's destructor may run any code. A second deque to swap
// with would cost an allocation.
void Strand::Core::drop_jobs(std::unique_lock<std::mutex>& lock) noexcept {
  const detail::Drops::Scope dropping(drops);
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
      if (jobs.empty() && !running && arriving == 0 && delays.empty()) {
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

// --- delayed jobs ---

// The time of the job has come. Or the delay was let go: then there is no job any more.
void Strand::Core::arrive(const std::shared_ptr<Delay>& delay) noexcept {
  std::optional<detail::Drops::Scope> dropping;  // ends after the job
  Job job;
  {
    const std::lock_guard lock(mutex);
    if (!delay->hooked()) {
      return;
    }
    delay->unhook();
    job = std::move(delay->job);
    ++arriving;
  }
  delay->on_stop.reset();
  const Result<void> pushed = push(job, true);
  const bool full = !pushed && pushed.error() == Errc::resource_exhausted;
  bool again = false;
  {
    const std::lock_guard lock(mutex);
    again = full && !abandoned;
    if (again) {
      delay->job = std::move(job);
      delays.push_back(*delay);
    } else if (!pushed) {
      ++counts.abandoned;
      dropping.emplace(drops);
    }
    --arriving;
  }
  if (again) {  // a refused handle counts its job as abandoned: no queue is left to keep the job in
    Job handle(Delayed{delay});
    (void)delay_on(underlying, std::chrono::milliseconds(1), {}, handle);
  }
  quiet.wake_with_fence();
}  // a dropped job's destructor, which may end the strand, runs last

// In the thread that sets the job's token.
void Strand::Core::cancel(Delay& delay) {
  std::shared_ptr<Delay> kept;
  std::optional<detail::Drops::Scope> dropping;
  Job job;
  {
    const std::lock_guard lock(mutex);
    delay.cancelled = true;
    if (!delay.hooked()) {
      return;  // another thread has the job, and waits for this call before it destroys the delay
    }
    kept = delay.shared_from_this();
    dropping.emplace(drops);
    delay.unhook();
    job = std::move(delay.job);
    ++counts.abandoned;
  }
  job();  // the job checks its token
  job.reset();
  kept->let_go.request_stop();
  kept->core->quiet.wake_with_fence();
}

// The underlying executor dropped the handle.
void Strand::Core::lose_delay(Delay& delay) noexcept {
  std::optional<detail::Drops::Scope> dropping;
  Job job;
  {
    const std::lock_guard lock(mutex);
    if (!delay.hooked()) {
      return;
    }
    dropping.emplace(drops);
    delay.unhook();
    job = std::move(delay.job);
    ++counts.abandoned;
  }
  job.reset();
  quiet.wake_with_fence();
}

void Strand::Core::drop_delays(std::unique_lock<std::mutex>& lock, Instant later_than) noexcept {
  const detail::Drops::Scope dropping(drops);
  List<Delay> dropped;  // guarded by the mutex, as `delays` is
  for (Delay* delay = delays.first(); delay != nullptr;) {
    Delay* const next = delays.next(*delay);
    if (delay->due > later_than) {
      delay->unhook();
      dropped.push_back(*delay);
    }
    delay = next;
  }
  while (Delay* const delay = dropped.pop_front()) {
    const std::shared_ptr<Delay> kept = delay->shared_from_this();
    Job job = std::move(delay->job);
    ++counts.abandoned;
    lock.unlock();
    job.reset();
    kept->on_stop.reset();
    kept->let_go.request_stop();
    lock.lock();
  }
}

Result<void> Strand::run_after(Duration delay, std::stop_token token, Job& job) {
  std::shared_ptr<Delay> made;
  try {
    made = std::make_shared<Delay>(core_, deadline_after(sys::now(), delay));
  } catch (const std::bad_alloc&) {
    return refuse(Error(Errc::resource_exhausted, "no memory for a delayed job"));
  }
  if (token.stop_possible()) {
    made->on_stop.emplace(std::move(token), Delay::Cancel{made.get()});  // may call cancel(), which only notes it
  }
  bool closed = false;
  bool cancelled = false;
  std::optional<detail::Drops::Scope> dropping;
  {
    const std::lock_guard lock(core_->mutex);
    closed = core_->closed;
    cancelled = !closed && made->cancelled;
    if (cancelled) {
      dropping.emplace(core_->drops);  // which `made` keeps alive
      ++core_->counts.abandoned;
    } else if (!closed) {
      made->job = std::move(job);
      core_->delays.push_back(*made);
    }
  }
  if (closed) {
    return refuse(Error(Errc::closed, "the strand was stopped"));
  }
  if (cancelled) {
    job();  // the job checks its token
    job.reset();
    return {};
  }
  Job handle(Delayed{made});
  const Result<void> taken = delay_on(core_->underlying, delay, made->let_go.get_token(), handle);
  if (!taken) {
    const std::lock_guard lock(core_->mutex);
    if (made->hooked()) {  // else the job was cancelled, or stop() dropped it
      made->unhook();
      job = std::move(made->job);
      ++core_->counts.refused;
      return taken;
    }
  }
  return {};
}

// --- Strand ---

Strand::Strand(Executor& underlying, std::size_t queue_capacity, ExceptionHandler on_exception)
    : core_(std::make_shared<Core>(underlying, queue_capacity, std::move(on_exception))) {}

Strand::~Strand() {
  if (core_->birth.elsewhere()) {
    detail::keep_for_ever(core_);
    return;
  }
  (void)stop(StopMode::abandon, kNever);
}

Error Strand::refuse(Error why) {
  const std::lock_guard lock(core_->mutex);
  ++core_->counts.refused;
  return why;
}

Result<void> Strand::run_soon(Job& job) {
  const Result<void> taken = core_->push(job);
  return taken ? taken : Result<void>(refuse(taken.error()));
}

Result<void> Strand::stop(StopMode mode, Instant deadline) {
  if (core_->birth.elsewhere()) {
    return detail::kInherited;
  }
  const std::shared_ptr<Core> core = core_;  // a dropped job's destructor may end this strand
  const auto abandon = [core, stopper = stop_source()] {
    stopper.request_stop();
    {
      std::unique_lock lock(core->mutex);
      core->abandoned = true;
      core->drop_jobs(lock);
      core->drop_delays(lock, Instant::min());
    }
    core->quiet.wake_with_fence();  // another stop(), which waited for these jobs
  };
  {
    std::unique_lock lock(core->mutex);
    core->closed = true;
    core->drop_delays(lock, sys::now());
  }
  if (mode == StopMode::abandon) {
    abandon();
  }
  if (detail::RunScope::inside(core.get()) || core->drops.inside()) {
    return detail::kOwnJob;
  }
  if (!core->wait_until_quiet(deadline) || !core->drops.wait_until_none(deadline)) {
    abandon();
    return detail::kStillRun;
  }
  return {};
}

ExecutorCounts Strand::counts() const noexcept {
  const std::lock_guard lock(core_->mutex);
  return core_->counts;
}

}  // namespace weft::rt
