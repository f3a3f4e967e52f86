// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <iterator>

#include "weft/base/counter_table.h"
#include "weft/sync/counter.h"
#include "weft/sync/counter_block.h"

namespace weft::serve {

// clang-format off
#define WEFT_ADMIN_COUNTERS(ROW)                                                                                      \
  ROW(host, counter, "requests_refused_total", "reason", "host", "requests",                                          \
      "Requests that the port refused: 421, for a host that is not its own.",                                         \
      "serve/server/admin.cc")                                                                                        \
  ROW(token, counter, "requests_refused_total", "reason", "token", "requests",                                        \
      "Requests that the port refused: 401, without its token.",                                                      \
      "serve/server/admin.cc")                                                                                        \
  ROW(rate, counter, "requests_refused_total", "reason", "rate", "requests",                                          \
      "Requests that the port refused: 429, more than `scrapes` or `looks` permits.",                                 \
      "serve/server/admin.cc")
// clang-format on

// The refusals of an admin port: its thread counts, any thread reads; and plain values of them.
template <typename N>
struct AdminCountsOf {
  using Number = N;
  WEFT_COUNTER_BLOCK(WEFT_ADMIN_COUNTERS)
};
using AdminCounters = AdminCountsOf<sync::Counter>;
using AdminCounts = AdminCountsOf<std::uint64_t>;

inline constexpr CounterRow kAdminRows[] = {WEFT_ADMIN_COUNTERS(WEFT_COUNTER_ROW)};
static_assert(std::size(kAdminRows) == sync::count_of_rows<AdminCounts>());
inline constexpr CounterTable kAdminTable = {"admin", "A `serve::Admin`, on its own page.", kAdminRows};

}  // namespace weft::serve
