// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <cstdint>

#include "weft/serve/session/session_limits.h"
#include "weft/sync/lock.h"

namespace weft::serve {

// LiveLimits: the limits of a listener's next sessions, which may change while it listens. Sessions keep the limits
// that they began with. The listener's first handlers_max stays: it depends on the codec.
// Owner: shared by ListenerOptions and the part of the program that changes them. Affinity: any thread.
// Cost: a load for each connection; for each core a lock and an allocation after a change.
class LiveLimits {
 public:
  void set(const SessionLimits& limits) noexcept {
    const sync::LockGuard lock(mutex_);
    limits_ = limits;
    version_.store(version_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }

  // Whether set() was called after take() returned this version; 0 for the first one.
  [[nodiscard]] bool newer_than(std::uint64_t version) const noexcept {
    return version_.load(std::memory_order_relaxed) != version;
  }
  // Returns the version, and its limits.
  std::uint64_t take(SessionLimits& into) const noexcept {
    const sync::LockGuard lock(mutex_);
    into = limits_;
    return version_.load(std::memory_order_relaxed);
  }

 private:
  mutable sync::StdMutex mutex_;
  SessionLimits limits_ WEFT_GUARDED_BY(mutex_);
  std::atomic<std::uint64_t> version_{0};  // written under mutex_. Relaxed: the lock orders the limits
};

}  // namespace weft::serve
