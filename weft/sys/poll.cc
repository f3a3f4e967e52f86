// SPDX-License-Identifier: MIT
#include "weft/sys/poll.h"

#include <poll.h>
#include <sys/syscall.h>

#include <iterator>
#include <vector>

#include "weft/sys/call.h"

namespace weft::sys {
namespace {

constexpr struct {
  Interest interest;
  short bit;
} kBits[] = {
    {Interest::readable, POLLIN},
    {Interest::writable, POLLOUT},
    {Interest::peer_closed, POLLRDHUP},
    {Interest::urgent, POLLPRI},
};

pollfd to_pollfd(const PollFd& from) noexcept {
  pollfd out{from.fd, 0, 0};
  for (const auto& [interest, bit] : kBits) {
    if (has(from.want, interest)) {
      out.events = static_cast<short>(out.events | bit);
    }
  }
  return out;
}

void take_answer(const pollfd& from, PollFd& into) noexcept {
  into.got = Interest::none;
  for (const auto& [interest, bit] : kBits) {
    if ((from.revents & bit) != 0) {
      into.got |= interest;
    }
  }
  into.failed = (from.revents & (POLLERR | POLLHUP | POLLNVAL)) != 0;
}

Result<std::size_t> wait(std::span<PollFd> fds, std::span<pollfd> polled, Duration timeout, const SignalMask* mask) {
  for (std::size_t i = 0; i < fds.size(); ++i) {
    polled[i] = to_pollfd(fds[i]);
  }
  const bool bounded = timeout >= Duration::zero();
  timespec spec = to_timespec(bounded ? timeout : Duration::zero());  // the kernel writes the rest of the time into it
  const auto ppoll = [&](auto call) {
    return call(SYS_ppoll, raw_argument(polled.data()), raw_argument(polled.size()), bounded ? raw_argument(&spec) : 0L,
                mask != nullptr ? raw_argument(mask->bytes.data()) : 0L, kSignalMaskBytes, 0L);
  };
  const auto result = timeout == Duration::zero() ? ppoll(kRawCallOnce) : ppoll(call_cancellably);
  if (result.failed()) {
    return make_error(result.os_errno, "ppoll");
  }
  for (std::size_t i = 0; i < fds.size(); ++i) {
    take_answer(polled[i], fds[i]);
  }
  return static_cast<std::size_t>(result.value);
}

}  // namespace

Result<std::size_t> poll_fds(std::span<PollFd> fds, Duration timeout, const SignalMask* mask) {
  pollfd few[64];
  if (fds.size() <= std::size(few)) {
    return wait(fds, std::span(few, fds.size()), timeout, mask);
  }
  std::vector<pollfd> many(fds.size());
  return wait(fds, many, timeout, mask);
}

bool is_writable(int fd) noexcept {
  pollfd polled{fd, POLLOUT, 0};
  return call_once([&] { return ::poll(&polled, 1, 0); }).value > 0;
}

}  // namespace weft::sys
