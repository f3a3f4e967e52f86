// SPDX-License-Identifier: MIT
#pragma once

#include <thread>

#include "weft/rt/core/runtime.h"

namespace weft::rt {

// Runs the function on that core, soon, whatever is in its lane; here, when the runtime was stopped first, and once it
// has ended: then there is nobody left to disturb. Affinity: any thread; it waits while the lane is full.
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
    std::this_thread::yield();  // the lane is full: that core works
  }
}

}  // namespace weft::rt
