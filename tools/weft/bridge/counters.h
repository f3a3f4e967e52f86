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
// The counters of one section. A message of one side is taken, and then given to the other side, or dropped under its
// reason: taken = given + dropped.
#define WEFT_BRIDGE_COUNTERS(ROW)                                                                                      \
  ROW(taken, counter, "messages_taken_total", "", "", "messages",                                                      \
      "Messages that came from one side.", "tools/weft/bridge")                                          \
  ROW(given, counter, "messages_given_total", "", "", "messages",                                                      \
      "Of these, the ones that were handed to the other side.", "tools/weft/bridge")      \
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
