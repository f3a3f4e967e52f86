// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "weft/base/result.h"
#include "weft/sync/lock.h"
#include "weft/sys/event_fd.h"
#include "weft/topic/gate/outbox.h"

namespace weft::topic {

inline constexpr Error kGateClosed(Errc::closed, "the handle of topics was closed");
inline constexpr Error kGateFull(Errc::would_block, "the fleet's server does not read");

// GateQueue: the operations on their way to a gate's core, and the threads that wait for room among them.
// Owner: a gate. Affinity: any thread appends; the gate's core takes them in batches, and sends a batch before it takes
// the next one. Cost: append() is a lock and a copy; take_batch() a lock and a swap for each batch.
// Invariants: 1. An operation leaves the queue in its order, once. 2. After end() none enters.
class GateQueue {
 public:
  struct Counts {
    std::uint64_t published = 0;     // messages, requests and control messages
    std::uint64_t dropped_full = 0;  // of them
    std::uint64_t queued = 0;        // with those of the batch
  };

  explicit GateQueue(std::size_t outage_bytes_max) noexcept : bytes_max_(std::max(outage_bytes_max, kBytesMin)) {}

  // --- any thread ---
  [[nodiscard]] std::size_t bytes_max() const noexcept { return bytes_max_; }
  // Returns whether the core has to be woken for take_batch(); a caller that cannot calls not_woken(). Errors: closed;
  // would_block (`bytes_max` bytes wait). Throws std::bad_alloc.
  [[nodiscard]] Result<bool> append(const Outbox::Operation& operation, std::size_t bytes_max);
  void not_woken() noexcept;                  // the next append() wakes
  [[nodiscard]] bool expect_room() noexcept;  // if there is none, wake_waiters() returns true
  void count_full() noexcept;                 // a message found no room
  // Signals the event when there may be room, until remove_waiter(). Throws std::bad_alloc.
  void add_waiter(sys::EventFd& event);
  void remove_waiter(sys::EventFd& event) noexcept;
  [[nodiscard]] Counts counts() const noexcept;
  void end() noexcept;

  // --- the core ---
  void take_batch() noexcept;  // unless the last one has operations
  [[nodiscard]] bool batch_is_empty() const noexcept { return batch_.empty(); }
  [[nodiscard]] Outbox::Operation front() const noexcept { return batch_.front(); }  // of the batch, which is not empty
  void pop() noexcept;
  // Returns whether a caller waits for room, be it with an event or not.
  [[nodiscard]] bool wake_waiters() noexcept;

 private:
  // No message is dropped because the core has not run for a moment.
  static constexpr std::size_t kBytesMin = std::size_t{1} << 20;

  const std::size_t bytes_max_;
  mutable sync::StdMutex mutex_;
  Outbox waiting_ WEFT_GUARDED_BY(mutex_);
  bool woken_ WEFT_GUARDED_BY(mutex_) = false;  // take_batch() will come
  bool ended_ WEFT_GUARDED_BY(mutex_) = false;
  std::uint64_t published_ WEFT_GUARDED_BY(mutex_) = 0;
  std::uint64_t dropped_full_ WEFT_GUARDED_BY(mutex_) = 0;
  std::vector<sys::EventFd*> waiters_ WEFT_GUARDED_BY(mutex_);
  bool room_expected_ WEFT_GUARDED_BY(mutex_) = false;
  // The core's.
  Outbox batch_;
  std::atomic<std::size_t> batch_count_{0};  // of its operations, for counts() of any thread
};

}  // namespace weft::topic
