// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include "weft/base/counter_table.h"
#include "weft/sync/counter_block.h"

namespace weft {

// clang-format off
// The lost messages of a socket, by the reason that an operator acts upon.
#define WEFT_DROP_COUNTERS(ROW)                                                                                        \
  ROW(dropped_full, counter, "messages_dropped_total", "reason", "full", "messages",                                   \
      "Messages that vanished: the peer's queue was at its mark, and the pattern does not wait.",                      \
      "msg/pattern/distributor.cc")                                                                                    \
  ROW(dropped_no_peer, counter, "messages_dropped_total", "reason", "no peer", "messages",                             \
      "Messages that vanished: they named no connected peer, or their peer left before they were whole.",              \
      "msg/pattern/router.cc")                                                                                         \
  ROW(dropped_lost, counter, "messages_dropped_total", "reason", "lost", "messages",                                   \
      "Messages that vanished: not yet handed over, or not yet received, when their connection ended.",                \
      "msg/connection/send_turn.cc")                                                                                   \
  ROW(dropped_conflated, counter, "messages_dropped_total", "reason", "conflated", "messages",                         \
      "Messages that vanished: replaced by a newer one, by the option conflate.", "msg/socket/ended_pipes.cc")         \
  ROW(dropped_unexpected, counter, "messages_dropped_total", "reason", "unexpected", "messages",                       \
      "Messages that vanished: received without a request, or of a kind that the socket's type does not take.",        \
      "msg/connection/receive_side.h")                                                                                 \
  ROW(dropped_excess, counter, "messages_dropped_total", "reason", "excess", "messages",                               \
      "Messages that vanished: received, of more parts or bytes than the socket's bound.",                             \
      "msg/connection/receive_decode.cc")                                                                              \
  ROW(dropped_no_memory, counter, "messages_dropped_total", "reason", "no memory", "messages",                         \
      "Messages that vanished: memory ran out.", "msg/connection/receive_decode.cc")                                   \
  ROW(dropped_too_long, counter, "messages_dropped_total", "reason", "too long", "messages",                           \
      "Messages that vanished: longer than a datagram can be.", "msg/wire/datagram_stream.cc")                         \
  ROW(dropped_refused, counter, "messages_dropped_total", "reason", "refused", "messages",                             \
      "Messages that vanished: the system refused to send the datagram.", "msg/wire/datagram_stream.cc")               \
  ROW(dropped_overflow, counter, "messages_dropped_total", "reason", "overflow", "messages",                           \
      "Messages that vanished: datagrams that came while the system's receive buffer was full.",                       \
      "msg/wire/datagram_stream.cc")
// The counters of a socket.
#define WEFT_SOCKET_COUNTERS(ROW)                                                                                      \
  ROW(sent, counter, "messages_total", "direction", "out", "messages",                                                 \
      "Messages that passed: handed over whole, to the kernel or to a socket of this process.",                        \
      "msg/socket/socket_statistics.cc")                                                                               \
  ROW(arrived, counter, "messages_total", "direction", "in", "messages",                                               \
      "Messages that passed: received whole from peers, taken by the application or not.",                             \
      "msg/socket/socket_statistics.cc")                                                                               \
  WEFT_DROP_COUNTERS(ROW)                                                                                              \
  ROW(queued_out, gauge, "messages_queued", "direction", "out", "messages",                                            \
      "Messages in queues: that wait to go out.", "msg/socket/socket_statistics.cc")                                   \
  ROW(queued_in, gauge, "messages_queued", "direction", "in", "messages",                                              \
      "Messages in queues: that wait to be received.", "msg/pattern/pipe.cc")                                          \
  ROW(peers, gauge, "peers", "", "", "peers",                                                                          \
      "Peers whose handshake is over.", "msg/socket/socket_statistics.cc")                                             \
  ROW(binds, counter, "binds_total", "outcome", "listening", "endpoints",                                              \
      "Calls of bind: that listen.", "msg/message/monitor.cc")                                                         \
  ROW(binds_failed, counter, "binds_total", "outcome", "failed", "endpoints",                                          \
      "Calls of bind: that failed.", "msg/message/monitor.cc")                                                         \
  ROW(accepted, counter, "accepts_total", "outcome", "accepted", "connections",                                        \
      "Connections of peers to bound endpoints: accepted.", "msg/message/monitor.cc")                                  \
  ROW(accepts_failed, counter, "accepts_total", "outcome", "failed", "connections",                                    \
      "Connections of peers to bound endpoints: that could not be accepted.", "msg/message/monitor.cc")                \
  ROW(refused_full, counter, "connections_refused_total", "reason", "socket_full", "connections",                      \
      "Accepted connections that were closed at once: the socket has connections_max.", "msg/socket/accept_bounds.cc") \
  ROW(refused_address, counter, "connections_refused_total", "reason", "address_full", "connections",                  \
      "Accepted connections that were closed at once: their address has address_connections_max.",                     \
      "msg/socket/accept_bounds.cc")                                                                                   \
  ROW(refused_rate, counter, "connections_refused_total", "reason", "address_rate", "connections",                     \
      "Accepted connections that were closed at once: their address connects more often than address_rate_max.",       \
      "msg/socket/accept_bounds.cc")                                                                                   \
  ROW(connected, counter, "connects_total", "outcome", "connected", "attempts",                                        \
      "Attempts to connect: that reached the peer.", "msg/message/monitor.cc")                                         \
  ROW(connects_failed, counter, "connects_total", "outcome", "failed", "attempts",                                     \
      "Attempts to connect: that failed.", "msg/message/monitor.cc")                                                   \
  ROW(reconnects, counter, "reconnects_total", "", "", "attempts",                                                     \
      "Attempts to connect that were put off, after a failure or a loss.", "msg/message/monitor.cc")                   \
  ROW(handshakes, counter, "handshakes_total", "outcome", "succeeded", "handshakes",                                   \
      "Handshakes of connections: that succeeded.", "msg/message/monitor.cc")                                          \
  ROW(handshakes_failed, counter, "handshakes_total", "outcome", "failed", "handshakes",                               \
      "Handshakes of connections: that failed.", "msg/message/monitor.cc")                                             \
  ROW(disconnected, counter, "connections_lost_total", "", "", "connections",                                          \
      "Connections that the peer, or an error, ended.", "msg/message/monitor.cc")                                      \
  ROW(bounds_exceeded, counter, "bounds_exceeded_total", "", "", "events",                                             \
      "Subscriptions and messages of peers that exceeded a bound, and were dropped.", "msg/message/monitor.cc")        \
  ROW(events_dropped, counter, "events_dropped_total", "", "", "events",                                               \
      "Events that the reader of the socket's monitor was too slow for.", "msg/message/monitor.cc")
// clang-format on

// The counts of a socket since it was made, and its current gauges. They balance (docs/metrics.md).
struct Statistics {
  using Number = std::uint64_t;
  WEFT_COUNTER_BLOCK(WEFT_SOCKET_COUNTERS)
  Number dropped = 0;  // the sum of all reasons
};
extern const CounterTable kSocketTable;

}  // namespace weft
