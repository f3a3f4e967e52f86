// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

// injected_delay(): nothing. `./dev bench slowdowns` makes a build with WEFT_INJECTED_DELAY. There it takes the number
// of steps that stands after the marker in a copy of the built file, and the gate has to find that slowdown.
namespace weft {

#ifdef WEFT_INJECTED_DELAY

struct InjectedDelay {
  char marker[16];
  volatile std::uint32_t steps;
};
inline InjectedDelay injected_delay_steps{{"weft-delay-here"}, 1};  // no step: zeros would have no place in the file

inline void injected_delay() noexcept {
  for (std::uint32_t left = injected_delay_steps.steps; left > 1; --left) {
    asm volatile("" : "+r"(left));
  }
}

#else

inline void injected_delay() noexcept {}

#endif

}  // namespace weft
