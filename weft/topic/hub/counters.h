// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <cstdint>

#include "weft/base/counter_table.h"
#include "weft/sync/counter_block.h"

namespace weft::topic {

// clang-format off
#define WEFT_HUB_COUNTERS(ROW)                                                                                         \
  ROW(ops, counter, "ops_total", "", "", "ops", "Ops that members sent.", "topic/hub/session.cc")                      \
  ROW(malformed, counter, "malformed_total", "", "", "messages",                                                       \
      "Messages that were not ops, and were dropped.", "topic/hub/session.cc")                                         \
  ROW(appended, counter, "messages_total", "outcome", "appended", "messages",                                          \
      "Messages by their outcome: durable.", "store/store.cc")                                                         \
  ROW(duplicates, counter, "messages_total", "outcome", "duplicate", "messages",                                       \
      "Messages by their outcome: their id was known.", "store/store.cc")                                              \
  ROW(refused, counter, "messages_total", "outcome", "refused", "messages",                                            \
      "Messages by their outcome: refused, or their commit failed.", "store/store.cc")                                 \
  ROW(delayed, counter, "messages_delayed_total", "", "", "messages",                                                  \
      "Messages with a delay that are durable. Each counts as appended when it is due.", "store/store.cc")             \
  ROW(delivered, counter, "deliveries_total", "", "", "messages",                                                      \
      "Messages that were sent to consumers and readers.", "topic/hub/deliver.cc")                                     \
  ROW(dead_letters, counter, "dead_letters_total", "outcome", "kept", "messages",                                      \
      "Messages that were delivered too often: kept as dead letters.", "store/store.cc")                               \
  ROW(dead_dropped, counter, "dead_letters_total", "outcome", "dropped", "messages",                                   \
      "Messages that were delivered too often: dropped, because no topic is named for them.", "store/store.cc")        \
  ROW(evicted, counter, "messages_evicted_total", "", "", "messages",                                                  \
      "Messages that streams which drop the oldest dropped for room, though they were promised until then.",           \
      "store/stream.cc")                                                                                               \
  ROW(answers_dropped, counter, "answers_dropped_total", "", "", "answers",                                            \
      "Answers and deliveries to members that are gone, or that take nothing.", "topic/hub/deliver.cc")                \
  ROW(told, counter, "stored_published_total", "outcome", "published", "messages",                                     \
      "Stored messages, for volatile subscribers too: published.", "topic/hub/deliver.cc")                             \
  ROW(untold, counter, "stored_published_total", "outcome", "dropped", "messages",                                     \
      "Stored messages, for volatile subscribers too: not published, the handle that hosts was late or closed.",       \
      "topic/hub/deliver.cc")                                                                                          \
  ROW(turns, counter, "commits_total", "", "", "commits", "Commits that wrote something.", "topic/hub/deliver.cc")     \
  ROW(clients, gauge, "connections", "", "", "connections",                                                            \
      "Connections of members that sent an op.", "topic/hub/session.cc")
// clang-format on

// The counts of a hub since it began to host, and its gauges.
struct HubStatistics {
  using Number = std::uint64_t;
  WEFT_COUNTER_BLOCK(WEFT_HUB_COUNTERS)
};
struct HubCounters {
  using Number = std::atomic<std::uint64_t>;
  WEFT_COUNTER_BLOCK(WEFT_HUB_COUNTERS)
};
extern const CounterTable kHubTable;

}  // namespace weft::topic
