// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include "weft/base/assert.h"

namespace weft::msg {

// Flusher: the thread that flushes a connection's batch next. Written with the write baton only.
//   link     The link holds the write baton, as there is no connection or it goes down. The next connection flushes.
//   sender   The next sender, if there is anything to flush. The I/O thread does not visit the connection.
//   at_once  Armed. The I/O thread, as soon as it is awake: see IoService::flush_bursts(). Later as in_turn.
//   in_turn  Armed. The I/O thread in one of its turns, every 100 to 250 us.
//   poller   The kernel takes no more. The I/O thread, when the poller reports room.
// In at_once and in_turn the senders flush, too: a batch that is full or old, and before a call of their socket waits.
enum class Flusher : std::uint8_t { link, sender, at_once, in_turn, poller };

enum class FlushEvent : std::uint8_t {
  connect,      // The link gives the write baton to the senders.
  disconnect,   // The link has taken the write baton.
  begin,        // Bytes are in the batch, and their sender may have sent all of its messages.
  leave,        // Bytes stay in the batch behind a flush, or batches follow each other in a stream.
  done,         // Nothing is left to flush.
  kernel_full,  // The I/O thread flushed, and the kernel took no more.
  quiet,        // The I/O thread found nothing to flush in several turns.
};

[[nodiscard]] constexpr bool is_armed(Flusher flusher) noexcept {
  return flusher == Flusher::at_once || flusher == Flusher::in_turn;
}

// Every change of a connection's flusher, in one table:
//
//            connect  disconnect  begin    leave    done     kernel_full  quiet
//   link     sender   link        -        -        -        -            -
//   sender   -        link        at_once  in_turn  sender   -            -
//   at_once  -        link        at_once  at_once  at_once  poller       sender
//   in_turn  -        link        in_turn  in_turn  in_turn  poller       sender
//   poller   -        link        at_once  in_turn  sender   -            -
//
// A dash is a bug in Weft. poller stays poller while the kernel is still full: SendSide::arm() takes care of that.
[[nodiscard]] inline Flusher next_flusher(Flusher flusher, FlushEvent event) noexcept {
  switch (event) {
    case FlushEvent::connect: WEFT_ASSERT(flusher == Flusher::link); return Flusher::sender;
    case FlushEvent::disconnect: return Flusher::link;
    case FlushEvent::begin:
    case FlushEvent::leave:
      WEFT_ASSERT(flusher != Flusher::link);
      if (is_armed(flusher)) {
        return flusher;
      }
      return event == FlushEvent::begin ? Flusher::at_once : Flusher::in_turn;
    case FlushEvent::done: WEFT_ASSERT(flusher != Flusher::link); return is_armed(flusher) ? flusher : Flusher::sender;
    case FlushEvent::kernel_full: WEFT_ASSERT(is_armed(flusher)); return Flusher::poller;
    case FlushEvent::quiet: WEFT_ASSERT(is_armed(flusher)); return Flusher::sender;
  }
  return flusher;
}

}  // namespace weft::msg
