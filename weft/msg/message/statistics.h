// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include "weft/base/counter_table.h"
#include "weft/sync/counter_block.h"

namespace weft {

// clang-format off
// The counters of a socket. None is on the path of a message: messages that pass through a socket are not counted.
#define WEFT_SOCKET_COUNTERS(ROW)                                                                                      \
  ROW(dropped, counter, "messages_dropped_total", "", "", "messages",                                                  \
      "Messages that found no room or no peer, where the pattern does not wait, or that no peer should have sent.",    \
      "msg/socket/socket_core.cc")                                                                                     \
  ROW(queued_out, gauge, "messages_queued", "direction", "out", "messages",                                            \
      "Messages in queues: that wait to go out.", "msg/socket/socket_statistics.cc")                                   \
  ROW(queued_in, gauge, "messages_queued", "direction", "in", "messages",                                              \
      "Messages in queues: that wait to be received.", "msg/socket/socket_statistics.cc")                              \
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
  ROW(events_dropped, counter, "events_dropped_total", "", "", "events",                                               \
      "Events that the reader of the socket's monitor was too slow for.", "msg/message/monitor.cc")
// clang-format on

// The counts of a socket since it was made, and its current gauges.
struct Statistics {
  using Number = std::uint64_t;
  WEFT_COUNTER_BLOCK(WEFT_SOCKET_COUNTERS)
};
extern const CounterTable kSocketTable;

}  // namespace weft
