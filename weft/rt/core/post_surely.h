// SPDX-License-Identifier: MIT
#pragma once

#include <thread>

#include "weft/rt/core/runtime.h"

namespace weft::rt {

// Runs the function on that core, soon, and waits while the lane is full. When the runtime was stopped first, waits
// until its threads have ended and runs the function here: no core's thread is left to race with. Affinity: any
// thread.
template <typename Function>
void post_surely(Runtime& runtime, unsigned core, const Function& function) {
  for (;;) {
    const auto posted = runtime.post(core, function);
    if (posted) {
      return;
    }
    if (posted.error() == Errc::closed) {
      if (runtime.stop(kNever)) {
        function();
      }
      return;
    }
    std::this_thread::yield();  // the lane is full: that core is awake and works
  }
}

}  // namespace weft::rt
