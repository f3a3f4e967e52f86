// SPDX-License-Identifier: MIT
#include "weft/rt/exec/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <deque>
#include <new>
#include <utility>

#include "weft/rt/exec/job_queue.h"
#include "weft/rt/exec/job_run.h"
#include "weft/rt/exec/worker_gate.h"
#include "weft/sync/lock.h"
#include "weft/sync/parker.h"
#include "weft/sync/spin.h"
#include "weft/sys/clock.h"
#include "weft/sys/cpu.h"
#include "weft/sys/fork.h"
#include "weft/sys/signals.h"
#include "weft/sys/thread_id.h"

namespace weft::rt {

struct ThreadPool::Shared : std::enable_shared_from_this<ThreadPool::Shared> {
  using Queue = JobQueue<Job>;

  struct alignas(sync::kLineSize) Worker {
    Queue queue;
    // Only the worker writes these; counts() reads them.
    std::atomic<std::uint64_t> executed{0};
    std::atomic<std::uint64_t> threw{0};
    unsigned turns = 0;
    // Guarded by mutex:
    bool taken = false;
    sys::Thread thread;
  };

  Shared(unsigned min, unsigned max, const ThreadPoolOptions& given)
      : workers_min(min), workers_max(max), options(given), workers(new Worker[max]) {}

  Result<void> push(Job& job) noexcept;
  void wake_worker(unsigned max) noexcept;
  Result<void> start_worker() noexcept;  // requires that the gate counts the worker already
  void run(Worker& mine) noexcept;
  bool find(Worker& mine, Job& job) noexcept;
  void execute(Worker& mine, Job& job) noexcept;
  [[nodiscard]] bool any_ready() const noexcept;
  [[nodiscard]] bool drained() const noexcept;
  bool spin_for_job() noexcept;
  bool take_late(Job& job) noexcept;
  void close(Timekeeper& timekeeper, StopMode mode);
  void abandon() noexcept;
  bool wait_for_workers(Instant deadline) noexcept;
  void join() noexcept;

  const sys::Birth birth;
  const unsigned workers_min;
  const unsigned workers_max;
  const ThreadPoolOptions options;
  WorkerGate gate;
  std::unique_ptr<Worker[]> workers;
  std::atomic<bool> closing{false};  // a stop() closes the pool, or has done so
  std::atomic<bool> abandoning{false};
  std::atomic<std::uint64_t> refused{0};
  std::atomic<std::uint64_t> abandoned{0};
  std::atomic<std::uint64_t> wakes{0};
  sync::SpinBudget budget;
  detail::Drops drops;
  sync::Parker ended;  // woken by the last worker
  sync::StdMutex mutex;
  std::deque<Job> late
      WEFT_GUARDED_BY(mutex);  // delayed jobs that were due at the stop, and for which no queue had room

