// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "weft/base/counter_table.h"
#include "weft/sync/counter.h"
#include "weft/sync/counter_block.h"

namespace weft::bridge {

// clang-format off
// The counters of one section. A message or a request of one side is taken, and then given to the other side, or
// dropped or failed under its reason: taken = given + dropped + failed + pending.
#define WEFT_BRIDGE_COUNTERS(ROW)                                                                                      \
  ROW(taken, counter, "messages_taken_total", "", "", "messages",                                                      \
      "Messages, or requests, that came from one side.", "tools/weft/bridge")                                          \
  ROW(given, counter, "messages_given_total", "", "", "messages",                                                      \
      "Of these, the ones that were handed to the other side; requests that were answered.", "tools/weft/bridge")      \
  ROW(dropped_name, counter, "messages_dropped_total", "reason", "name", "messages",                                   \
      "Messages that were lost: the first frame is not a name of a topic.", "tools/weft/bridge")                       \
  ROW(dropped_loop, counter, "messages_dropped_total", "reason", "loop", "messages",                                   \
      "Messages that were lost: they passed here before.", "tools/weft/bridge")                                        \
  ROW(dropped_malformed, counter, "messages_dropped_total", "reason", "malformed", "messages",                         \
      "Messages that were lost: frames or headers that a bridge does not read.", "tools/weft/bridge")                  \
  ROW(dropped_too_large, counter, "messages_dropped_total", "reason", "too large", "messages",                         \
      "Messages that were lost: more bytes than a bound permits.", "tools/weft/bridge")                                \
  ROW(dropped_queue, counter, "messages_dropped_total", "reason", "queue", "messages",                                 \
      "Messages that were lost: the queue of the bridge's subscription was full.", "tools/weft/bridge")                \
  ROW(dropped_refused, counter, "messages_dropped_total", "reason", "refused", "messages",                             \
      "Messages that were lost: the other side did not take them.", "tools/weft/bridge")                               \
  ROW(dropped_gone, counter, "messages_dropped_total", "reason", "gone", "messages",                                   \
      "Replies that were lost: the client had gone.", "tools/weft/bridge")                                             \
  ROW(dropped_slow, counter, "messages_dropped_total", "reason", "slow", "messages",                                   \
      "Replies that were lost: the client's queue was full.", "tools/weft/bridge")                                     \
  ROW(failed_deadline, counter, "requests_failed_total", "reason", "deadline", "requests",                             \
      "Requests whose answer is an error: no reply came in time.", "tools/weft/bridge")                                \
  ROW(failed_nobody, counter, "requests_failed_total", "reason", "nobody", "requests",                                 \
      "Requests whose answer is an error: nobody serves them.", "tools/weft/bridge")                                   \
  ROW(failed_full, counter, "requests_failed_total", "reason", "full", "requests",                                     \
      "Requests whose answer is an error: too many are under way.", "tools/weft/bridge")                               \
  ROW(failed_lost, counter, "requests_failed_total", "reason", "lost", "requests",                                     \
      "Requests whose answer is an error: the server or the worker went away.", "tools/weft/bridge")                   \
  ROW(failed_other, counter, "requests_failed_total", "reason", "other", "requests",                                   \
      "Requests whose answer is an error: that of the service, or another one.", "tools/weft/bridge")                  \
  ROW(pending, gauge, "requests_pending", "", "", "requests", "Requests that wait for their reply.",                   \
      "tools/weft/bridge")                                                                                             \
  ROW(late, counter, "replies_late_total", "", "", "replies",                                                          \
      "Replies of workers to requests that had failed.", "tools/weft/bridge")                                          \
  ROW(unexpected, counter, "replies_unexpected_total", "", "", "replies",                                              \
      "Messages of workers that reply to no request, and empty ones.", "tools/weft/bridge")                            \
  ROW(workers, gauge, "workers", "", "", "workers", "Workers that are connected.", "tools/weft/bridge")                \
  ROW(newest, gauge, "newest_values", "", "", "topics", "Topics whose newest value is kept.", "tools/weft/bridge")     \
  ROW(newest_given, counter, "newest_values_given_total", "", "", "messages",                                          \
      "Newest values that went to a program when it subscribed.", "tools/weft/bridge")                                 \
  ROW(newest_forgotten, counter, "newest_values_forgotten_total", "", "", "topics",                                    \
      "Newest values that were forgotten: the bounds of topics and bytes.", "tools/weft/bridge")                       \
  ROW(newest_not_given, counter, "newest_values_not_given_total", "", "", "messages",                                  \
      "Newest values that a program did not get when it subscribed: its queue was full.", "tools/weft/bridge")         \
  ROW(services_refused, counter, "services_refused_total", "", "", "services",                                         \
      "Times that the fleet refused the service of the section's workers.", "tools/weft/bridge")                       \
  ROW(subscriptions_refused, counter, "subscriptions_refused_total", "", "", "subscriptions",                          \
      "Subscriptions of ZeroMQ programs that no topic can match, or beyond the bound.", "tools/weft/bridge")           \
  ROW(subscriptions, gauge, "subscriptions", "", "", "subscriptions",                                                  \
      "Different subscriptions of ZeroMQ programs.", "tools/weft/bridge")
// clang-format on

struct Counts {
  using Number = std::uint64_t;
  WEFT_COUNTER_BLOCK(WEFT_BRIDGE_COUNTERS)
};
extern const CounterTable kBridgeTable;

// Counters: the section's core writes, the thread of the admin port reads.
struct Counters {
  using Number = sync::Counter;
  WEFT_COUNTER_BLOCK(WEFT_BRIDGE_COUNTERS)
};

}  // namespace weft::bridge
