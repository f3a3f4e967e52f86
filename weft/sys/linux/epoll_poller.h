// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <memory>

#include "weft/sys/epoll_set.h"
#include "weft/sys/event_fd.h"
#include "weft/sys/poller.h"

namespace weft::sys {

// EpollPoller: Poller over one EpollSet and one eventfd.
// Affinity and invariants: Poller's. Cost: one system call per operation, none in a wake that finds one pending.
class EpollPoller final : public Poller {
 public:
  [[nodiscard]] static Result<std::unique_ptr<Poller>> make();

  [[nodiscard]] Result<void> add(int fd, Interest interest, bool edge_triggered, std::uint64_t token) override;
  [[nodiscard]] Result<void> modify(int fd, Interest interest, bool edge_triggered, std::uint64_t token) override;
  [[nodiscard]] Result<void> remove(int fd) override;
  [[nodiscard]] Result<std::size_t> wait(std::span<PollEvent> out, Duration timeout) override;
  void wake() noexcept override;
  [[nodiscard]] int fd() const noexcept override { return set_.fd(); }

 private:
  EpollPoller(EpollSet set, EventFd event) noexcept : set_(std::move(set)), event_(std::move(event)) {}

  EpollSet set_;
  EventFd event_;
  alignas(64) std::atomic<bool> wake_pending_{false};
};

}  // namespace weft::sys
