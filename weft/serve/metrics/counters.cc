// SPDX-License-Identifier: MIT
#include "weft/serve/metrics/counters.h"

#include <algorithm>
#include <iterator>
#include <numeric>

namespace weft::serve {

namespace {

#define WEFT_CLOSED_ROW(name, text, meaning)      \
  CounterRow{"closed",                            \
             "sessions_closed_total",             \
             CounterKind::counter,                \
             "reason",                            \
             text,                                \
             "sessions",                          \
             "Sessions that ended: " meaning ".", \
             "serve/session/shard.cc"},
#define WEFT_REJECTED_ROW(name, text, meaning)                     \
  CounterRow{"rejected",                                           \
             "connections_rejected_total",                         \
             CounterKind::counter,                                 \
             "reason",                                             \
             text,                                                 \
             "connections",                                        \
             "Connections that never were sessions: " meaning ".", \
             "serve/session/shard.cc"},

#define WEFT_MEMORY_ROW(name, meaning)                                        \
  CounterRow{"memory", "memory_bytes", CounterKind::gauge,           "owner", \
             #name,    "bytes",        "Bytes in use: " meaning ".", "serve/session/shard.h"},
#define WEFT_MEMORY_OWNER(name, meaning) MemoryOwner::name,
constexpr MemoryOwner kMemoryRows[] = {WEFT_MEMORY_OWNERS(WEFT_MEMORY_OWNER)};
static_assert(std::size(kMemoryRows) == kMemoryOwners);
static_assert(std::is_sorted(std::begin(kMemoryRows), std::end(kMemoryRows)));  // in the order of the enumeration

constexpr CounterRow kServerRows[] = {{"sessions", "sessions", CounterKind::gauge, "", "", "sessions",
                                       "Sessions that there are.", "serve/admission/session_count.h"},
                                      WEFT_SESSION_COUNTERS(WEFT_COUNTER_ROW) WEFT_MEMORY_OWNERS(WEFT_MEMORY_ROW)
                                          WEFT_CLOSE_REASONS(WEFT_CLOSED_ROW) WEFT_REJECTIONS(WEFT_REJECTED_ROW)};
static_assert(std::size(kServerRows) == sync::count_of_rows<ServerReading>());

constexpr CounterRow kListenerRows[] = {{"kListenerTable", "info", CounterKind::gauge, "", "", "listeners",
                                         "A listener: its labels are its endpoint and its TLS. Always 1.",
                                         "serve/server/server.cc"}};

}  // namespace

constinit const CounterTable kServerTable = {
    "server", "A `serve::Server`, the sum of its cores: `AdminOptions::servers`, or `admin->add(name, *server)`.",
    kServerRows};
constinit const CounterTable kClientHostTable = {
    "client_host", "The connections of all clients of one core: `admin->add(name, *client_host)`.", kServerRows};

constinit const CounterTable kListenerTable = {
    "listener",
    "A listener of a server on the page: the label `tls` is the version of TLS that its connections use, or `none`.",
    kListenerRows};

std::string_view describe(CloseReason reason) noexcept {
  const auto index = static_cast<std::size_t>(reason);
  return index < kCloseReasons ? kCloseReasonNames[index] : "unknown";
}

std::string_view describe(Rejection rejection) noexcept {
  const auto index = static_cast<std::size_t>(rejection);
  return index < kRejections ? kRejectionNames[index] : "unknown";
}

std::uint64_t CounterValues::closed_total() const noexcept {
  return std::accumulate(closed.begin(), closed.end(), std::uint64_t{0});
}

}  // namespace weft::serve