  static thread_local Worker* current;  // this thread's, in the pool that it works for
  static thread_local const Shared* current_pool;
};

thread_local ThreadPool::Shared::Worker* ThreadPool::Shared::current = nullptr;
thread_local const ThreadPool::Shared* ThreadPool::Shared::current_pool = nullptr;

// --- pushing jobs ---

Result<void> ThreadPool::Shared::push(Job& job) noexcept {
  std::size_t index;
  if (current_pool == this) {
    index = static_cast<std::size_t>(current - workers.get());
  } else {
    // Fibonacci hashing: thread ids differ in their middle bits.
    index = workers_max == 1 ? 0 : ((sys::thread_id() * 0x9E3779B97F4A7C15u) >> 40) % workers_max;
  }
  for (unsigned tried = 0; tried < workers_max; ++tried) {
    switch (workers[index].queue.try_push(job)) {
      case Queue::Push::done: wake_worker(workers_max); return {};
      case Queue::Push::closed: return Error(Errc::closed, "the executor was stopped");
      case Queue::Push::full: break;
    }
    index = index + 1 == workers_max ? 0 : index + 1;
  }
  return Error(Errc::resource_exhausted, "the queue is full");
}

void ThreadPool::Shared::wake_worker(unsigned max) noexcept {
  switch (gate.notify(max)) {
    case WorkerGate::Notified::nobody: break;
    case WorkerGate::Notified::woke: wakes.fetch_add(1, std::memory_order_relaxed); break;
    case WorkerGate::Notified::start:
      if (!start_worker()) {
        gate.undo_start();
        wake_worker(0);  // other pushers may have counted on this start; without a sleeper a busy worker takes the job
      }
      break;
  }
}

Result<void> ThreadPool::Shared::start_worker() noexcept {
  struct Start {
    std::shared_ptr<Shared> shared;
    Worker* worker;
  };
  for (;;) {
    {
      const sync::LockGuard lock(mutex);
      Worker* const end = workers.get() + workers_max;
      Worker* const place = std::find_if(workers.get(), end, [](const Worker& each) { return !each.taken; });
      if (place != end) {
        place->thread.join();  // the thread of an earlier worker of this place
        auto* start = new (std::nothrow) Start{shared_from_this(), place};
        if (start == nullptr) {
          return Error(Errc::resource_exhausted, "no memory for a worker");
        }
        const sys::SignalsBlocked blocked;  // signals are for the application's threads
        auto thread = sys::Thread::start(
            [](void* argument) {
              const std::unique_ptr<Start> given(static_cast<Start*>(argument));
              given->shared->run(*given->worker);
            },
            start);
        if (!thread) {
          delete start;
          return thread.error();
        }
        place->thread = std::move(thread).value();
        place->taken = true;
        return {};
      }
    }
    sys::yield();  // a worker that left the gate frees its place soon
  }
}

// --- workers ---

bool ThreadPool::Shared::find(Worker& mine, Job& job) noexcept {
  constexpr unsigned kTurnsOfOneQueue = 64;  // then another worker's queue comes first, so that no queue starves
  auto index = static_cast<std::size_t>(&mine - workers.get());
  if (++mine.turns % kTurnsOfOneQueue == 0) {
    index = (index + mine.turns / kTurnsOfOneQueue) % workers_max;
  }
  for (unsigned tried = 0; tried < workers_max; ++tried) {
    if (workers[index].queue.try_pop(job)) {
      return true;
    }
    index = index + 1 == workers_max ? 0 : index + 1;
  }
  return false;
}

bool ThreadPool::Shared::any_ready() const noexcept {
  return std::any_of(workers.get(), workers.get() + workers_max, [](const Worker& each) { return each.queue.ready(); });
}
bool ThreadPool::Shared::drained() const noexcept {
  return std::all_of(workers.get(), workers.get() + workers_max,
                     [](const Worker& each) { return each.queue.drained(); });
}

void ThreadPool::Shared::execute(Worker& mine, Job& job) noexcept {
  if (abandoning.load(std::memory_order_relaxed)) [[unlikely]] {
    abandoned.fetch_add(1, std::memory_order_relaxed);
    job.reset();
    return;
  }
  mine.executed.store(mine.executed.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  if (!detail::run_job(job, options.on_exception)) {
    mine.threw.store(mine.threw.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
}

// A searcher spins here. Returns true if a queue has a job, or the gate is closed.
bool ThreadPool::Shared::spin_for_job() noexcept {
  return sync::spin_until(budget, sync::WaitMode::adaptive, [this] { return any_ready() || gate.closed(); });
}

void ThreadPool::Shared::run(Worker& mine) noexcept {
  const detail::RunScope scope(this);
  current = &mine;
  current_pool = this;
  sys::set_up_thread(options.name, options.threads);
  bool searching = true;
  for (;;) {
    Job job;
    if (find(mine, job)) {
      if (std::exchange(searching, false)) {
        gate.stop_searching();
        if (any_ready()) {
          wake_worker(workers_max);
        }
      }
      execute(mine, job);
      continue;
    }
    if (gate.closed()) {
      if (drained()) {
        if (!take_late(job)) {
          break;
        }
        execute(mine, job);
        continue;
      }
      sys::yield();  // a push is half way done
      continue;
    }
    searching = searching || gate.start_searching();
    if (searching && spin_for_job()) {
      continue;
    }
    if (!gate.announce(searching) || any_ready()) {
      gate.stay_awake();
      searching = true;
      continue;
    }
    const bool may_leave = workers_min < workers_max;
    if (gate.sleep(may_leave ? options.idle_limit : Duration(-1), workers_min) == WorkerGate::Slept::left) {
      const sync::LockGuard lock(mutex);
      mine.taken = false;
      return;
    }
    searching = true;
  }
  if (gate.leave(searching)) {
    ended.wake_with_fence();
  }
}

// --- the end ---

bool ThreadPool::Shared::take_late(Job& job) noexcept {
  const sync::LockGuard lock(mutex);
  if (late.empty()) {
    return false;
  }
  job = std::move(late.front());
  late.pop_front();
  return true;
}

// Refuses new jobs. Each delayed job that is due is then in a queue, or in `late`; workers end when both are empty.
void ThreadPool::Shared::close(Timekeeper& timekeeper, StopMode mode) {
  timekeeper.close(mode);
  if (closing.exchange(true, std::memory_order_relaxed)) {
    return;  // another stop() does the rest, or did it
  }
  timekeeper.join();
  while (Job job = timekeeper.take_due()) {
    const detail::Drops::Scope dropping(drops);
    try {
      const sync::LockGuard lock(mutex);
      late.push_back(std::move(job));
    } catch (const std::bad_alloc&) {
      abandoned.fetch_add(1, std::memory_order_relaxed);
      job.reset();
    }
  }
  for (unsigned i = 0; i < workers_max; ++i) {
    workers[i].queue.close();
  }
  gate.close();
}

void ThreadPool::Shared::abandon() noexcept {
  abandoning.store(true, std::memory_order_relaxed);
  const detail::Drops::Scope dropping(drops);
  Job job;
  for (unsigned i = 0; i < workers_max; ++i) {
    while (workers[i].queue.try_pop(job)) {
      abandoned.fetch_add(1, std::memory_order_relaxed);
      job.reset();
    }
  }
  while (take_late(job)) {
    abandoned.fetch_add(1, std::memory_order_relaxed);
    job.reset();
  }
}

bool ThreadPool::Shared::wait_for_workers(Instant deadline) noexcept {
  for (;;) {
    const auto ticket = ended.announce_futex(false);
    if (gate.workers() == 0) {
      return true;
    }
    const Duration left = time_left(deadline, sys::now());
    if (left == Duration::zero()) {
      return false;
    }
    ended.sleep(ticket, left);
  }
}

void ThreadPool::Shared::join() noexcept {
  for (unsigned i = 0; i < workers_max; ++i) {
    sys::Thread thread;
    {
      const sync::LockGuard lock(mutex);
      thread = std::move(workers[i].thread);
    }
    thread.join();
  }
}

// --- ThreadPool ---

ThreadPool::ThreadPool(std::shared_ptr<Shared> shared)
    : shared_(std::move(shared)),
      timekeeper_(std::make_shared<Timekeeper>(Timekeeper::Sink{
          [pool = shared_](Job& job) { return pool->push(job); },
          [pool = shared_](std::size_t count) { pool->abandoned.fetch_add(count, std::memory_order_relaxed); },
          shared_->drops})) {}

Result<std::unique_ptr<ThreadPool>> ThreadPool::make_fixed(unsigned workers, const ThreadPoolOptions& options) {
  return make_dynamic(workers, workers, options);
}
Result<std::unique_ptr<ThreadPool>> ThreadPool::make_single(const ThreadPoolOptions& options) {
  return make_dynamic(1, 1, options);
}

Result<std::unique_ptr<ThreadPool>> ThreadPool::make_dynamic(unsigned workers_min, unsigned workers_max,
                                                             const ThreadPoolOptions& options) {
  if (workers_min == 0 || workers_min > workers_max || workers_max > kWorkersMax) {
    return Error(Errc::invalid_argument, "a pool has 1 to kWorkersMax workers");
  }
  if (options.queue_capacity == 0 || options.queue_capacity > kQueueMax) {
    return Error(Errc::invalid_argument, "a queue has room for 1 to kQueueMax jobs");
  }
  constexpr Error kNoMemory(Errc::resource_exhausted, "no memory for a pool");
  std::unique_ptr<ThreadPool> pool;
  try {
    auto shared = std::make_shared<Shared>(workers_min, workers_max, options);
    const std::size_t each = (options.queue_capacity + workers_max - 1) / workers_max;
    for (unsigned i = 0; i < workers_max; ++i) {
      if (!shared->workers[i].queue.make(each)) {
        return kNoMemory;
      }
    }
    pool.reset(new ThreadPool(std::move(shared)));
  } catch (const std::bad_alloc&) {
    return kNoMemory;
  }
  for (unsigned i = 0; i < workers_min; ++i) {
    pool->shared_->gate.add_worker();
    if (const auto started = pool->shared_->start_worker(); !started) {
      pool->shared_->gate.undo_start();
      return started.error();
    }
  }
  return pool;
}

ThreadPool::~ThreadPool() {
  if (shared_->birth.elsewhere()) {
    detail::keep_for_ever(shared_);
    return;
  }
  (void)stop(StopMode::abandon, kNever);
}

Result<void> ThreadPool::run_soon(Job& job) {
  if (shared_->birth.elsewhere()) [[unlikely]] {
    return detail::kTakenByNobody;
  }
  auto taken = shared_->push(job);
  if (!taken) [[unlikely]] {
    shared_->refused.fetch_add(1, std::memory_order_relaxed);
  }
  return taken;
}
Result<void> ThreadPool::run_after(Duration delay, std::stop_token token, Job& job) {
  auto taken = timekeeper_->schedule(delay, std::move(token), job);
  if (!taken) {
    shared_->refused.fetch_add(1, std::memory_order_relaxed);
  }
  return taken;
}

Result<void> ThreadPool::stop(StopMode mode, Instant deadline) {
  if (shared_->birth.elsewhere()) {
    return detail::kInherited;
  }
  // A dropped job's destructor may end this pool.
  const std::shared_ptr<Shared> shared = shared_;
  const std::shared_ptr<Timekeeper> timekeeper = timekeeper_;
  const auto abandon = [shared, stopper = stop_source()] {
    stopper.request_stop();
    shared->abandon();
  };
  shared->close(*timekeeper, mode);
  if (mode == StopMode::abandon) {
    abandon();
  }
  if (detail::RunScope::inside(shared.get()) || shared->drops.inside()) {
    return detail::kOwnJob;
  }
  if (!shared->wait_for_workers(deadline)) {
    abandon();
    return detail::kStillRun;
  }
  shared->abandon();  // jobs whose push overlapped the end of an abandoned pool's last worker
  if (!shared->drops.wait_until_none(deadline)) {
    return detail::kStillRun;
  }
  shared->join();
  return {};
}

ExecutorCounts ThreadPool::counts() const noexcept {
  ExecutorCounts counts;
  for (unsigned i = 0; i < shared_->workers_max; ++i) {
    counts.executed += shared_->workers[i].executed.load(std::memory_order_relaxed);
    counts.threw += shared_->workers[i].threw.load(std::memory_order_relaxed);
    counts.queued += shared_->workers[i].queue.size();
  }
  counts.refused = shared_->refused.load(std::memory_order_relaxed);
  counts.abandoned = shared_->abandoned.load(std::memory_order_relaxed);
  counts.wakes = shared_->wakes.load(std::memory_order_relaxed);
  counts.workers = shared_->gate.workers();
  return counts;
}

}  // namespace weft::rt
