// SPDX-License-Identifier: MIT
#include "weft/serve/server/stall_watch.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "weft/sync/condition.h"
#include "weft/sys/clock.h"
#include "weft/sys/signals.h"

namespace weft::serve {

namespace {
constexpr Duration kShortest = std::chrono::milliseconds(1);  // between two looks
}

Result<std::unique_ptr<StallWatch>> StallWatch::make(rt::Runtime& runtime, Duration after, LogSink log,
                                                     std::function<void()> stalled) {
  std::unique_ptr<StallWatch> watch(new StallWatch(after, std::move(log), std::move(stalled)));
  for (unsigned core = 0; core < runtime.size(); ++core) {
    watch->cores_.push_back({core, runtime.core(core).loop().activity(), Instant()});
    watch->cores_.back().activity->add_bell(*watch);
  }
  const sys::SignalsBlocked blocked;
  watch->thread_ = WEFT_TRY(sys::Thread::start([](void* self) { static_cast<StallWatch*>(self)->run(); }, watch.get()));
  return watch;
}

StallWatch::~StallWatch() {
  for (Watched& core : cores_) {
    core.activity->remove_bell(*this);
  }
  {
    const sync::LockGuard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void StallWatch::ring() noexcept {
  const sync::LockGuard lock(mutex_);
  rung_ = true;
  if (sleeps_) {
    changed_.notify_one();
  }
}

bool StallWatch::sleeps() const {
  const sync::LockGuard lock(mutex_);
  return sleeps_;
}

void StallWatch::run() {
  sys::set_up_thread("stalls", {});
  sync::UniqueLock lock(mutex_);
  bool idle = false;  // no core had a turn between the last two looks
  while (!ending_) {
    const Instant next = deadline_after(sys::now(), std::max<Duration>(after_ / 2, kShortest));
    while (!ending_ && sync::sleep_until(changed_, lock, next)) {
    }
    // A core that began a turn as it was armed may not have rung. After another time between two looks its turn is
    // seen, or is over.
    const bool was_idle = idle;
    idle = !std::exchange(rung_, false);
    lock.unlock();
    idle = !look(sys::now()) && idle;
    lock.lock();
    sleeps_ = idle && was_idle;
    while (!ending_ && !rung_ && sleeps_) {
      changed_.wait(lock);
    }
    sleeps_ = false;
  }
}

bool StallWatch::look(Instant now) {
  bool busy_core = false;
  bool stalled = false;
  for (Watched& core : cores_) {
    core.activity->arm();
    busy_core = busy_core || core.activity->busy_since(now);
    if (const auto busy = core.activity->busy_since(now - after_); busy && busy->since != core.told) {
      core.told = busy->since;
      core.activity->note_stall(*busy);
      tell(core, *busy, now);
      stalled = true;
    }
  }
  if (stalled && stalled_) {
    stalled_();
  }
  return busy_core;
}

void StallWatch::tell(const Watched& core, const rt::Activity::Busy& busy, Instant now) const noexcept {
  if (!log_) {
    return;
  }
  try {
    const std::string what = busy.text() + " has not returned for " +
                             std::to_string((now - busy.since) / std::chrono::milliseconds(1)) + " ms";
    LogRecord record;
    record.time = std::chrono::system_clock::now();
    record.level = LogLevel::error;
    record.event = LogEvent::core_stalled;
    record.core = core.core;
    record.session = {busy.subject};
    record.reason = "stalled";
    record.what = what;
    log_(record);
  } catch (...) {  // NOLINT(bugprone-empty-catch): a failing log ends no thread
  }
}

}  // namespace weft::serve
