// SPDX-License-Identifier: MIT
#include "weft/rt/exec/timekeeper.h"

#include <limits>
#include <new>
#include <optional>
#include <utility>

#include "weft/base/list.h"
#include "weft/mem/pool.h"
#include "weft/rt/exec/job_run.h"
#include "weft/rt/loop/timer_wheel.h"
#include "weft/sync/lock.h"
#include "weft/sync/parker.h"
#include "weft/sys/clock.h"
#include "weft/sys/fork.h"
#include "weft/sys/signals.h"
#include "weft/sys/thread.h"

namespace weft::rt {
namespace {

constexpr Duration kRetryAfter = std::chrono::milliseconds(1);
constexpr std::size_t kFiredPerTurn = 256;

}  // namespace

struct Timekeeper::Core : std::enable_shared_from_this<Timekeeper::Core> {
  // Entry: one job. A pooled block: the thread that takes it out of its list frees it.
  struct Entry : ListHook {
    struct Cancel {
      Entry* entry;
      void operator()() const { entry->core->cancel(*entry); }
    };
    Entry(Core* in, Job& given) noexcept : core(in), job(std::move(given)) {}

    Core* core;
    Job job;
    // Guarded by the core's mutex:
    Instant due_at;
    TimerId timer;
    bool waits = false;      // in the list `waiting`
    bool cancelled = false;  // the token was set while the entry did not wait
    // Destroyed without the mutex: its destructor waits for a call of cancel() in another thread.
    std::optional<std::stop_callback<Cancel>> on_stop;
  };
  using Entries = List<Entry>;

  explicit Core(Sink given) : sink(std::move(given)), wheel(sys::now()) {}
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;
  ~Core() { drop(due); }

  Result<void> start_thread() WEFT_REQUIRES(mutex);
  Result<void> schedule(Duration delay, Entry& entry) WEFT_REQUIRES(mutex);
  void cancel(Entry& entry);
  void run();
  void take_all_due(Instant now) WEFT_REQUIRES(mutex);
  bool offer_one();
  Duration time_to_sleep();
  static void fire(void* entry);
  static void free(Entry* entry) noexcept {
    entry->~Entry();
    mem::pool_deallocate(entry);
  }
  static void drop(Entries& entries) noexcept;

  const Sink sink;
  const sys::Birth birth;
  sync::StdMutex mutex;
  TimerWheel wheel WEFT_GUARDED_BY(mutex);
  Entries waiting WEFT_GUARDED_BY(mutex);
  Entries due WEFT_GUARDED_BY(mutex);
  std::size_t count WEFT_GUARDED_BY(mutex) = 0;  // of both, and the one that is being offered
  Instant wanted WEFT_GUARDED_BY(mutex) = kNever;
  Instant retry_at WEFT_GUARDED_BY(mutex) = Instant::min();
  bool stopping WEFT_GUARDED_BY(mutex) = false;
  bool abandoned WEFT_GUARDED_BY(mutex) = false;
  bool ended WEFT_GUARDED_BY(mutex) = false;
  bool started WEFT_GUARDED_BY(mutex) = false;
  sys::Thread thread WEFT_GUARDED_BY(mutex);

