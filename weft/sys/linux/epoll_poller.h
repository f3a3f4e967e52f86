// SPDX-License-Identifier: MIT
#pragma once

#include <memory>

#include "weft/sys/epoll_set.h"
#include "weft/sys/linux/waker.h"
#include "weft/sys/poller.h"

namespace weft::sys {

// EpollPoller: Poller over one EpollSet and one eventfd.
// Affinity and invariants: Poller's. Cost: one system call per operation; none for a wake() while another is
// pending.
class EpollPoller final : public Poller {
 public:
  [[nodiscard]] static Result<std::unique_ptr<Poller>> make();

  [[nodiscard]] Result<void> add(int fd, Interest interest, bool edge_triggered, std::uint64_t tag) override;
  [[nodiscard]] Result<void> modify(int fd, Interest interest, bool edge_triggered, std::uint64_t tag) override;
  [[nodiscard]] Result<void> remove(int fd) override;
  [[nodiscard]] Result<std::size_t> wait(std::span<PollEvent> out, Duration timeout) override;
  void wake() noexcept override { waker_.wake(); }

 private:
  EpollPoller(EpollSet set, Waker waker) noexcept : set_(std::move(set)), waker_(std::move(waker)) {}

  EpollSet set_;
  Waker waker_;
};

}  // namespace weft::sys
