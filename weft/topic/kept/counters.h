// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include "weft/base/counter_table.h"
#include "weft/sync/counter_block.h"

namespace weft {

// clang-format off
// The counters of a handle's kept topics.
// appended = acknowledged + refused + unknown + unsent + in_flight.
#define WEFT_KEPT_COUNTERS(ROW)                                                                                        \
  ROW(appended, counter, "publishes_total", "", "", "messages",                                                        \
      "Publishes that were begun.", "topic/kept/hub_link.cc")                                                          \
  ROW(acknowledged, counter, "publishes_ended_total", "outcome", "acknowledged", "messages",                           \
      "Publishes by their outcome: stored, the answer came.", "topic/kept/hub_link.cc")                                \
  ROW(refused, counter, "publishes_ended_total", "outcome", "refused", "messages",                                     \
      "Publishes by their outcome: the hub answered with an error.", "topic/kept/hub_link.cc")                         \
  ROW(unknown, counter, "publishes_ended_total", "outcome", "unknown", "messages",                                     \
      "Publishes by their outcome: sent, and no answer in time.", "topic/kept/hub_link.cc")                            \
  ROW(unsent, counter, "publishes_ended_total", "outcome", "unsent", "messages",                                       \
      "Publishes by their outcome: ended without being sent.", "topic/kept/hub_link.cc")                               \
  ROW(in_flight, gauge, "publishes_in_flight", "", "", "messages",                                                     \
      "Publishes that wait for their answer.", "topic/kept/hub_link.cc")                                               \
  ROW(resent, counter, "publishes_resent_total", "", "", "messages",                                                   \
      "Publishes that were sent again after a change of the hub.", "topic/kept/hub_link_connection.cc")                \
  ROW(delivered, counter, "messages_delivered_total", "", "", "messages",                                              \
      "Messages that consumers and readers took.", "topic/kept/hub_link_channels.cc")                                  \
  ROW(dropped_doubles, counter, "deliveries_dropped_total", "reason", "double", "deliveries",                          \
      "Deliveries of the hub that were dropped: of a message that waits in the queue, or came before.",                \
      "topic/kept/hub_link_channels.cc")                                                                               \
  ROW(dropped_unasked, counter, "deliveries_dropped_total", "reason", "unasked", "deliveries",                         \
      "Deliveries of the hub that were dropped: beyond the credit, or for no channel.",                                \
      "topic/kept/hub_link_channels.cc")                                                                               \
  ROW(malformed, counter, "malformed_total", "", "", "ops",                                                            \
      "Ops of the hub that do not parse, or answer nothing.", "topic/kept/hub_link.cc")                                \
  ROW(late_acks, counter, "late_acks_total", "", "", "acknowledgements",                                               \
      "Acknowledgements that the hub refused: the message was delivered to another member, or is gone.",               \
      "topic/kept/hub_link_channels.cc")                                                                               \
  ROW(connections, counter, "connections_total", "", "", "connections",                                                \
      "Connections to a hub.", "topic/kept/hub_link_connection.cc")                                                    \
  ROW(hosted, counter, "hosted_total", "", "", "hubs",                                                                 \
      "How often this handle began to host the hub.", "topic/kept/hub_link_connection.cc")                             \
  ROW(channels, gauge, "channels", "", "", "channels",                                                                 \
      "Open consumers and readers.", "topic/kept/hub_link.cc")
// clang-format on

// The counts of a handle's kept topics since the first use, and its gauges.
struct KeptStatistics {
  using Number = std::uint64_t;
  WEFT_COUNTER_BLOCK(WEFT_KEPT_COUNTERS)
};
extern const CounterTable kKeptTable;

}  // namespace weft
