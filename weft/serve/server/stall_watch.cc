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

Result<std::unique_ptr<StallWatch>> StallWatch::make(rt::Runtime& runtime, Duration after, LogSink log) {
  std::unique_ptr<StallWatch> watch(new StallWatch(after, std::move(log)));
  for (unsigned core = 0; core < runtime.size(); ++core) {
    watch->cores_.push_back({core, runtime.core(core).loop().activity(), Instant()});
  }
  const sys::SignalsBlocked blocked;
  watch->thread_ = WEFT_TRY(sys::Thread::start([](void* self) { static_cast<StallWatch*>(self)->run(); }, watch.get()));
  return watch;
}

StallWatch::~StallWatch() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void StallWatch::run() {
  sys::set_up_thread("stalls", {});
  std::unique_lock lock(mutex_);
  while (!ending_) {
    const Instant next = deadline_after(sys::now(), std::max<Duration>(after_ / 2, kShortest));
    while (!ending_ && sync::sleep_until(changed_, lock, next)) {
    }
    lock.unlock();
    look(sys::now());
    lock.lock();
  }
}

void StallWatch::look(Instant now) {
  for (Watched& core : cores_) {
    if (const auto busy = core.activity->busy_since(now - after_); busy && busy->since != core.told) {
      core.told = busy->since;
      core.activity->note_stall(*busy);
      tell(core, *busy, now);
    }
  }
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
