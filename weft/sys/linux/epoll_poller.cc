// SPDX-License-Identifier: MIT
#include "weft/sys/linux/epoll_poller.h"

#include <utility>

namespace weft::sys {

Result<std::unique_ptr<Poller>> EpollPoller::make() {
  EpollSet set = WEFT_TRY(EpollSet::make());
  Waker waker = WEFT_TRY(Waker::make());
  WEFT_TRY(set.add(waker.fd(), kReservedTag, Interest::readable, true));
  return std::unique_ptr<Poller>(new EpollPoller(std::move(set), std::move(waker)));
}

Result<void> EpollPoller::add(int member, Interest interest, bool edge_triggered, std::uint64_t tag) {
  if (tag == kReservedTag) {
    return Error(Errc::invalid_argument, "reserved poller tag");
  }
  return set_.add(member, tag, interest, edge_triggered);
}

Result<void> EpollPoller::modify(int member, Interest interest, bool edge_triggered, std::uint64_t tag) {
  if (tag == kReservedTag) {
    return Error(Errc::invalid_argument, "reserved poller tag");
  }
  return set_.modify(member, tag, interest, edge_triggered);
}

Result<void> EpollPoller::remove(int member) { return set_.remove(member); }

Result<std::size_t> EpollPoller::wait(std::span<PollEvent> out, Duration timeout) {
  const auto result = set_.wait(out, timeout);
  if (!result) {
    if (result.error() == Errc::interrupted) {
      return std::size_t{0};
    }
    return result.error();
  }
  std::size_t count = *result;
  for (std::size_t i = 0; i < count; ++i) {
    if (out[i].tag == kReservedTag) {
      waker_.take();
      out[i] = out[--count];
      break;
    }
  }
  return count;
}

}  // namespace weft::sys
