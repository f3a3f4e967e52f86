// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <utility>

#include "weft/base/result.h"
#include "weft/sys/event_fd.h"

namespace weft::sys {

// Waker: how other threads end a poller's wait: an eventfd, signalled once until the poller has taken it. It is watched
// edge-triggered and never read: each signal is one event.
// Owner: a poller. Affinity: wake() any thread, take() the thread that polls. Cost: a wake that finds one pending makes
// no system call. Invariant: a wake() after take() signals anew.
class Waker {
 public:
  [[nodiscard]] static Result<Waker> make() noexcept { return Waker(WEFT_TRY(EventFd::make())); }
  Waker(Waker&& other) noexcept : event_(std::move(other.event_)) {}  // before it is shared

  void wake() noexcept {
    // Releases the caller's writes to the exchange in take(), also when an earlier wake is still on its way.
    if (!pending_.exchange(true, std::memory_order_acq_rel)) {
      event_.signal();
    }
  }
  // After an event: whether there was a wake. Acquires what every coalesced wake() released.
  bool take() noexcept { return pending_.exchange(false, std::memory_order_acq_rel); }
  [[nodiscard]] int fd() const noexcept { return event_.fd(); }

 private:
  explicit Waker(EventFd event) noexcept : event_(std::move(event)) {}

  EventFd event_;
  alignas(64) std::atomic<bool> pending_{false};
};

}  // namespace weft::sys
