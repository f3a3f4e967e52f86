// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

namespace weft {

// The counts of a handle's kept topics since the first use, and its gauges (in_flight, channels).
// Appends: appended = acknowledged + refused + unknown + unsent + in_flight.
struct KeptStatistics {
  std::uint64_t appended = 0;      // publishes that were begun
  std::uint64_t acknowledged = 0;  // stored: the answer came
  std::uint64_t refused = 0;       // the hub answered with an error
  std::uint64_t unknown = 0;       // ended with outcome_unknown
  std::uint64_t unsent = 0;        // ended without being sent: timed_out, closed
  std::uint64_t in_flight = 0;
  std::uint64_t resent = 0;           // appends that were sent again after a change of the hub
  std::uint64_t delivered = 0;        // messages that consumers and readers took
  std::uint64_t dropped_doubles = 0;  // deliveries of what waits in the queue, or came before
  std::uint64_t dropped_unasked = 0;  // deliveries beyond the credit, or for no channel
  std::uint64_t malformed = 0;        // ops of the hub that do not parse, or answer nothing
  std::uint64_t late_acks = 0;        // that the hub refused: the message was delivered to another member, or is gone
  std::uint64_t connections = 0;      // to a hub, so far
  std::uint64_t hosted = 0;           // how often this process became the hub
  std::uint64_t channels = 0;
};

}  // namespace weft
