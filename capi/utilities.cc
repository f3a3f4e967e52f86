// SPDX-License-Identifier: MIT
// Atomic counters, and libzmq's utilities for programs that measure: stopwatches, threads, sleep.
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>

#include "capi/handle_store.h"
#include "capi/handles.h"
#include "weft/sys/clock.h"
#include "weft/sys/poll.h"
#include "weft/sys/thread.h"

using namespace weft;        // NOLINT(google-build-using-namespace)
using namespace weft::capi;  // NOLINT(google-build-using-namespace)

namespace {

using CounterHandle = ValueHandle<std::atomic<std::uint32_t>, 0x57434e54>;  // unsigned: it wraps
using StopwatchHandle = ValueHandle<Instant, 0x57535457>;
using ThreadHandle = ValueHandle<sys::Thread, 0x57544852>;

unsigned long elapsed_us(const StopwatchHandle& watch) noexcept {
  return static_cast<unsigned long>(
      std::chrono::duration_cast<std::chrono::microseconds>(sys::now() - watch.value).count());
}

}  // namespace

extern "C" {

// Counters are sequentially consistent: programs count references with them, and write before they decrement.

void* zmq_atomic_counter_new(void) {
  CounterHandle* counter = CounterHandle::make();
  if (counter != nullptr) {
    counter->value.store(0);
  }
  return counter;
}
void zmq_atomic_counter_set(void* counter, int value) {
  if (CounterHandle* handle = CounterHandle::of(counter); handle != nullptr) {
    handle->value.store(static_cast<std::uint32_t>(value));
  }
}
int zmq_atomic_counter_inc(void* counter) {
  CounterHandle* handle = CounterHandle::of(counter);
  return handle == nullptr ? -1 : static_cast<int>(handle->value.fetch_add(1));
}
int zmq_atomic_counter_dec(void* counter) {
  CounterHandle* handle = CounterHandle::of(counter);
  return handle == nullptr ? -1 : (handle->value.fetch_sub(1) != 1 ? 1 : 0);
}
int zmq_atomic_counter_value(void* counter) {
  const CounterHandle* handle = CounterHandle::of(counter);
  return handle == nullptr ? -1 : static_cast<int>(handle->value.load());
}
void zmq_atomic_counter_destroy(void** counter_p) {
  CounterHandle* handle = counter_p == nullptr ? nullptr : CounterHandle::of(*counter_p);
  if (handle != nullptr) {
    handle->retire();
    *counter_p = nullptr;
  }
}

void* zmq_stopwatch_start(void) {
  StopwatchHandle* watch = StopwatchHandle::make();
  if (watch != nullptr) {
    watch->value = sys::now();
  }
  return watch;
}
unsigned long zmq_stopwatch_intermediate(void* watch) {
  const StopwatchHandle* handle = StopwatchHandle::of(watch);
  return handle == nullptr ? 0 : elapsed_us(*handle);
}
unsigned long zmq_stopwatch_stop(void* watch) {
  StopwatchHandle* handle = StopwatchHandle::of(watch);
  if (handle == nullptr) {
    return 0;
  }
  const unsigned long elapsed = elapsed_us(*handle);
  handle->retire();
  return elapsed;
}

// As libzmq's, a signal ends it.
void zmq_sleep(int seconds) { (void)sys::poll_fds({}, std::chrono::seconds(std::max(seconds, 0))); }

void* zmq_threadstart(zmq_thread_fn* func, void* arg) {
  if (func == nullptr) {
    (void)fail(EFAULT);
    return nullptr;
  }
  ThreadHandle* handle = ThreadHandle::make();
  if (handle == nullptr) {
    return nullptr;
  }
  auto thread = sys::Thread::start(func, arg);
  if (!thread) {
    handle->retire();
    (void)fail(thread.error());
    return nullptr;
  }
  handle->value = std::move(*thread);
  return handle;
}
void zmq_threadclose(void* thread) {
  if (ThreadHandle* handle = ThreadHandle::of(thread); handle != nullptr) {
    handle->value.join_cancellably();
    handle->retire();
  }
}
}
