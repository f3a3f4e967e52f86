// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "weft/sys/linux/uring.h"
#include "weft/sys/linux/waker.h"
#include "weft/sys/poller.h"

namespace weft::sys {

// make_poller() with another maker of the ring's poller. If that maker refuses, the result is epoll with the
// reason.
using MakePoller = Result<std::unique_ptr<Poller>> (*)();
[[nodiscard]] Result<MadePoller> make_poller(PollerKind kind, MakePoller make_uring);

#if defined(WEFT_HAVE_URING)

// UringPoller: Poller over one ring of io_uring and one eventfd. A watch is a poll request. An edge-triggered
// request stays with the kernel and completes again and again. A level-triggered request completes once; the
// next wait() makes a new one, in the same system call that waits.
// Affinity: Poller's. The first wait() makes its thread the owner for good.
// Cost: add() one system call, modify() none, remove() one if the kernel
// has a request, wait() one at most. A wait with timeout zero makes none when there is nothing to submit or
// to finish. 24 bytes per descriptor up to the highest one.
// Invariants: Poller's; and
// 1. A completion counts only for the request under way: each request has a generation.
// 2. After remove() the kernel holds no reference to the file, so that close() closes it.
// 3. A descriptor has at most one request under way that was not cancelled, which bounds the entries in the
//    ring.
class UringPoller final : public Poller {
 public:
  // Errors: as Uring::make().
  [[nodiscard]] static Result<std::unique_ptr<Poller>> make();
  [[nodiscard]] static Result<std::unique_ptr<Poller>> make_with(Uring::Shape shape, const UringCalls& calls);

  [[nodiscard]] Result<void> add(int fd, Interest interest, bool edge_triggered, std::uint64_t tag) override;
  [[nodiscard]] Result<void> modify(int fd, Interest interest, bool edge_triggered, std::uint64_t tag) override;
  [[nodiscard]] Result<void> remove(int fd) override;
  [[nodiscard]] Result<std::size_t> wait(std::span<PollEvent> out, Duration timeout) override;
  void wake() noexcept override { waker_.wake(); }

 private:
  struct Watch {
    std::uint64_t tag = 0;
    std::uint32_t generation = 0;  // of the watch's newest request
    std::uint16_t wanted = 0;      // bits of poll(2)
    bool live = false;
    bool edge = false;
    bool armed = false;  // the kernel has the newest request
    bool due = false;    // it is in due_
    bool quiet = false;  // level-triggered, and the kernel reports only conditions that the watch does not want
  };
  struct Taken {
    std::size_t completions = 0;
    std::size_t events = 0;
    bool woken = false;
  };

  UringPoller(Uring ring, Waker waker) noexcept : ring_(std::move(ring)), waker_(std::move(waker)) {}
  [[nodiscard]] Watch* find(int fd) noexcept;
  [[nodiscard]] Result<void> take_possession() noexcept;
  [[nodiscard]] Result<io_uring_sqe*> next_entry() noexcept;
  [[nodiscard]] Result<void> submit_poll(int fd, std::uint32_t bits, bool repeated, std::uint64_t id) noexcept;
  [[nodiscard]] Result<void> cancel(std::uint64_t id) noexcept;
  [[nodiscard]] Result<void> arm_due() noexcept;
  [[nodiscard]] Result<bool> enter(Duration timeout) noexcept;
  void make_due(int fd, Watch& watch) noexcept;
  void start_again() noexcept;
  [[nodiscard]] Taken take(std::span<PollEvent> out) noexcept;
  [[nodiscard]] bool take_one(const io_uring_cqe& completion, PollEvent& out) noexcept;

  Uring ring_;
  Waker waker_;
  std::uintptr_t owner_ = 0;
  bool waker_armed_ = false;
  std::vector<Watch> watches_;  // by descriptor
  std::vector<int> due_;        // descriptors that need a request; has room for all
};

#else

// The stand-in where the system's headers do not know io_uring.
class UringPoller {
 public:
  [[nodiscard]] static Result<std::unique_ptr<Poller>> make() {
    return Error(Errc::not_supported, "built without io_uring (headers older than Linux 6.1)");
  }
};

#endif

}  // namespace weft::sys
