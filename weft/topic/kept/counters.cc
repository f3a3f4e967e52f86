// SPDX-License-Identifier: MIT
#include "weft/topic/kept/counters.h"

#include <array>

namespace weft {

namespace {
constexpr std::array kKeptRows = {WEFT_KEPT_COUNTERS(WEFT_COUNTER_ROW)};
static_assert(kKeptRows.size() == sync::count_of_rows<KeptStatistics>());
}  // namespace

const CounterTable kKeptTable = {"kept", "The kept topics of a handle. Topics::counter_source() adds it, once used.",
                                 kKeptRows};

}  // namespace weft
