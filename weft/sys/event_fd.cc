// SPDX-License-Identifier: MIT
#include "weft/sys/event_fd.h"

#include <sys/eventfd.h>
#include <unistd.h>

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

}  // namespace weft::sys