  sync::Parker parker;  // woken when `wanted` is too late, and to stop
  sync::Parker over;    // woken by the end of the thread
};

Timekeeper::Timekeeper(Sink sink) : core_(std::make_shared<Core>(std::move(sink))) {}
Timekeeper::~Timekeeper() {
  if (core_->birth.elsewhere()) {
    detail::keep_for_ever(std::move(core_));
    return;
  }
  close(StopMode::abandon);
  join();
}

Result<void> Timekeeper::schedule(Duration delay, std::stop_token token, Job& job) {
  if (core_->birth.elsewhere()) {
    return detail::kTakenByNobody;
  }
  void* const block = mem::pool_allocate(sizeof(Core::Entry));
  if (block == nullptr) {
    return Error(Errc::resource_exhausted, "no memory for a delayed job");
  }
  auto* const entry = ::new (block) Core::Entry(core_.get(), job);
  if (token.stop_possible()) {
    entry->on_stop.emplace(std::move(token), Core::Entry::Cancel{entry});  // may call cancel(), which only notes it
  }
  Result<void> taken;
  bool cancelled = false;
  bool wakes = false;
  std::shared_ptr<Core> kept;
  std::optional<detail::Drops::Scope> dropping;
  {
    const sync::LockGuard lock(core_->mutex);
    taken = core_->start_thread();
    cancelled = taken && entry->cancelled;
    if (cancelled) {
      kept = core_;  // the job may end the owner
      dropping.emplace(kept->sink.drops);
    } else if (taken) {
      taken = core_->schedule(delay, *entry);
      wakes = taken && core_->wheel.next_deadline() < core_->wanted;
      core_->wanted = wakes ? core_->wheel.next_deadline() : core_->wanted;
    }
  }
  if (wakes) {
    core_->parker.wake_with_fence();
  }
  if (taken && !cancelled) {
    return taken;  // the entry may be gone
  }
  entry->on_stop.reset();
  if (cancelled) {
    kept->sink.count_dropped(1);
    entry->job();
  } else {
    job = std::move(entry->job);
  }
  Core::free(entry);
  return taken;
}

Result<void> Timekeeper::Core::start_thread() {
  if (stopping) {
    return Error(Errc::closed, "the executor was stopped");
  }
  if (started) {
    return {};
  }
  auto* own = new (std::nothrow) std::shared_ptr<Core>(shared_from_this());
  if (own == nullptr) {
    return Error(Errc::resource_exhausted, "no memory for a delayed job");
  }
  const sys::SignalsBlocked blocked;  // signals are for the application's threads
  auto made = sys::Thread::start(
      [](void* argument) {
        const std::unique_ptr<std::shared_ptr<Core>> core(static_cast<std::shared_ptr<Core>*>(argument));
        (*core)->run();
      },
      own);
  if (!made) {
    delete own;
    return made.error();
  }
  thread = std::move(made).value();
  started = true;
  return {};
}

Result<void> Timekeeper::Core::schedule(Duration delay, Entry& entry) {
  if (count >= kJobsMax) {
    return Error(Errc::resource_exhausted, "too many delayed jobs");
  }
  entry.due_at = deadline_after(sys::now(), delay);
  entry.timer = wheel.schedule(entry.due_at, {&Core::fire, &entry});
  if (!entry.timer) {
    return Error(Errc::resource_exhausted, "no memory for a delayed job");
  }
  entry.waits = true;
  waiting.push_back(entry);
  ++count;
  return {};
}

// In the thread that sets the token. An entry that does not wait belongs to another thread, which destroys its callback
// and so waits for this call.
void Timekeeper::Core::cancel(Entry& entry) {
  std::shared_ptr<Core> self;
  std::optional<detail::Drops::Scope> dropping;
  {
    const sync::LockGuard lock(mutex);
    entry.cancelled = true;
    if (!entry.waits) {
      return;
    }
    self = shared_from_this();  // the job may end the owner
    dropping.emplace(sink.drops);
    wheel.cancel(entry.timer);
    entry.waits = false;
    entry.unhook();
    --count;
  }
  self->sink.count_dropped(1);
  entry.job();
  free(&entry);
}

// The wheel fires timers up to a tick late. The list has those that it left.
void Timekeeper::Core::take_all_due(Instant now) {
  wheel.advance(now, std::numeric_limits<std::size_t>::max());
  for (Entry* entry = waiting.first(); entry != nullptr;) {
    Entry* const next = waiting.next(*entry);
    if (entry->due_at <= now) {
      wheel.cancel(entry->timer);
      fire(entry);
    }
    entry = next;
  }
}

void Timekeeper::close(StopMode mode) {
  const std::shared_ptr<Core> core = core_;  // a dropped job's destructor may end the owner
  const detail::Drops::Scope dropping(core->sink.drops);
  Core::Entries dropped;
  std::size_t count = 0;
  {
    const sync::LockGuard lock(core->mutex);
    if (!std::exchange(core->stopping, true) && mode == StopMode::drain) {
      core->take_all_due(sys::now());
    }
    dropped.splice_back(core->waiting);
    if (mode == StopMode::abandon) {
      core->abandoned = true;
      dropped.splice_back(core->due);
    }
    for (Core::Entry* entry = dropped.first(); entry != nullptr; entry = dropped.next(*entry)) {
      entry->waits = false;
      ++count;
    }
    core->count -= count;
  }
  core->parker.wake_with_fence();
  core->sink.count_dropped(count);
  Core::drop(dropped);
}

bool Timekeeper::wait_until_ended(Instant deadline) noexcept {
  for (;;) {
    const auto ticket = core_->over.announce_futex(false);
    {
      const sync::LockGuard lock(core_->mutex);
      if (!core_->started || core_->ended) {
        return true;
      }
    }
    const Duration left = time_left(deadline, sys::now());
    if (left == Duration::zero()) {
      return false;
    }
    core_->over.sleep(ticket, left);
  }
}

void Timekeeper::join() {
  sys::Thread thread;
  {
    const sync::LockGuard lock(core_->mutex);
    thread = std::move(core_->thread);
  }
  thread.join();
}

Job Timekeeper::take_due() {
  Core::Entry* entry = nullptr;
  {
    const sync::LockGuard lock(core_->mutex);
    entry = core_->due.pop_front();
    core_->count -= entry != nullptr ? 1 : 0;
  }
  if (entry == nullptr) {
    return {};
  }
  entry->on_stop.reset();
  Job job = std::move(entry->job);
  Core::free(entry);
  return job;
}

// --- the thread ---

void Timekeeper::Core::fire(void* context) {
  auto& entry = *static_cast<Entry*>(context);
  sync::assume_locked(entry.core->mutex);  // by the caller of the wheel
  entry.waits = false;
  entry.unhook();
  entry.core->due.push_back(entry);
}

void Timekeeper::Core::drop(Entries& entries) noexcept {
  while (Entry* const entry = entries.pop_front()) {
    entry->on_stop.reset();
    free(entry);
  }
}

// Allocates nothing: there is no caller to return an error to. Returns false if nothing is due.
bool Timekeeper::Core::offer_one() {
  Entry* entry = nullptr;
  {
    const sync::LockGuard lock(mutex);
    const Instant now = sys::now();
    if (!stopping) {
      wheel.advance(now, kFiredPerTurn);
    }
    if (retry_at > now) {
      return false;
    }
    entry = due.pop_front();
  }
  if (entry == nullptr) {
    return false;
  }
  entry->on_stop.reset();
  const Result<void> taken = sink.offer(entry->job);
  const detail::Drops::Scope dropping(sink.drops);  // of a job that was not taken
  {
    const sync::LockGuard lock(mutex);
    if (!taken && taken.error() == Errc::resource_exhausted && !abandoned) {
      Entries first;
      first.push_back(*entry);
      first.splice_back(due);
      due.splice_back(first);
      retry_at = sys::now() + kRetryAfter;  // the sink would refuse other due jobs, too
      return false;
    }
    --count;
  }
  if (!taken) {
    sink.count_dropped(1);
  }
  free(entry);
  return true;
}

// Zero: there is work. Negative: for ever.
Duration Timekeeper::Core::time_to_sleep() {
  const sync::LockGuard lock(mutex);
  const Instant now = sys::now();
  wanted = wheel.next_deadline();
  if (!due.empty()) {
    wanted = std::min(wanted, retry_at);
  }
  return stopping ? Duration::zero() : time_left(wanted, now);
}

void Timekeeper::Core::run() {
  sys::set_up_thread("weft-delays", {});
  for (;;) {
    while (offer_one()) {
    }
    const auto ticket = parker.announce_futex(false);
    const Duration left = time_to_sleep();
    if (left != Duration::zero()) {
      parker.sleep(ticket, left);
      continue;
    }
    const sync::LockGuard lock(mutex);
    if (stopping && (due.empty() || retry_at > sys::now())) {
      ended = true;
      break;
    }
  }
  over.wake_with_fence();
}

}  // namespace weft::rt
