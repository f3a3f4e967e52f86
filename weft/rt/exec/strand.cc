// SPDX-License-Identifier: MIT
#include "weft/rt/exec/strand.h"

#include <new>
#include <optional>
#include <utility>

#include "weft/base/list.h"
#include "weft/rt/exec/job_run.h"
#include "weft/rt/exec/strand_queue.h"
#include "weft/sync/lock.h"
#include "weft/sync/parker.h"
#include "weft/sys/clock.h"
#include "weft/sys/cpu.h"
#include "weft/sys/fork.h"

namespace weft::rt {

namespace {
struct SystemStrand {
  using Mutex = sync::StdMutex;
  using Parker = sync::Parker;
  using Job = rt::Job;
  using Underlying = rt::Executor;
  using RunScope = detail::RunScope;
  using Drops = detail::Drops;
  static constexpr std::size_t kGrantMax = Strand::kGrantMax;
  static void yield() noexcept { sys::yield(); }
  static bool run(Job& job, const ExceptionHandler& handler) noexcept { return detail::run_job(job, handler); }
  // The strand whose grant ran inside its own ask_for_grant(), in the same thread.
  static const void*& came_back() noexcept {
    static thread_local const void* strand = nullptr;
    return strand;
  }
};
using StrandQueue = BasicStrandQueue<SystemStrand>;
}  // namespace

struct Strand::Core final : StrandQueue {
  using StrandQueue::StrandQueue;

  void arrive(const std::shared_ptr<Delay>& delay) noexcept;
  void cancel(Delay& delay);
  void lose_delay(Delay& delay) noexcept;
  void drop_delays(Instant later_than) noexcept;
  bool wait_until_quiet(Instant deadline) noexcept;

  const sys::Birth birth;
  unsigned arriving WEFT_GUARDED_BY(mutex) = 0;  // delayed jobs on their way into the queue
  List<Delay> delays WEFT_GUARDED_BY(mutex);
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

bool Strand::Core::wait_until_quiet(Instant deadline) noexcept {
  return StrandQueue::wait_until_quiet([deadline] { return time_left(deadline, sys::now()); },
                                       [this] {
                                         sync::assume_locked(mutex);
                                         return arriving != 0 || !delays.empty();
                                       });
}

// --- delayed jobs ---

// The time of the job has come. Or the delay was let go: then there is no job any more.
void Strand::Core::arrive(const std::shared_ptr<Delay>& delay) noexcept {
  std::optional<detail::Drops::Scope> dropping;  // ends after the job
  Job job;
  {
    const sync::LockGuard lock(mutex);
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
    const sync::LockGuard lock(mutex);
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
    const sync::LockGuard lock(mutex);
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
    const sync::LockGuard lock(mutex);
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

void Strand::Core::drop_delays(Instant later_than) noexcept {
  const detail::Drops::Scope dropping(drops);
  sync::UniqueLock lock(mutex);
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
  lock.unlock();
  quiet.wake_with_fence();  // another stop(), which waited for these jobs
}

Result<void> Strand::run_after(Duration delay, std::stop_token token, Job& job) {
  if (core_->birth.elsewhere()) [[unlikely]] {
    return detail::kTakenByNobody;
  }
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
    const sync::LockGuard lock(core_->mutex);
    closed = core_->closed;
    cancelled = !closed && made->cancelled;
    if (cancelled) {
      dropping.emplace(core_->drops);  // which `made` keeps alive
      ++core_->counts.abandoned;
    } else if (!closed) {
      made->job = std::exchange(job, {});
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
    const sync::LockGuard lock(core_->mutex);
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
  const sync::LockGuard lock(core_->mutex);
  ++core_->counts.refused;
  return why;
}

Result<void> Strand::run_soon(Job& job) {
  if (core_->birth.elsewhere()) [[unlikely]] {
    return detail::kTakenByNobody;
  }
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
    core->abandon();
    core->drop_delays(Instant::min());
  };
  core->close();
  core->drop_delays(sys::now());
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
  const sync::LockGuard lock(core_->mutex);
  ExecutorCounts counts = core_->counts;
  counts.queued = core_->waiting();
  return counts;
}

}  // namespace weft::rt
