// SPDX-License-Identifier: MIT
#pragma once

#include "weft/base/result.h"
#include "weft/base/time.h"
#include "weft/sys/fd.h"

namespace weft::sys {

// EventFd: a descriptor that one thread makes readable to wake another.
// Affinity: any thread. Cost: one system call each. Several signals between two drains count as one.
class EventFd {
 public:
  [[nodiscard]] static Result<EventFd> make() noexcept;

  void signal() noexcept;  // readable from now on
  void drain() noexcept;   // not readable until the next signal
  [[nodiscard]] int fd() const noexcept { return fd_.fd(); }

 private:
  explicit EventFd(Fd fd) noexcept : fd_(std::move(fd)) {}

  Fd fd_;
};

// TimerFd: a descriptor that becomes readable at a time, for a place that has descriptors and no timers of its own.
// Affinity: any thread. Cost: one system call each.
class TimerFd {
 public:
  [[nodiscard]] static Result<TimerFd> make() noexcept;

  // Readable from `deadline` on, and not before; kNever: not at all. In place of any earlier deadline.
  void set(Instant deadline) noexcept;
  [[nodiscard]] int fd() const noexcept { return fd_.fd(); }

 private:
  explicit TimerFd(Fd fd) noexcept : fd_(std::move(fd)) {}

  Fd fd_;
};

}  // namespace weft::sys
