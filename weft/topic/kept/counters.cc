// SPDX-License-Identifier: MIT
#include "weft/topic/kept/counters.h"

#include <array>

namespace weft {

namespace {
constexpr std::array kRows = {WEFT_KEPT_COUNTERS(WEFT_COUNTER_ROW)};
static_assert(kRows.size() == sync::count_of_rows<KeptStatistics>());
}  // namespace

const CounterTable kKeptTable = {"kept", "The kept topics of a handle. Topics::counter_source() adds it, once used.",
                                 kRows};

}  // namespace weft
