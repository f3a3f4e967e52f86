// SPDX-License-Identifier: MIT
#include "weft/sys/event_fd.h"

#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>

#include "weft/sys/call.h"

namespace weft::sys {

Result<EventFd> EventFd::make() noexcept {
  return EventFd(Fd(WEFT_TRY(checked_call("eventfd", [] { return ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC); }))));
}

void EventFd::signal() noexcept {
  const std::uint64_t one = 1;
  // The only other refusal is a full counter, and then the descriptor is readable already.
  call([&] { return ::write(fd(), &one, sizeof one); });
}

void EventFd::drain() noexcept {
  std::uint64_t count = 0;
  call([&] { return ::read(fd(), &count, sizeof count); });  // EAGAIN: nothing to drain
}

Result<TimerFd> TimerFd::make() noexcept {
  return TimerFd(Fd(
      WEFT_TRY(checked_call("timerfd", [] { return ::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC); }))));
}

void TimerFd::set(Instant deadline) noexcept {
  itimerspec spec{};  // zero: no deadline
  if (deadline != kNever) {
    spec.it_value = to_timespec(std::max(deadline.time_since_epoch(), Duration(1)));
  }
  call([&] { return ::timerfd_settime(fd(), TFD_TIMER_ABSTIME, &spec, nullptr); });
}

}  // namespace weft::sys
