// SPDX-License-Identifier: MIT
#pragma once

#include <time.h>

#include "weft/base/time.h"

namespace weft::sys {

// Converts a Duration, which is not negative, to a timespec.
[[nodiscard]] inline timespec to_timespec(Duration duration) noexcept {
  constexpr Duration::rep kNanosecondsPerSecond = 1'000'000'000;
  timespec spec{};
  spec.tv_sec = static_cast<time_t>(duration.count() / kNanosecondsPerSecond);
  spec.tv_nsec = static_cast<decltype(spec.tv_nsec)>(duration.count() % kNanosecondsPerSecond);
  return spec;
}

}  // namespace weft::sys
