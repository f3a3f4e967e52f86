// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <utility>

#include "weft/base/result.h"
#include "weft/sys/event_fd.h"

namespace weft::sys {

// Waker: ends a poller's wait from another thread. It is an eventfd, signalled once until the poller has
// taken the signal. The poller watches it edge-triggered and never reads it: each signal is one event.
// Owner: a poller. Affinity: wake() any thread, take() the thread that polls. Cost: a wake() while another is
// pending makes no system call.
// Invariant: a wake() after take() signals anew.
class Waker {
 public:
  [[nodiscard]] static Result<Waker> make() noexcept { return Waker(WEFT_TRY(EventFd::make())); }
  Waker(Waker&& other) noexcept : event_(std::move(other.event_)) {}  // before it is shared

  void wake() noexcept {
    // Releases the caller's writes to the exchange in take(), even if an earlier wake is still pending.
    if (!pending_.exchange(true, std::memory_order_acq_rel)) {
      event_.signal();
    }
  }
  // Called after an event: whether there was a wake. Acquires the writes that every coalesced wake()
  // released.
  bool take() noexcept { return pending_.exchange(false, std::memory_order_acq_rel); }
  [[nodiscard]] int fd() const noexcept { return event_.fd(); }

 private:
  explicit Waker(EventFd event) noexcept : event_(std::move(event)) {}

  EventFd event_;
  alignas(64) std::atomic<bool> pending_{false};
};

}  // namespace weft::sys
