// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include "weft/base/counter_table.h"
#include "weft/sync/atomic.h"
#include "weft/sync/counter.h"
#include "weft/sync/counter_block.h"

namespace weft::serve {

// clang-format off
#define WEFT_DATAGRAM_SHARD "serve/udp/datagram_shard.cc"
// The counters of one core of a DatagramServer.
#define WEFT_DATAGRAM_COUNTERS(ROW)                                                                                  \
  ROW(sessions, gauge, "sessions", "", "", "sessions", "Sessions that there are.", WEFT_DATAGRAM_SHARD)              \
  ROW(opened, counter, "sessions_opened_total", "", "", "sessions", "Sessions that began.", WEFT_DATAGRAM_SHARD)     \
  ROW(peer_closed, counter, "sessions_closed_total", "reason", "peer closed", "sessions",                            \
      "Sessions that ended: the peer closed it.", WEFT_DATAGRAM_SHARD)                                               \
  ROW(replaced, counter, "sessions_closed_total", "reason", "replaced", "sessions",                                  \
      "Sessions that ended: the address opened a new one with another cookie.", WEFT_DATAGRAM_SHARD)                 \
  ROW(idle, counter, "sessions_closed_total", "reason", "idle", "sessions",                                          \
      "Sessions that ended: no datagram came from the peer.", WEFT_DATAGRAM_SHARD)                                   \
  ROW(by_service, counter, "sessions_closed_total", "reason", "service", "sessions",                                 \
      "Sessions that ended: the service closed it.", WEFT_DATAGRAM_SHARD)                                            \
  ROW(service_failed, counter, "sessions_closed_total", "reason", "service failed", "sessions",                      \
      "Sessions that ended: the service threw.", WEFT_DATAGRAM_SHARD)                                                \
  ROW(server_stopped, counter, "sessions_closed_total", "reason", "server stopped", "sessions",                      \
      "Sessions that ended: the server stopped.", WEFT_DATAGRAM_SHARD)                                               \
  ROW(close_threw, counter, "close_threw_total", "", "", "calls",                                                    \
      "Calls of on_close() that threw.", WEFT_DATAGRAM_SHARD)                                                        \
  ROW(refused_full, counter, "sessions_refused_total", "reason", "full", "sessions",                                 \
      "Sessions that did not begin: the core had as many as it may, or no memory.", WEFT_DATAGRAM_SHARD)             \
  ROW(refused_address, counter, "sessions_refused_total", "reason", "address", "sessions",                           \
      "Sessions that did not begin: the address, or its prefix, had as many as it may.", WEFT_DATAGRAM_SHARD)        \
  ROW(challenges, counter, "challenges_total", "", "", "datagrams",                                                  \
      "Cookies that were sent to addresses without a proof.", WEFT_DATAGRAM_SHARD)                                   \
  ROW(in, counter, "datagrams_total", "direction", "in", "datagrams",                                                \
      "Datagrams: received.", WEFT_DATAGRAM_SHARD)                                                                   \
  ROW(out, counter, "datagrams_total", "direction", "out", "datagrams",                                              \
      "Datagrams: taken by the kernel.", WEFT_DATAGRAM_SHARD)                                                        \
  ROW(malformed, counter, "datagrams_dropped_total", "reason", "malformed", "datagrams",                             \
      "Datagrams that were dropped: too short, or of no kind for a server.", WEFT_DATAGRAM_SHARD)                    \
  ROW(oversize, counter, "datagrams_dropped_total", "reason", "oversize", "datagrams",                               \
      "Datagrams that were dropped: received with more than datagram_max bytes.", WEFT_DATAGRAM_SHARD)               \
  ROW(wrong_cookie, counter, "datagrams_dropped_total", "reason", "cookie", "datagrams",                             \
      "Datagrams that were dropped: the cookie is not the address's, or is too old.", WEFT_DATAGRAM_SHARD)           \
  ROW(strays, counter, "datagrams_dropped_total", "reason", "no session", "datagrams",                               \
      "Datagrams that were dropped: received from an address without a session.", WEFT_DATAGRAM_SHARD)               \
  ROW(over_rate, counter, "datagrams_dropped_total", "reason", "rate", "datagrams",                                  \
      "Datagrams that were dropped: too many of one session in a second.", WEFT_DATAGRAM_SHARD)                      \
  ROW(unanswered, counter, "datagrams_dropped_total", "reason", "answers", "datagrams",                              \
      "Datagrams that were dropped: too many of unproven addresses in a second.", WEFT_DATAGRAM_SHARD)               \
  ROW(receive_buffer, counter, "datagrams_dropped_total", "reason", "receive buffer", "datagrams",                   \
      "Datagrams that were dropped: the kernel had no room for those received.", WEFT_DATAGRAM_SHARD)                \
  ROW(send_buffer, counter, "datagrams_dropped_total", "reason", "send buffer", "datagrams",                         \
      "Datagrams that were dropped: the kernel had no room for those sent.", WEFT_DATAGRAM_SHARD)                    \
  ROW(send_failed, counter, "datagrams_dropped_total", "reason", "send failed", "datagrams",                         \
      "Datagrams that were dropped: the kernel refused to send it.", WEFT_DATAGRAM_SHARD)
// clang-format on

template <typename Number>
struct DatagramNumbers {
  WEFT_COUNTER_BLOCK(WEFT_DATAGRAM_COUNTERS)
};
struct alignas(sync::kLineSize) DatagramCounts : DatagramNumbers<sync::Counter> {};
using DatagramCounterValues = DatagramNumbers<std::uint64_t>;

inline constexpr CounterRow kDatagramRows[] = {WEFT_DATAGRAM_COUNTERS(WEFT_COUNTER_ROW)};
inline constexpr CounterTable kDatagramTable = {
    "udp", "A `serve::DatagramServer`, the sum of its cores: `admin->add(name, *server)`.", kDatagramRows};

}  // namespace weft::serve
