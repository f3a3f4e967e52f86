// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <utility>

#include "weft/base/result.h"
#include "weft/base/time.h"
#include "weft/rt/task/async_event.h"
#include "weft/sync/condition.h"
#include "weft/sync/lock.h"
#include "weft/topic/mesh/mesh_state.h"

namespace weft::topic {

// SharedMesh: a MeshState with its lock, and the threads and coroutines that wait for a change of it.
// Owner: a node. Affinity: any thread; event() is the loop's. Cost: a lock.
// Invariant: a wait that began before changed() calls its condition again.
class SharedMesh {
 public:
  explicit SharedMesh(MeshState::Self self) : instance_(self.instance), mesh_(std::move(self)) {}

  [[nodiscard]] std::uint64_t instance() const noexcept { return instance_; }  // of MeshState::self(), without the lock

  // Calls the function with the MeshState, under the lock. It uses no socket.
  template <typename Function>
  auto with(Function function) {
    const sync::LockGuard lock(mutex_);
    return function(mesh_);
  }
  template <typename Function>
  auto with(Function function) const {
    const sync::LockGuard lock(mutex_);
    return function(std::as_const(mesh_));
  }

  // Waits until `done`, which is called under the lock: now, and after each change. Errors: timed_out; closed; the
  // reason of refuse().
  [[nodiscard]] Result<void> wait(Instant deadline, const std::function<bool(const MeshState&)>& done);
  void changed() noexcept;  // after a change
  void close() noexcept;    // ends every wait
  // The messages of other handles do not come: no wait can end as it should.
  void refuse(const Error& why) noexcept;
  void permit() noexcept { refuse(Error()); }
  [[nodiscard]] Error refused() const noexcept;
  [[nodiscard]] rt::AsyncEvent& event() noexcept { return event_; }  // of coroutines, which the node wakes

 private:
  const std::uint64_t instance_;
  mutable sync::StdMutex mutex_;
  MeshState mesh_ WEFT_GUARDED_BY(mutex_);
  Error refused_ WEFT_GUARDED_BY(mutex_);
  bool closed_ WEFT_GUARDED_BY(mutex_) = false;
  sync::Condition changed_;
  rt::AsyncEvent event_;
};

}  // namespace weft::topic
