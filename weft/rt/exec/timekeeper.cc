// SPDX-License-Identifier: MIT
#include "weft/rt/exec/timekeeper.h"

#include <mutex>
#include <new>
#include <optional>
#include <utility>
#include <vector>

#include "weft/mem/slab.h"
#include "weft/rt/loop/timer_wheel.h"
#include "weft/sync/parker.h"
#include "weft/sys/clock.h"
#include "weft/sys/signals.h"
#include "weft/sys/thread.h"

namespace weft::rt {
namespace {

constexpr Duration kRetryAfter = std::chrono::milliseconds(1);
constexpr std::size_t kFiredPerTurn = 256;

}  // namespace

struct Timekeeper::Core {
  struct Waiting {
    Core* core = nullptr;
    Job job;
  };

  explicit Core(Sink given) : sink(std::move(given)), wheel(sys::now()) {
    due.reserve(kFiredPerTurn);
    ready.reserve(kFiredPerTurn);
  }

  Result<void> schedule(Duration delay, Job& job);
  void run();
  void turn();
  static void fire(void* context);

  const Sink sink;
  std::mutex mutex;
  // Guarded by mutex:
  TimerWheel wheel;
  std::optional<mem::SlabOf<Waiting>> waiting{std::in_place, kJobsMax};  // until close()
  std::vector<Job> due;                                                  // never more than kFiredPerTurn
  Instant wanted = kNever;                                               // when the thread wakes by itself
  bool stopping = false;
  bool started = false;
  sys::Thread thread;

  std::vector<Job> ready;  // only the thread uses it: due jobs on their way to the sink
  sync::Parker parker;     // woken when `wanted` is too late, and to stop
};

Timekeeper::Timekeeper(Sink sink) : core_(std::make_shared<Core>(std::move(sink))) {}
Timekeeper::~Timekeeper() { stop(); }

Result<void> Timekeeper::schedule(Duration delay, Job& job) {
  bool wakes = false;
  {
    const std::lock_guard lock(core_->mutex);
    if (core_->stopping) {
      return Error(Errc::closed, "the executor was stopped");
    }
    if (!core_->started) {
      auto* own = new (std::nothrow) std::shared_ptr<Core>(core_);
      if (own == nullptr) {
        return Error(Errc::resource_exhausted, "no memory for a delayed job");
      }
      const sys::SignalsBlocked blocked;  // signals are for the application's threads
      auto thread = sys::Thread::start(
          [](void* argument) {
            const std::unique_ptr<std::shared_ptr<Core>> core(static_cast<std::shared_ptr<Core>*>(argument));
            (*core)->run();
          },
          own);
      if (!thread) {
        delete own;
        return thread.error();
      }
      core_->thread = std::move(thread).value();
      core_->started = true;
    }
    if (const auto taken = core_->schedule(delay, job); !taken) {
      return taken;
    }
    const Instant next = core_->wheel.next_deadline();
    wakes = next < core_->wanted;
    core_->wanted = wakes ? next : core_->wanted;
  }
  if (wakes) {
    core_->parker.wake_with_fence();
  }
  return {};
}

Result<void> Timekeeper::Core::schedule(Duration delay, Job& job) {
  if (waiting->live_count() >= kJobsMax) {
    return Error(Errc::resource_exhausted, "too many delayed jobs");
  }
  Waiting* const made = waiting->make();
  if (made == nullptr || !wheel.schedule(deadline_after(sys::now(), delay), {&Core::fire, made})) {
    (void)waiting->destroy(made);
    return Error(Errc::resource_exhausted, "no memory for a delayed job");
  }
  made->core = this;
  made->job = std::move(job);
  return {};
}

std::size_t Timekeeper::close() {
  std::size_t count = 0;
  {
    const std::lock_guard lock(core_->mutex);
    if (std::exchange(core_->stopping, true)) {
      return 0;
    }
    count = core_->wheel.size() + core_->due.size();
  }
  core_->parker.wake_with_fence();
  // Outside the mutex, because a job's destructor may run any code. No other thread uses these after `stopping`.
  core_->waiting.reset();
  core_->due.clear();
  return count;
}

void Timekeeper::stop() {
  (void)close();
  sys::Thread thread;
  {
    const std::lock_guard lock(core_->mutex);
    thread = std::move(core_->thread);
  }
  thread.join();
}

void Timekeeper::Core::fire(void* context) {
  auto* const fired = static_cast<Waiting*>(context);
  Core& core = *fired->core;
  core.due.push_back(std::move(fired->job));  // within the reserved room: turn() limits the number that fires
  (void)core.waiting->destroy(fired);
}

// Allocates nothing: there is no caller to return an error to.
void Timekeeper::Core::turn() {
  {
    const std::lock_guard lock(mutex);
    if (stopping) {
      return;
    }
    wheel.advance(sys::now(), kFiredPerTurn - due.size());
    ready.swap(due);
    wanted = wheel.next_deadline();
  }
  std::size_t refused = 0;  // jobs to offer again; they move to the front of `ready`
  for (Job& job : ready) {
    const Result<void> taken = sink(job);
    if (!taken && taken.error() == Errc::resource_exhausted) {
      Job& place = ready[refused++];
      if (&place != &job) {
        place = std::move(job);
      }
    }
  }
  while (ready.size() > refused) {
    ready.pop_back();
  }
  if (refused != 0) {
    const std::lock_guard lock(mutex);
    if (!stopping) {
      due.swap(ready);
      wanted = sys::now() + kRetryAfter;  // the sink would refuse other due jobs, too
      return;
    }
  }
  ready.clear();
}

void Timekeeper::Core::run() {
  sys::set_up_thread("weft-delays", {});
  for (;;) {
    turn();
    const auto ticket = parker.announce_futex(false);
    Instant next = kNever;
    {
      const std::lock_guard lock(mutex);
      if (stopping) {
        return;
      }
      next = wanted;
    }
    if (const Duration left = time_left(next, sys::now()); left != Duration::zero()) {
      parker.sleep(ticket, left);
    }
  }
}

}  // namespace weft::rt
