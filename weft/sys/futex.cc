// SPDX-License-Identifier: MIT
#include "weft/sys/futex.h"

#include <linux/futex.h>
#include <sys/syscall.h>

#include "weft/sys/call.h"

namespace weft::sys {

static_assert(sizeof(std::atomic<std::uint32_t>) == 4 && std::atomic<std::uint32_t>::is_always_lock_free);

namespace {

// The kernel restarts a wait without a timeout after a handler with SA_RESTART, and never one with a timeout. So "for
// ever" is a timeout, whose end is a spurious wake-up.
constexpr Duration kForEver = std::chrono::hours(24 * 365);

FutexResult result_of(int os_errno, Duration timeout) noexcept {
  switch (os_errno) {
    case EAGAIN: return FutexResult::changed;
    case ETIMEDOUT: return timeout < Duration::zero() ? FutexResult::woken : FutexResult::timed_out;
    case EINTR: return FutexResult::interrupted;
    default: return FutexResult::woken;
  }
}

}  // namespace

FutexResult futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t expected, Duration timeout) noexcept {
  const timespec spec = to_timespec(timeout < Duration::zero() ? kForEver : timeout);
  const auto result = raw_call_once(SYS_futex, &word, FUTEX_WAIT_PRIVATE, expected, &spec, nullptr, 0);
  return result_of(result.os_errno, timeout);
}

FutexResult futex_wait_cancellably(std::atomic<std::uint32_t>& word, std::uint32_t expected, Duration timeout) {
  const timespec spec = to_timespec(timeout < Duration::zero() ? kForEver : timeout);
  const auto result = call_cancellably(SYS_futex, raw_argument(&word), FUTEX_WAIT_PRIVATE, static_cast<long>(expected),
                                       raw_argument(&spec), 0, 0);
  return result_of(result.os_errno, timeout);
}

void futex_wake(std::atomic<std::uint32_t>& word, int count) noexcept {
  (void)raw_call_once(SYS_futex, &word, FUTEX_WAKE_PRIVATE, count, nullptr, nullptr, 0);
}

}  // namespace weft::sys
