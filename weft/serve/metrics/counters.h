// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "weft/sync/atomic.h"
#include "weft/sync/counter.h"

namespace weft::serve {

// Why a session ended. Each has its own count.
enum class CloseReason : std::uint8_t {
  peer_closed,        // the peer ended the stream, between two frames
  peer_failed,        // reset, or ended inside a frame
  refused_frame,      // the codec refuses the peer's bytes: version, size, syntax
  refused_tls,        // the peer's TLS: its version, its certificate, records that are none, or it refused ours
  handshake_timeout,  // no whole frame since it was accepted
  idle_timeout,       // nothing came, and nothing could be sent
  slow_consumer,      // it does not read what is sent to it, and the policy says that it goes
  close_timeout,      // what was queued at close() could not be delivered in time
  out_of_memory,      // the byte budget or the memory is spent
  service,            // the service closed or aborted it
  service_failed,     // the service threw
  server_stopped,     // drained, or aborted when the deadline had passed
};
inline constexpr std::size_t kCloseReasons = static_cast<std::size_t>(CloseReason::server_stopped) + 1;
[[nodiscard]] std::string_view describe(CloseReason reason) noexcept;  // "peer closed"

// What became of connections that never were sessions.
enum class Rejection : std::uint8_t {
  full,       // as many sessions as there may be
  admission,  // the listener's Admission said no; it counts why
  no_memory,  // no slot, no watch, no state of TLS
  lane_full,  // its core takes no more tasks at the moment
  failed,     // gone before it was accepted, or its stream could not be set up
};
inline constexpr std::size_t kRejections = static_cast<std::size_t>(Rejection::failed) + 1;
[[nodiscard]] std::string_view describe(Rejection rejection) noexcept;

// Of one core, since the server was made. Written by that core, in lines of its own.
struct alignas(sync::kLineSize) CoreCounters {
  sync::Counter opened;
  std::array<sync::Counter, kCloseReasons> closed;
  std::array<sync::Counter, kRejections> rejected;
  sync::Counter accept_pauses;                  // descriptors or memory ran out
  sync::Counter rate_pauses;                    // a session was not read for a while, because it sent too many frames
  sync::Counter handler_pauses;                 // the same, because as many of its handlers ran as may
  sync::Counter tasks_refused;                  // coroutines that were one too many for their session
  sync::Counter frames_in, bytes_in, reads;     // reads and writes are system calls that moved bytes
  sync::Counter frames_out, bytes_out, writes;  // frames that were taken for sending
  sync::Counter dropped_newest, dropped_oldest, conflated;  // frames, by the policy that dropped them
  sync::Counter undelivered;                                // frames that were queued when their session ended
  sync::Counter stale_ids;                                  // posts to sessions that had ended
};

// The sum of all cores, or a core's numbers at one moment.
struct CounterValues {
  std::uint64_t opened = 0;
  std::array<std::uint64_t, kCloseReasons> closed{};
  std::array<std::uint64_t, kRejections> rejected{};
  std::uint64_t accept_pauses = 0, rate_pauses = 0, handler_pauses = 0, tasks_refused = 0;
  std::uint64_t frames_in = 0, bytes_in = 0, reads = 0;
  std::uint64_t frames_out = 0, bytes_out = 0, writes = 0;
  std::uint64_t dropped_newest = 0, dropped_oldest = 0, conflated = 0, undelivered = 0, stale_ids = 0;

  [[nodiscard]] std::uint64_t closed_for(CloseReason reason) const noexcept {
    return closed[static_cast<std::size_t>(reason)];
  }
  [[nodiscard]] std::uint64_t rejected_for(Rejection why) const noexcept {
    return rejected[static_cast<std::size_t>(why)];
  }
  [[nodiscard]] std::uint64_t closed_total() const noexcept;
  void add(const CoreCounters& counters) noexcept;
};

}  // namespace weft::serve
