// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "weft/base/time.h"
#include "weft/msg/message/part.h"
#include "weft/sys/clock.h"
#include "weft/sys/socket.h"

namespace weft::msg {

// The end of a wait that begins now, in ticks: after kAwaitLongest, or at the call's deadline.
[[nodiscard]] inline std::uint64_t await_end(Instant deadline) noexcept {
  const Duration left = std::min(deadline - sys::now(), kAwaitLongest);
  return sys::ticks() + static_cast<std::uint64_t>(std::max(left, Duration::zero()) / std::chrono::microseconds(1)) *
                            sys::ticks_per_us();
}

// Turn: the input that one peer can make a thread take before the thread serves others. The I/O thread has a turn for
// each connection that it reads; a call of the application has one turn for all connections together.
// Owner: the reading thread, or the socket. Affinity: its user; the socket's has the receive lock. A turn of the I/O
// thread is a share of a whole one while many connections wait for theirs (net::ReadTurns).
// Cost: a subtraction for a frame that brings no message, and for a read from the kernel.
// Invariant: a turn that is spent loses nothing. The I/O thread resumes the connection after the others; the
// application's next call goes on, and a waiting thread is woken for it.
class Turn {
 public:
  static constexpr std::int32_t kFrames = 1024;       // that bring no message, or that the I/O thread queues
  static constexpr std::int64_t kBytes = 256 * 1024;  // read from the kernel; the last read may exceed it
  Turn() noexcept = default;
  template <typename ReadTurns>
  [[nodiscard]] static Turn share_of(const ReadTurns& turns) noexcept {
    Turn turn;
    turn.bytes_ = static_cast<std::int64_t>(turns.share_of(std::size_t{kBytes}));
    turn.frames_ = static_cast<std::int32_t>(turns.share_of(std::size_t{kFrames}));
    turn.read_max_ = static_cast<std::size_t>(turn.bytes_);
    return turn;
  }

  // `deadline`: the call may wait until then. Instant::min(): the call may not wait.
  void begin(Instant deadline) noexcept {
    *this = Turn();
    deadline_ = deadline;
  }
  void end_waiting() noexcept { deadline_ = Instant::min(); }

  void count_frame() noexcept { --frames_; }
  // A read that stopped early took a turn's work below it, however few bytes it gave: control frames of a WebSocket.
  void count_read(const sys::IoResult& read) noexcept {
    bytes_ -= read.cut ? kBytes : static_cast<std::int64_t>(read.bytes);
  }
  [[nodiscard]] bool may_decode() const noexcept { return frames_ > 0; }
  [[nodiscard]] bool may_read() const noexcept { return bytes_ > 0; }
  [[nodiscard]] bool spent() const noexcept { return !may_decode() || !may_read(); }
  [[nodiscard]] std::size_t read_max() const noexcept { return read_max_; }  // of one read, unless of a big frame
  // Once in a turn: the first connection that had to stop. It goes to the end of the line.
  [[nodiscard]] bool first_to_stop() noexcept {
    const bool first = !stopped_;
    stopped_ = true;
    return first;
  }

  [[nodiscard]] bool waits() const noexcept { return deadline_ != Instant::min(); }
  // Requires waits(). The end, in ticks, of the time with one big frame beyond the turn, beginning now.
  [[nodiscard]] std::uint64_t stay_end() const noexcept { return msg::await_end(deadline_); }

 private:
  std::int64_t bytes_ = kBytes;
  std::size_t read_max_ = static_cast<std::size_t>(kBytes);
  std::int32_t frames_ = kFrames;
  bool stopped_ = false;
  Instant deadline_ = Instant::min();
};

}  // namespace weft::msg
