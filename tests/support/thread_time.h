// SPDX-License-Identifier: MIT
#pragma once

#include <time.h>

#include <algorithm>
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

// The shortest of some times that `measure` returns, asked until one is below `bound`: a machine that does much besides
// makes some long, also in processor time.
template <typename Measure>
[[nodiscard]] Duration shortest_time(Duration bound, const Measure& measure) {
  Duration shortest = measure();
  for (int i = 0; i < 5 && shortest >= bound; ++i) {
    shortest = std::min(shortest, measure());
  }
  return shortest;
}

}  // namespace weft
