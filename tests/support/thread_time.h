// SPDX-License-Identifier: MIT
#pragma once

#include <time.h>

#include <chrono>

#include "weft/base/time.h"

namespace weft {

// The processor time of the calling thread. A test bounds this where other programs of the machine may take the
// processor at any time.
[[nodiscard]] inline Duration thread_time() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

}  // namespace weft
