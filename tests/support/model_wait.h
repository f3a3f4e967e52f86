// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <cstdint>

#include "tests/support/model.h"
#include "weft/base/time.h"
#include "weft/sync/parker.h"

namespace weft::model {

// The machine's operations of a parker and of the types on top of it, in the model. A futex wakes but orders nothing.
struct Wait {
  using Where = model::Where;
  using Event = sync::BasicWakeList<model::Event, Mutex>;

  static void light_fence(Where where = Where::current()) { model::light_fence(where); }
  static void heavy_fence(Where where = Where::current()) { model::heavy_fence(where); }
  static void full_fence(Where where = Where::current()) { fence(std::memory_order_seq_cst, where); }
  static sys::FutexResult futex_wait(sync::Atomic<std::uint32_t>& word, std::uint32_t expected, Duration /*timeout*/) {
    return word.wait_while_equal(expected) ? sys::FutexResult::woken : sys::FutexResult::changed;
  }
  static void futex_wake(sync::Atomic<std::uint32_t>& word) { word.wake_all(); }
};

}  // namespace weft::model
