// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "weft/msg/message/message_drops.h"
#include "weft/msg/message/statistics.h"
#include "weft/msg/pattern/pipe.h"

namespace weft::msg {

// EndedPipes: the pipes whose other end has gone, while the application can still receive their messages; and the
// counts of all pipes that the socket has forgotten.
// Owner: a socket. Affinity: its receive lock. Pipe::Notes::ended_index and unread are this object's.
// Cost: an attempt to receive checks at most 64 pipes, whatever their number.
// Invariants:
//   1. add() needs no memory: reserve() came before the pipe began.
//   2. `unread` is the sum over the pipes of about the memory that each holds.
class EndedPipes {
 public:
  // Bytes that ended connections hold and that the application has not received. Beyond this the socket closes each
  // connection that it accepts, before the handshake: the peer keeps its messages and comes again.
  static constexpr std::uint64_t kUnreadEndedMax = std::uint64_t{256} << 20;
  static constexpr std::uint64_t kUnreadEndedEach = 8 * 1024;  // the count of a connection itself
  static constexpr std::size_t kChecksAtOnce = 64;

  // `unread`: written here; a thread that accepts reads it as a hint, without the lock.
  explicit EndedPipes(std::atomic<std::uint64_t>& unread) noexcept : unread_(unread) {}
  EndedPipes(const EndedPipes&) = delete;
  EndedPipes& operator=(const EndedPipes&) = delete;

  // `pipes`: those of the socket, with the one that begins. Throws std::bad_alloc.
  void reserve(std::size_t pipes) {
    if (ended_.capacity() < pipes) {
      ended_.reserve(2 * pipes);
    }
  }
  void add(Pipe& pipe) noexcept;
  void remove(Pipe& pipe) noexcept;  // was added, and not removed since
  [[nodiscard]] bool empty() const noexcept { return ended_.empty(); }
  [[nodiscard]] std::size_t size() const noexcept { return ended_.size(); }

  // Removes each pipe for which `has_input` is false, and passes it to `forget`. Each call checks at most kChecksAtOnce
  // of them in turn, the newest first.
  template <typename HasInput, typename Forget>
  void sort_out(HasInput has_input, Forget forget) noexcept {
    for (std::size_t checks = std::min(ended_.size(), kChecksAtOnce); checks > 0 && !ended_.empty(); --checks) {
      next_ = next_ < ended_.size() ? next_ : 0;
      Pipe& pipe = *ended_[next_];
      if (has_input(pipe)) {
        ++next_;
        count_unread(pipe);
        continue;
      }
      remove(pipe);
      forget(pipe);
    }
  }
  // Removes all pipes, and passes each of them to `forget`.
  template <typename Forget>
  void remove_all(Forget forget) noexcept {
    for (Pipe* const pipe : ended_) {
      forget(*pipe);
    }
    ended_.clear();
    unread_.store(0, std::memory_order_relaxed);
  }

  // --- the counts of forgotten pipes ---
  // The pipe is about to go. The messages that wait in it are lost. Those of an inproc pipe that no peer has joined may
  // still be taken.
  void remember(const Pipe& pipe) noexcept;
  void remember(const MessageDrops& drops) noexcept { add_drops(gone_, drops); }  // of a pattern that goes
  [[nodiscard]] const Statistics& gone() const noexcept { return gone_; }

 private:
  void count_unread(Pipe& pipe) noexcept;
  void set_unread(Pipe& pipe, std::uint64_t bytes) noexcept;

  std::vector<Pipe*> ended_;  // each has its place
  std::size_t next_ = 0;      // the place that sort_out() checks next
  std::atomic<std::uint64_t>& unread_;
  Statistics gone_;
};

}  // namespace weft::msg
