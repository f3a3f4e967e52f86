// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "weft/base/list.h"
#include "weft/base/result.h"
#include "weft/msg/connection/input_source.h"
#include "weft/msg/connection/socket_share.h"
#include "weft/sys/epoll_set.h"
#include "weft/sys/event_fd.h"

namespace weft::msg {

// InputSet: which pipes of a socket may have input: those that a producer signalled, and those whose descriptor is
// readable. A FairQueue of the pattern then takes from them in turn.
// One of the threads that wait for input is the leader: it waits for the descriptors, without the lock. An event
// descriptor among them wakes it. The other threads park.
// Owner: a socket. Affinity: its receive lock. The objects of leader_set() and leader_event() need no lock.
// Cost: without signals one relaxed load. A socket of one descriptor reads it without a query.
// Invariants:
//   1. A source is in the set from add() to remove(). An event for a removed source names no other source: the next
//      source in its place has another generation.
//   2. At most one thread leads.
//   3. remove() needs no memory: every place has room in the list of free places.
class InputSet {
 public:
  explicit InputSet(SocketShare& share) noexcept : share_(share) {}
  InputSet(const InputSet&) = delete;
  InputSet& operator=(const InputSet&) = delete;

  // --- signals ---
  [[nodiscard]] bool has_signals() const noexcept { return share_.signals.load(std::memory_order_relaxed) != nullptr; }
  // Calls `activate` for each pipe that was signalled since the last call.
  template <typename Activate>
  void take_signals(Activate activate) noexcept {
    if (!has_signals()) [[likely]] {
      return;
    }
    PipeShare* signal = share_.signals.exchange(nullptr, std::memory_order_acquire);
    while (signal != nullptr) {
      PipeShare& pipe = *signal;
      signal = pipe.next_signal.load(std::memory_order_relaxed);
      // Clear the flag before the pattern reads the pipe: input that comes later signals again.
      (void)pipe.signalled.exchange(false, std::memory_order_acq_rel);
      activate(pipe);
    }
  }

  // --- descriptors ---
  // Makes the descriptors of the set itself; idempotent. After a failure there are none.
  [[nodiscard]] Result<void> open() noexcept;
  [[nodiscard]] bool is_open() const noexcept { return epoll_.has_value(); }
  // `fd` stays open until remove(). Opens the set. After a failure the source is not in the set. Errors: those of the
  // kernel; resource_exhausted.
  [[nodiscard]] Result<void> add(InputSource& source, int fd) noexcept;
  void remove(InputSource& source, int fd) noexcept;  // idempotent
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  // Readable while any source, or the leader's event, is. Requires is_open().
  [[nodiscard]] int fd() const noexcept { return epoll_->fd(); }
  // Calls `readable` for each source that an event of the kernel names.
  template <typename Readable>
  void take_events(std::span<const sys::PollEvent> events, Readable readable) noexcept {
    for (const sys::PollEvent& event : events) {
      if (InputSource* const source = find(event.tag); source != nullptr) {
        readable(*source);
      }
    }
  }
  // Asks the kernel which sources are readable, without waiting. The only source of a set is taken for readable: its
  // read is the query, which saves a system call. Returns false if there is none.
  template <typename Readable>
  [[nodiscard]] bool poll(Readable readable) noexcept {
    if (size_ == 0) {
      return false;
    }
    if (size_ == 1) {
      readable(sources_.front());
      return true;
    }
    std::array<sys::PollEvent, 64> events;
    const auto count = epoll_->wait(events, Duration::zero());
    if (!count || *count == 0) {
      return false;
    }
    take_events(std::span(events).first(*count), readable);
    return true;
  }

  // --- the leader ---
  // Returns false if another thread leads, or if there is no source.
  [[nodiscard]] bool try_lead() noexcept {
    if (has_leader_ || size_ == 0) {
      return false;
    }
    return has_leader_ = true;
  }
  void end_lead() noexcept { has_leader_ = false; }
  // For the leader. They stay where they are until the set ends.
  [[nodiscard]] sys::EpollSet& leader_set() noexcept { return *epoll_; }
  [[nodiscard]] sys::EventFd& leader_event() noexcept { return *event_; }

 private:
  struct Place {
    InputSource* source = nullptr;
    std::uint32_t generation = 1;
  };
  [[nodiscard]] bool add_place() noexcept;
  // Returns null if `tag` is the event's, or of a source that was removed.
  [[nodiscard]] InputSource* find(std::uint64_t tag) const noexcept {
    const Place* const place = tag == 0 ? nullptr : &places_[static_cast<std::uint32_t>(tag)];
    return place == nullptr || place->generation != tag >> 32 ? nullptr : place->source;
  }

  SocketShare& share_;
  std::optional<sys::EpollSet> epoll_;
  std::optional<sys::EventFd> event_;  // wakes the leader
  std::vector<Place> places_;
  std::vector<std::uint32_t> free_places_;
  List<InputSource> sources_;
  std::size_t size_ = 0;
  bool has_leader_ = false;
};

}  // namespace weft::msg
