// SPDX-License-Identifier: MIT
#pragma once

#include <future>
#include <memory>
#include <utility>

#include "weft/base/no_memory.h"
#include "weft/rt/core/runtime.h"

namespace weft::topic {

// Runs the function, which returns Result<void>, on the only core of a runtime, and waits for it. Errors: those of the
// function; closed (a forked child, which does not have the core's thread); resource_exhausted.
template <typename Function>
[[nodiscard]] Result<void> on_core(rt::Runtime& runtime, Function function) noexcept {
  return or_no_memory([&]() -> Result<void> {
    rt::Loop& loop = runtime.core(0).loop();
    if (loop.on_loop_thread()) {
      return function();
    }
    // The job owns the promise, too: it may still be in set_value() when this thread returns.
    const auto done = std::make_shared<std::promise<Result<void>>>();
    rt::Job job([done, &function] { done->set_value(or_no_memory(function)); });
    WEFT_TRY(loop.try_post(job));
    return done->get_future().get();
  });
}

}  // namespace weft::topic
