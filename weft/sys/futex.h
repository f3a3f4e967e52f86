// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <cstdint>

#include "weft/base/time.h"

namespace weft::sys {

enum class FutexResult : std::uint8_t {
  woken,    // by futex_wake, or spuriously: read the word again
  changed,  // the word was not `expected`
  timed_out,
  interrupted,  // by a signal
};

// Process-private futexes. Any thread; one system call each. Negative timeout: for ever. A handler that was installed
// with SA_RESTART ends the wait, too.
FutexResult futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t expected, Duration timeout) noexcept;
// The same, as a cancellation point (call.h).
FutexResult futex_wait_cancellably(std::atomic<std::uint32_t>& word, std::uint32_t expected, Duration timeout);
void futex_wake(std::atomic<std::uint32_t>& word, int count) noexcept;

}  // namespace weft::sys
