// SPDX-License-Identifier: MIT
#include "weft/rt/timekeeper.h"

#include <algorithm>
#include <deque>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "weft/rt/timer_wheel.h"
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
    TaskFunction task;
  };

  explicit Core(Sink given) : sink(std::move(given)), wheel(sys::now()) {}

  Result<void> schedule(Duration delay, TaskFunction& task);
  void run();
  Instant turn();  // when it wants the next one
  static void fire(void* context);

  const Sink sink;
  std::mutex mutex;
  // Guarded by mutex:
  TimerWheel wheel;
  std::deque<Waiting> slots;  // a Waiting stays where it is
  std::vector<Waiting*> free;
  std::vector<TaskFunction> due;  // beyond the mutex: the thread's, but only while it is in turn()
  Instant wanted = kNever;        // when the thread wakes by itself
  bool stopping = false;
  bool started = false;
  sys::Thread thread;

  sync::Parker parker;  // woken when `wanted` is too late, and to stop
};

Timekeeper::Timekeeper(Sink sink) : core_(std::make_shared<Core>(std::move(sink))) {}
Timekeeper::~Timekeeper() { stop(); }

Result<void> Timekeeper::schedule(Duration delay, TaskFunction& task) {
  bool wakes = false;
  {
    const std::lock_guard lock(core_->mutex);
    if (core_->stopping) {
      return Error(Errc::closed, "the executor was stopped");
    }
    if (!core_->started) {
      auto* own = new (std::nothrow) std::shared_ptr<Core>(core_);
      if (own == nullptr) {
        return Error(Errc::resource_exhausted, "no memory for a delayed task");
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
    if (const auto taken = core_->schedule(delay, task); !taken) {
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

Result<void> Timekeeper::Core::schedule(Duration delay, TaskFunction& task) {
  try {
    if (free.empty()) {
      if (slots.size() >= kTasksMax) {
        return Error(Errc::resource_exhausted, "too many delayed tasks");
      }
      free.reserve(slots.size() + 1);
      slots.emplace_back().core = this;
      free.push_back(&slots.back());
    }
    Waiting* const waiting = free.back();
    (void)wheel.schedule(deadline_after(sys::now(), delay), {&Core::fire, waiting});
    free.pop_back();
    waiting->task = std::move(task);
  } catch (const std::bad_alloc&) {
    return Error(Errc::resource_exhausted, "no memory for a delayed task");
  }
  return {};
}

std::size_t Timekeeper::close() {
  std::deque<Core::Waiting> dropped;  // destroyed outside the mutex: that may run anything
  std::vector<TaskFunction> dropped_due;
  std::size_t count = 0;
  {
    const std::lock_guard lock(core_->mutex);
    if (std::exchange(core_->stopping, true)) {
      return 0;
    }
    count = core_->wheel.size() + core_->due.size();
    dropped.swap(core_->slots);
    dropped_due.swap(core_->due);
  }
  core_->parker.wake_with_fence();
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
  auto* waiting = static_cast<Waiting*>(context);
  waiting->core->due.push_back(std::move(waiting->task));
  waiting->core->free.push_back(waiting);
}

Instant Timekeeper::Core::turn() {
  std::vector<TaskFunction> ready;
  Instant next = kNever;
  {
    const std::lock_guard lock(mutex);
    if (stopping) {
      return kNever;
    }
    due.reserve(due.size() + kFiredPerTurn);
    wheel.advance(sys::now(), kFiredPerTurn);
    ready.swap(due);
    next = wanted = wheel.next_deadline();
  }
  std::vector<TaskFunction> refused;
  for (TaskFunction& task : ready) {
    const Result<void> taken = sink(task);
    if (!taken && taken.error() == Errc::resource_exhausted) {
      refused.push_back(std::move(task));
    }
  }
  if (refused.empty()) {
    return next;
  }
  const std::lock_guard lock(mutex);
  if (!stopping) {
    due = std::move(refused);
    wanted = std::min(wanted, sys::now() + kRetryAfter);
  }
  return wanted;
}

void Timekeeper::Core::run() {
  sys::set_up_thread("weft-delays", {});
  for (;;) {
    (void)turn();
    const auto ticket = parker.announce_futex(false);
    Instant next = kNever;
    {
      const std::lock_guard lock(mutex);
      if (stopping) {
        return;
      }
      next = wanted;
    }
    const Instant now = sys::now();
    if (next == kNever) {
      parker.sleep(ticket, Duration(-1));
    } else if (next > now) {
      parker.sleep(ticket, next - now);
    }
  }
}

}  // namespace weft::rt
