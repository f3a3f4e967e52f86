// SPDX-License-Identifier: MIT
#include <algorithm>
#include <chrono>
#include <climits>

#include "capi/handle_store.h"
#include "capi/handles.h"
#include "weft/rt/loop/interval_timers.h"
#include "weft/sys/clock.h"

using namespace weft;        // NOLINT(google-build-using-namespace)
using namespace weft::capi;  // NOLINT(google-build-using-namespace)

namespace {

using std::chrono::milliseconds;
using TimersHandle = ValueHandle<rt::IntervalTimers, 0x5754494d>;

Duration duration_of(size_t interval_ms) noexcept {
  constexpr auto kLongest = std::chrono::duration_cast<milliseconds>(Duration::max()).count();
  return milliseconds(static_cast<std::int64_t>(std::min<std::uint64_t>(interval_ms, kLongest)));
}

int status_of(const Result<void>& result) noexcept { return result ? 0 : fail(result.error()); }

}  // namespace

extern "C" {

void* zmq_timers_new(void) { return TimersHandle::make(); }

int zmq_timers_destroy(void** timers_p) {
  TimersHandle* handle = timers_p == nullptr ? nullptr : TimersHandle::of(*timers_p);
  if (handle == nullptr) {
    return fail(EFAULT);
  }
  if (handle->value.running()) {
    return fail(EBUSY);  // called by a callback of these timers; libzmq reads freed memory here
  }
  handle->value.clear();
  handle->retire();
  *timers_p = nullptr;
  return 0;
}

int zmq_timers_add(void* timers, size_t interval, zmq_timer_fn handler, void* arg) {
  TimersHandle* handle = TimersHandle::of(timers);
  if (handle == nullptr || handler == nullptr) {
    return fail(EFAULT);
  }
  return or_enomem([&] { return handle->value.add(sys::now(), duration_of(interval), handler, arg); });
}

int zmq_timers_cancel(void* timers, int timer_id) {
  TimersHandle* handle = TimersHandle::of(timers);
  return handle == nullptr ? -1 : status_of(handle->value.cancel(timer_id));
}

int zmq_timers_set_interval(void* timers, int timer_id, size_t interval) {
  TimersHandle* handle = TimersHandle::of(timers);
  return handle == nullptr ? -1 : status_of(handle->value.set_interval(sys::now(), timer_id, duration_of(interval)));
}

int zmq_timers_reset(void* timers, int timer_id) {
  TimersHandle* handle = TimersHandle::of(timers);
  return handle == nullptr ? -1 : status_of(handle->value.reset(sys::now(), timer_id));
}

long zmq_timers_timeout(void* timers) {
  const TimersHandle* handle = TimersHandle::of(timers);
  if (handle == nullptr) {
    return -1;
  }
  const auto left = handle->value.until_next(sys::now());
  if (!left) {
    return -1;
  }
  // Rounded up: a program that sleeps that long finds the timer due.
  return static_cast<long>(std::min<std::int64_t>(std::chrono::ceil<milliseconds>(*left).count(), LONG_MAX));
}

int zmq_timers_execute(void* timers) {
  TimersHandle* handle = TimersHandle::of(timers);
  if (handle == nullptr) {
    return -1;
  }
  handle->value.run(sys::now());
  return 0;
}
}
