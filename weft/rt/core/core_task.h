// SPDX-License-Identifier: MIT
#pragma once

#include <stop_token>
#include <utility>

#include "weft/base/result.h"
#include "weft/rt/core/runtime.h"
#include "weft/rt/task/task_scope.h"

namespace weft::rt {

// Starts the task on that core: at once in the core's own thread, by a post from another core or a foreign thread. The
// Future gets the result and may be dropped. The token cancels the task. A core that ends cancels the task and waits.
// Cost: one pooled block besides the frame.
// Errors: those of Runtime::post(); the task is then destroyed without running. Those of the Future: as
// spawn(Loop&, ...).
template <typename T>
Result<Future<detail::Unwrapped<T>>> spawn(Core& core, Task<T> task, std::stop_token token = {}) {
  using Spawned = detail::SpawnedTask<T>;
  static_assert(alignof(Spawned) <= alignof(std::max_align_t));
  if (!task) {
    return Error(Errc::invalid_argument, "the task was moved from");
  }
  void* const block = mem::pool_allocate(sizeof(Spawned));
  if (block == nullptr) [[unlikely]] {
    return Error(Errc::resource_exhausted, "no memory for the task");
  }
  auto* const spawned = ::new (block) Spawned(core.loop(), std::move(task), std::move(token));
  Future<detail::Unwrapped<T>> future(spawned);
  detail::SpawnedStart<T> start(spawned);
  if (Core::current() != &core) {
    WEFT_TRY(core.runtime().post(core.index(), std::move(start)));
  } else if (core.ended()) {
    return Error(Errc::closed, "the runtime was stopped");
  } else {
    start();
  }
  return future;
}

}  // namespace weft::rt
