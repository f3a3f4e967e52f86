// SPDX-License-Identifier: MIT
#include "weft/sys/epoll_set.h"

#include <sys/epoll.h>
#include <sys/syscall.h>

#include <algorithm>
#include <atomic>
#include <climits>

#include "weft/sys/call.h"

namespace weft::sys {
namespace {

std::uint32_t epoll_bits(Interest interest, bool edge) noexcept {
  std::uint32_t bits = edge ? static_cast<std::uint32_t>(EPOLLET) : 0u;
  bits |= has(interest, Interest::readable) ? static_cast<std::uint32_t>(EPOLLIN) : 0u;
  bits |= has(interest, Interest::writable) ? static_cast<std::uint32_t>(EPOLLOUT) : 0u;
  bits |= has(interest, Interest::peer_closed) ? static_cast<std::uint32_t>(EPOLLRDHUP) : 0u;
  bits |= has(interest, Interest::urgent) ? static_cast<std::uint32_t>(EPOLLPRI) : 0u;
  bits |= has(interest, Interest::one_of_many) ? static_cast<std::uint32_t>(EPOLLEXCLUSIVE) : 0u;
  return bits;
}

PollEvent to_poll_event(const epoll_event& event) noexcept {
  PollEvent out;
  out.tag = event.data.u64;
  out.readable = (event.events & EPOLLIN) != 0;
  out.writable = (event.events & EPOLLOUT) != 0;
  out.failed = (event.events & (EPOLLERR | EPOLLHUP)) != 0;
  out.peer_closed = (event.events & EPOLLRDHUP) != 0;
  out.urgent = (event.events & EPOLLPRI) != 0;
  return out;
}

Result<void> control(int set, int operation, int fd, std::uint64_t tag, std::uint32_t bits, StaticText what) noexcept {
  epoll_event event{};
  event.events = bits;
  event.data.u64 = tag;
  WEFT_TRY(checked_call(what, [&] { return ::epoll_ctl(set, operation, fd, &event); }));
  return {};
}

int round_up_to_milliseconds(Duration timeout) noexcept {
  const auto milliseconds = timeout.count() / 1'000'000 + (timeout.count() % 1'000'000 != 0 ? 1 : 0);
  return static_cast<int>(std::min<Duration::rep>(milliseconds, INT_MAX));
}

#if defined(SYS_epoll_pwait2)
// Old kernels, sandboxes and emulators lack the call. The process tries it once and then remembers. Relaxed:
// a thread that misses the note only tries again.
std::atomic<bool> nanosecond_wait_missing{false};
#endif

template <typename Call>
SyscallResult<long> wait_precisely(Call call, int set, epoll_event* events, int capacity, Duration timeout) {
#if defined(SYS_epoll_pwait2)
  if (!nanosecond_wait_missing.load(std::memory_order_relaxed)) {
    const timespec spec = to_timespec(timeout);
    const auto result =
        call(SYS_epoll_pwait2, set, raw_argument(events), capacity, raw_argument(&spec), 0L, kSignalMaskBytes);
    if (result.os_errno != ENOSYS && result.os_errno != EPERM) {
      return result;
    }
    nanosecond_wait_missing.store(true, std::memory_order_relaxed);
  }
#endif
  return call(SYS_epoll_pwait, set, raw_argument(events), capacity, round_up_to_milliseconds(timeout), 0L,
              kSignalMaskBytes);
}

}  // namespace

Result<EpollSet> EpollSet::make() noexcept {
  return EpollSet(Fd(WEFT_TRY(checked_call("epoll_create", [] { return ::epoll_create1(EPOLL_CLOEXEC); }))));
}

Result<void> EpollSet::add(int member, std::uint64_t tag, Interest interest, bool edge) noexcept {
  return control(fd(), EPOLL_CTL_ADD, member, tag, epoll_bits(interest, edge), "add to poller");
}

Result<void> EpollSet::modify(int member, std::uint64_t tag, Interest interest, bool edge) noexcept {
  return control(fd(), EPOLL_CTL_MOD, member, tag, epoll_bits(interest, edge), "modify in poller");
}

Result<void> EpollSet::remove(int member) noexcept {
  return control(fd(), EPOLL_CTL_DEL, member, 0, 0, "remove from poller");
}

template <typename Call>
Result<std::size_t> EpollSet::wait_by(Call call, std::span<PollEvent> out, Duration timeout) {
  epoll_event events[kMaxEvents];
  const int capacity = static_cast<int>(std::min(out.size(), kMaxEvents));
  SyscallResult<long> result{};
  if (timeout > Duration::zero()) {
    result = wait_precisely(call, fd(), events, capacity, timeout);
  } else {
    const long milliseconds = timeout < Duration::zero() ? -1 : 0;
    result = call(SYS_epoll_pwait, fd(), raw_argument(events), capacity, milliseconds, 0L, kSignalMaskBytes);
  }
  if (result.failed()) {
    return make_error(result.os_errno, "epoll_wait");
  }
  const auto count = static_cast<std::size_t>(result.value);
  std::transform(events, events + count, out.begin(), to_poll_event);
  return count;
}

Result<std::size_t> EpollSet::wait(std::span<PollEvent> out, Duration timeout) noexcept {
  return wait_by(kRawCallOnce, out, timeout);
}

Result<std::size_t> EpollSet::wait_cancellably(std::span<PollEvent> out, Duration timeout) {
  return wait_by(call_cancellably, out, timeout);
}

}  // namespace weft::sys
