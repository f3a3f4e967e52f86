// SPDX-License-Identifier: MIT
#include "weft/sys/futex.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "weft/sys/call.h"

namespace weft::sys {

static_assert(sizeof(std::atomic<std::uint32_t>) == 4 && std::atomic<std::uint32_t>::is_always_lock_free);

FutexResult futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t expected, Duration timeout) noexcept {
  const bool bounded = timeout >= Duration::zero();
  const timespec spec = to_timespec(bounded ? timeout : Duration::zero());
  const auto result = call_once(
      [&] { return ::syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, expected, bounded ? &spec : nullptr, nullptr, 0); });
  switch (result.os_errno) {
    case EAGAIN: return FutexResult::changed;
    case ETIMEDOUT: return FutexResult::timed_out;
    case EINTR: return FutexResult::interrupted;
    default: return FutexResult::woken;
  }
}

void futex_wake(std::atomic<std::uint32_t>& word, int count) noexcept {
  call_once([&] { return ::syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, count, nullptr, nullptr, 0); });
}

}  // namespace weft::sys
