// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <cstdint>

#include "weft/base/counter_table.h"
#include "weft/sync/counter_block.h"

namespace weft {

// clang-format off
// The counters of a handle of topics. A message and one subscription of the handle that it matches are a pair:
// matched = delivered + the dropped ones up to dropped_no_memory + queued.
#define WEFT_TOPICS_COUNTERS(ROW)                                                                                      \
  ROW(published, counter, "messages_published_total", "", "", "messages",                                              \
      "Messages that publish() took.", "topic/node/publish.cc")                                                        \
  ROW(received, counter, "messages_received_total", "", "", "messages",                                                \
      "Messages that came from other handles.", "topic/node/pump.cc")                                                  \
  ROW(unwanted, counter, "messages_unwanted_total", "", "", "messages",                                                \
      "Messages that came from other handles and match no subscription: a prefix brought them, or a filter went.",     \
      "topic/node/pump.cc")                                                                                            \
  ROW(matched, counter, "pairs_matched_total", "", "", "pairs",                                                        \
      "Pairs of a message and a subscription that it matches.", "topic/node/subscription_core.cc")                     \
  ROW(delivered, counter, "pairs_delivered_total", "", "", "pairs",                                                    \
      "Pairs that the program took.", "topic/node/subscription_core.cc")                                               \
  ROW(dropped_oldest, counter, "pairs_dropped_total", "reason", "oldest", "pairs",                                     \
      "Pairs that were lost: the oldest of a full queue.", "topic/node/subscription_core.cc")                          \
  ROW(dropped_newest, counter, "pairs_dropped_total", "reason", "newest", "pairs",                                     \
      "Pairs that were lost: the queue was full, and drops the newest.", "topic/node/subscription_core.cc")            \
  ROW(dropped_conflated, counter, "pairs_dropped_total", "reason", "conflated", "pairs",                               \
      "Pairs that were lost: a newer message of the topic took the place.", "topic/node/subscription_core.cc")         \
  ROW(dropped_ended, counter, "pairs_dropped_total", "reason", "ended", "pairs",                                       \
      "Pairs that were lost: the subscription ended because its queue was full.", "topic/node/subscription_core.cc")   \
  ROW(dropped_closed, counter, "pairs_dropped_total", "reason", "closed", "pairs",                                     \
      "Pairs that were lost: still queued when the subscription was closed.", "topic/node/subscription_core.cc")       \
  ROW(dropped_no_memory, counter, "pairs_dropped_total", "reason", "no memory", "pairs",                               \
      "Pairs that were lost: memory ran out.", "topic/node/subscription_core.cc")                                      \
  ROW(queued, gauge, "pairs_queued", "", "", "pairs",                                                                  \
      "Pairs in the queues of subscriptions.", "topic/node/subscription_core.cc")                                      \
  ROW(dropped_full, counter, "messages_dropped_total", "reason", "full", "messages",                                   \
      "Messages that a peer misses: the queue for that peer is at its bound.", "msg/pattern/distributor.cc")           \
  ROW(dropped_lost, counter, "messages_dropped_total", "reason", "lost", "messages",                                   \
      "Messages that a peer misses: the connection ended before they were handed over, or taken.",                     \
      "msg/connection/send_turn.cc")                                                                                   \
  ROW(dropped_for_memory, counter, "messages_dropped_total", "reason", "no memory", "messages",                        \
      "Messages that a peer misses: there was no memory to queue them.", "topic/node/node_sockets.cc")                 \
  ROW(requests, counter, "requests_total", "", "", "requests",                                                         \
      "Requests that were made.", "topic/node/requests.cc")                                                            \
  ROW(replies, counter, "replies_total", "", "", "replies",                                                            \
      "Replies that were in time.", "topic/node/requests.cc")                                                          \
  ROW(late_replies, counter, "late_replies_total", "", "", "replies",                                                  \
      "Replies that came when no request waited for them.", "topic/node/requests.cc")                                  \
  ROW(control_malformed, counter, "control_malformed_total", "", "", "messages",                                       \
      "Messages of peers to the handle itself that do not parse.", "topic/node/roster.cc")                             \
  ROW(control_refused, counter, "control_refused_total", "", "", "messages",                                           \
      "Messages of peers to the handle itself that exceed its bounds.", "topic/node/roster.cc")                        \
  ROW(control_lost, counter, "control_dropped_total", "reason", "no memory", "messages",                               \
      "Messages between handles that were lost: this one had no memory to handle them, again and again.",              \
      "topic/node/reconcile.cc")                                                                                       \
  ROW(control_unsent, counter, "control_dropped_total", "reason", "unsent", "messages",                                \
      "Messages between handles that were lost: this one had no memory to send them, or a peer no room.",              \
      "topic/node/roster.cc")                                                                                          \
  ROW(peers_refused, counter, "peers_refused_total", "", "", "connections",                                            \
      "Connections to this handle whose handshake failed: no keys, wrong ones, or no ZMTP.",                           \
      "topic/node/node_sockets.cc")                                                                                    \
  ROW(not_forwarded, counter, "messages_not_forwarded_total", "", "", "messages",                                      \
      "Messages that were not forwarded to all their sessions: not encoded, no room, or the session had ended.",       \
      "topic/node/node.h")                                                                                             \
  ROW(fleet_published, counter, "fleet_messages_published_total", "", "", "messages",                                  \
      "Messages, requests and control messages for the servers of a nats fleet, of all handles that share the gate.",  \
      "topic/node/gate.cc")                                                                                            \
  ROW(fleet_sent, counter, "fleet_messages_sent_total", "", "", "messages",                                            \
      "Of these, the ones that a connection to a server took.", "topic/node/gate.cc")                                  \
  ROW(fleet_dropped_oldest, counter, "fleet_messages_dropped_total", "reason", "oldest", "messages",                   \
      "Of these, the ones that were lost: the servers were away, and newer messages needed the room.",                 \
      "topic/node/gate.cc")                                                                                            \
  ROW(fleet_dropped_refused, counter, "fleet_messages_dropped_total", "reason", "refused", "messages",                 \
      "Of these, the ones that were lost: the server does not permit the topic or size, or memory ran out.",           \
      "topic/node/gate.cc")                                                                                            \
  ROW(fleet_dropped_closed, counter, "fleet_messages_dropped_total", "reason", "closed", "messages",                   \
      "Of these, the ones that were lost: still waiting when the last handle closed.", "topic/node/gate.cc")           \
  ROW(fleet_dropped_full, counter, "fleet_messages_dropped_total", "reason", "full", "messages",                       \
      "Of these, the ones that were lost: a server did not read.", "topic/node/gate.cc")                    \
  ROW(fleet_queued, gauge, "fleet_messages_queued", "", "", "messages",                                                \
      "Of these, the ones that wait for a connection.", "topic/node/gate.cc")                                          \
  ROW(fleet_connected, counter, "fleet_connections_total", "", "", "connections",                                      \
      "Connections to servers of a nats fleet that were made.", "topic/node/gate.cc")                                  \
  ROW(peers, gauge, "peers", "", "", "handles",                                                                        \
      "Other handles that this handle is connected to.", "topic/node/roster.cc")
// clang-format on

// The counts of a handle since it was opened, and its gauges.
struct TopicsStatistics {
  using Number = std::uint64_t;
  WEFT_COUNTER_BLOCK(WEFT_TOPICS_COUNTERS)

  // Pairs of this handle that were lost.
  [[nodiscard]] std::uint64_t dropped() const noexcept {
    return dropped_oldest + dropped_newest + dropped_conflated + dropped_ended + dropped_closed + dropped_no_memory;
  }
};
extern const CounterTable kTopicsTable;

namespace topic {
struct TopicsCounters {
  using Number = std::atomic<std::uint64_t>;
  WEFT_COUNTER_BLOCK(WEFT_TOPICS_COUNTERS)
};
}  // namespace topic

}  // namespace weft
