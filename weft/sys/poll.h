// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <span>

#include "weft/base/result.h"
#include "weft/base/time.h"
#include "weft/sys/poller.h"
#include "weft/sys/signals.h"

namespace weft::sys {

struct PollFd {
  int fd = -1;  // negative: skipped
  Interest want = Interest::none;
  Interest got = Interest::none;
  bool failed = false;  // error, hang-up or not a descriptor
};

// Waits until one of `fds` is ready and returns the number of ready ones, 0 after the timeout. Negative timeout: for
// ever; zero: never waits. A signal ends the wait with Errc::interrupted. `mask`, if not null, is the thread's signal
// mask during the wait only. Level-triggered; any thread; allocates beyond 64 descriptors. A cancellation point
// (call.h), unless the timeout is zero.
[[nodiscard]] Result<std::size_t> poll_fds(std::span<PollFd> fds, Duration timeout, const SignalMask* mask = nullptr);

// Whether a write would take at least one byte, or would fail. Never waits.
[[nodiscard]] bool is_writable(int fd) noexcept;

}  // namespace weft::sys
