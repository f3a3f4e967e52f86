// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "weft/base/result.h"
#include "weft/base/time.h"
#include "weft/sys/fd.h"
#include "weft/sys/poller.h"

namespace weft::sys {

// EpollSet: an epoll descriptor and nothing else: no wake, no virtual call. Sockets wait with it on the
// caller's thread. Its descriptor is readable while any of its members is ready, so that another set can poll
// it.
// Affinity: any thread, as epoll is. Cost: one system call each, no allocation.
class EpollSet {
 public:
  static constexpr std::size_t kMaxEvents = 256;  // per wait

  [[nodiscard]] static Result<EpollSet> make() noexcept;

  [[nodiscard]] Result<void> add(int fd, std::uint64_t tag, Interest interest, bool edge = false) noexcept;
  [[nodiscard]] Result<void> modify(int fd, std::uint64_t tag, Interest interest, bool edge = false) noexcept;
  [[nodiscard]] Result<void> remove(int fd) noexcept;

  // As Poller::wait, but a signal is Errc::interrupted. Timeouts have nanoseconds where the kernel has epoll_pwait2
  // (5.11), otherwise they are rounded up to milliseconds. An empty `out` is invalid_argument.
  [[nodiscard]] Result<std::size_t> wait(std::span<PollEvent> out, Duration timeout) noexcept;
  // The same, as a cancellation point (call.h).
  [[nodiscard]] Result<std::size_t> wait_cancellably(std::span<PollEvent> out, Duration timeout);

  [[nodiscard]] int fd() const noexcept { return fd_.fd(); }

 private:
  template <typename Call>
  [[nodiscard]] Result<std::size_t> wait_by(Call call, std::span<PollEvent> out, Duration timeout);
  explicit EpollSet(Fd fd) noexcept : fd_(std::move(fd)) {}

  Fd fd_;
};

}  // namespace weft::sys
