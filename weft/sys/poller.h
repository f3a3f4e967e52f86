// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "weft/base/result.h"
#include "weft/base/time.h"

namespace weft::sys {

// The conditions of a descriptor that a poller reports. Errors and hang-ups are always reported.
enum class Interest : std::uint32_t {
  none = 0,
  readable = 1,
  writable = 2,
  peer_closed = 4,  // the peer shut its writing side down (EPOLLRDHUP)
  urgent = 8,       // exceptional condition (EPOLLPRI)
  // Of several pollers that watch the file so, an event ends the wait of one, where the system can do that
  // (EPOLLEXCLUSIVE); otherwise of all. With `readable` and `writable` only; without modify().
  one_of_many = 16,
};

[[nodiscard]] constexpr Interest operator|(Interest a, Interest b) noexcept {
  return static_cast<Interest>(static_cast<std::uint32_t>(a) | static_cast<std::uint32_t>(b));
}
[[nodiscard]] constexpr Interest operator&(Interest a, Interest b) noexcept {
  return static_cast<Interest>(static_cast<std::uint32_t>(a) & static_cast<std::uint32_t>(b));
}
constexpr Interest& operator|=(Interest& a, Interest b) noexcept { return a = a | b; }
[[nodiscard]] constexpr bool has(Interest set, Interest flag) noexcept { return (set & flag) != Interest::none; }

struct PollEvent {
  std::uint64_t tag = 0;
  bool readable = false;
  bool writable = false;
  bool failed = false;  // error or hang-up: a read or a write returns the reason
  bool peer_closed = false;
  bool urgent = false;
};

// Poller: the seam to the operating system's readiness interface. It belongs to one thread, the first that
// waits.
// Affinity: wake() any thread; everything else the owning thread. Once the owning thread has ended, any
// thread may call remove() and destroy the poller.
// Life: add -> any number of modify -> remove, before the descriptor is closed. A descriptor is added once.
// Invariants:
// 1. A wake() that returned before a wait() began, or during it, ends that wait or an earlier one that had
//    not returned yet.
// 2. Every write that came before the wake() that ended a wait is visible to the caller of that wait.
// 3. A failed call changes nothing.
// 4. After remove() returns no later wait() reports that descriptor.
class Poller {
 public:
  static constexpr std::uint64_t kReservedTag = ~std::uint64_t{0};  // not for callers

  virtual ~Poller() = default;

  [[nodiscard]] virtual Result<void> add(int fd, Interest interest, bool edge_triggered, std::uint64_t tag) = 0;
  [[nodiscard]] virtual Result<void> modify(int fd, Interest interest, bool edge_triggered, std::uint64_t tag) = 0;
  [[nodiscard]] virtual Result<void> remove(int fd) = 0;

  // Fills `out` from its start and returns the number of events. Negative timeout: for ever; zero: never
  // waits. Otherwise the wait never returns early without a cause. 0 events: timeout, wake() or a signal.
  [[nodiscard]] virtual Result<std::size_t> wait(std::span<PollEvent> out, Duration timeout) = 0;

  virtual void wake() noexcept = 0;  // several wakes between two waits cost one system call together
};

// The interface of the system that a poller uses.
enum class PollerKind : std::uint8_t {
  automatic,  // WEFT_POLLER in the environment chooses, "epoll" or "io_uring"; without it epoll
  epoll,
  io_uring,  // where the system permits io_uring, otherwise epoll
};
[[nodiscard]] const char* describe(PollerKind kind) noexcept;  // "io_uring"

struct PollerChoice {
  PollerKind kind = PollerKind::epoll;  // never automatic
  Error refusal;                        // the reason why a requested io_uring is not used, otherwise ok
};

struct MadePoller {
  std::unique_ptr<Poller> poller;
  PollerChoice choice;
};

[[nodiscard]] Result<MadePoller> make_poller(PollerKind kind = PollerKind::automatic);

}  // namespace weft::sys
