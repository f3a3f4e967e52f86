// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include "weft/base/counter_table.h"
#include "weft/sync/counter.h"
#include "weft/sync/counter_block.h"
#include "weft/sync/duration_counts.h"

namespace weft::serve::rpc {

// clang-format off
#define WEFT_RPC_COUNTERS(ROW)                                                                                        \
  ROW(answered, counter, "calls_total", "outcome", "answered", "calls",                                               \
      "Calls by their outcome: the handler's response was sent.",                                                     \
      "serve/rpc/incoming.cc")                                                                                        \
  ROW(refused, counter, "calls_total", "outcome", "refused", "calls",                                                 \
      "Calls by their outcome: the handler returned an error.",                                                       \
      "serve/rpc/incoming.cc")                                                                                        \
  ROW(failed, counter, "calls_total", "outcome", "failed", "calls",                                                   \
      "Calls by their outcome: an exception came out of the handler.",                                                \
      "serve/rpc/incoming.cc")                                                                                        \
  ROW(unknown, counter, "calls_total", "outcome", "unknown", "calls",                                                 \
      "Calls by their outcome: the server has no such method.",                                                       \
      "serve/rpc/incoming.cc")                                                                                        \
  ROW(invalid, counter, "calls_total", "outcome", "invalid", "calls",                                                 \
      "Calls by their outcome: the body was not a request of the method.",                                            \
      "serve/rpc/incoming.cc")                                                                                        \
  ROW(timed_out, counter, "calls_total", "outcome", "timed out", "calls",                                             \
      "Calls by their outcome: the deadline passed, and the handler was cancelled.",                                  \
      "serve/rpc/incoming.cc")                                                                                        \
  ROW(cancelled, counter, "calls_total", "outcome", "cancelled", "calls",                                             \
      "Calls by their outcome: the caller cancelled it before the handler had ended.",                                \
      "serve/rpc/incoming.cc")                                                                                        \
  ROW(lost, counter, "calls_total", "outcome", "lost", "calls",                                                       \
      "Calls by their outcome: the connection ended before the handler had.",                                         \
      "serve/rpc/incoming.cc")                                                                                        \
  ROW(busy, counter, "calls_total", "outcome", "busy", "calls",                                                       \
      "Calls by their outcome: `calls_max` or the memory was used up; the handler did not run.",                      \
      "serve/rpc/incoming.cc")                                                                                        \
  ROW(too_large, counter, "calls_total", "outcome", "too large", "calls",                                             \
      "Calls by their outcome: the handler's response exceeded the bound, or could not be made into bytes.",          \
      "serve/rpc/incoming.cc")                                                                                        \
  ROW(unsent, counter, "calls_total", "outcome", "unsent", "calls",                                                   \
      "Calls by their outcome: the session did not take the answer.",                                                 \
      "serve/rpc/incoming.cc")                                                                                        \
  ROW(cancels_late, counter, "cancels_late_total", "", "", "frames",                                                  \
      "Cancels of a call that is not in flight: its answer was on the way, or there never was one.",                  \
      "serve/rpc/rpc_service.cc")                                                                                     \
  ROW(messages_late, counter, "stream_frames_late_total", "", "", "frames",                                           \
      "Messages, ends and credits of a stream that is not in flight: its call had ended.",                            \
      "serve/rpc/rpc_service.cc")                                                                                     \
  ROW(duplicates, counter, "frames_refused_total", "reason", "duplicate", "frames",                                   \
      "Frames that ended their connection: a request with the id of a call in flight.",                               \
      "serve/rpc/rpc_service.cc")                                                                                     \
  ROW(faults, counter, "frames_refused_total", "reason", "stream", "frames",                                          \
      "Frames that ended their connection: a message without credit or after its end, a credit beyond the bound.",    \
      "serve/rpc/rpc_service.cc")                                                                                     \
  ROW(unasked, counter, "frames_refused_total", "reason", "unasked", "frames",                                        \
      "Frames that ended their connection: an answer, which a server does not wait for.",                             \
      "serve/rpc/rpc_service.cc")
// clang-format on

// The calls of a service on one core: its thread counts, any thread reads; and sums of them, as plain values. When the
// handler of a request has ended, the call is in exactly one of the outcomes.
template <typename N>
struct RpcCountsOf {
  using Number = N;
  WEFT_COUNTER_BLOCK(WEFT_RPC_COUNTERS)
};
using RpcCounters = RpcCountsOf<sync::Counter>;
using RpcCounts = RpcCountsOf<std::uint64_t>;

inline constexpr sync::DurationRow kRpcTimesRow = {
    "rpc", "handler_seconds", "rpc, method",
    "The time in which a method's handler ran, of a service with `time_handlers`, with the waits of a coroutine. A "
    "method without a call has none.",
    "serve/rpc/rpc_service.cc"};
inline constexpr CounterRow kRpcRows[] = {WEFT_RPC_COUNTERS(WEFT_COUNTER_ROW)};
inline constexpr CounterTable kRpcTable = {
    "rpc", "The `serve::rpc::Service`s of one name, summed: `admin->add(name, service)`, `admin->remove(name)`.",
    kRpcRows};

}  // namespace weft::serve::rpc
