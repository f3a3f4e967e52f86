// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <span>

#include "weft/base/result.h"
#include "weft/base/time.h"
#include "weft/msg/socket.h"
#include "weft/sys/signals.h"

namespace weft {

// PollItem: a socket, or a file descriptor if `socket` is null, and the conditions to wait for.
struct PollItem {
  Socket* socket = nullptr;
  int fd = -1;
  bool want_input = false;
  bool want_output = false;
  bool want_urgent = false;  // descriptors only: the exceptional condition of poll(2), POLLPRI

  bool input = false;   // result
  bool output = false;  // result
  bool urgent = false;  // result, descriptors only
  bool failed = false;  // result, descriptors only: an error or a hang-up
};

// Waits until at least one item is ready and returns the number of ready items; 0 after `timeout`. A negative timeout
// waits for ever, zero never. A closed socket counts as ready: its next call returns the reason. While the thread
// sleeps, and only then, its signal mask is `mask`, unless that is null. With a mask the call does not spin, and a
// pending signal that `mask` permits comes before a ready item. Errors: interrupted; resource_exhausted.
Result<std::size_t> poll(std::span<PollItem> items, Duration timeout, const sys::SignalMask* mask = nullptr);

}  // namespace weft
