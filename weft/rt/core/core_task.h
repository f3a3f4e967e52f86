// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <chrono>
#include <stop_token>
#include <utility>

#include "weft/base/result.h"
#include "weft/base/time.h"
#include "weft/rt/core/runtime.h"
#include "weft/rt/task/task_scope.h"
#include "weft/sync/condition.h"
#include "weft/sync/lock.h"
#include "weft/sys/clock.h"

namespace weft::rt {

// Starts the task on that core: at once in the core's own thread, by a post from another core or a foreign thread. The
// Future gets the result and may be dropped. The token cancels the task. A core that ends cancels the task and waits.
// Cost: one pooled block besides the frame.
// Errors: those of Runtime::post(): then `task` is unchanged, and may be spawned again. Errors of the Future: those of
// spawn(Loop&, ...).
template <typename T>
Result<Future<detail::Unwrapped<T>>> spawn(Core& core, Task<T>&& task, std::stop_token token = {}) {
  using Spawned = detail::SpawnedTask<T>;
  static_assert(alignof(Spawned) <= alignof(std::max_align_t));
  if (!task.may_begin()) {
    return detail::kNoTask;
  }
  void* const block = mem::pool_allocate(sizeof(Spawned));
  if (block == nullptr) [[unlikely]] {
    return Error(Errc::resource_exhausted, "no memory for the task");
  }
  auto* const spawned = ::new (block) Spawned(core.loop(), std::move(task), std::move(token));
  Future<detail::Unwrapped<T>> future(spawned);
  detail::SpawnedStart<T> start(spawned);
  if (Core::current() != &core) {
    if (const auto posted = core.runtime().post(core.index(), std::move(start)); !posted) {
      task = start.take_back();  // a refused start was not moved from: it is made in the lane's cell
      return posted.error();
    }
  } else if (core.ended()) {
    task = start.take_back();
    return Error(Errc::closed, "the runtime was stopped");
  } else {
    start();
  }
  return future;
}

// spawn() for a thread that is not a core and may wait for room while the lane to that core is full. So the caller
// starts a burst of tasks as fast as the core takes it. On a core it is the same as spawn().
// Cost: that of spawn(); a thread that waits tries again after 50 us, then after up to 1 ms.
// Errors: those of spawn(); timed_out (the lane was full until the deadline). Then `task` is unchanged.
template <typename T>
Result<Future<detail::Unwrapped<T>>> spawn_until(Core& core, Task<T>&& task, Instant deadline,
                                                 std::stop_token token = {}) {
  for (Duration wait = std::chrono::microseconds(50);;
       wait = std::min<Duration>(2 * wait, std::chrono::milliseconds(1))) {
    auto spawned = spawn(core, std::move(task), token);
    if (spawned || spawned.error() != Errc::resource_exhausted || Core::current() != nullptr) {
      return spawned;
    }
    const Instant now = sys::now();
    if (now >= deadline) {
      return Error(Errc::timed_out, "the lane to that core was full until the deadline");
    }
    sync::StdMutex nobody;
    sync::Condition never;
    sync::UniqueLock lock(nobody);
    (void)sync::sleep_until(never, lock, std::min(deadline_after(now, wait), deadline));
  }
}

}  // namespace weft::rt
