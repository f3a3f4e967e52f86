// SPDX-License-Identifier: MIT
#include "weft/topic/hub/counters.h"

#include <array>

namespace weft::topic {

namespace {
constexpr std::array kRows = {WEFT_HUB_COUNTERS(WEFT_COUNTER_ROW)};
static_assert(kRows.size() == sync::count_of_rows<HubStatistics>());
}  // namespace

const CounterTable kHubTable = {"hub", "The hub of a local fleet. Hub::counter_source() adds it.", kRows};

}  // namespace weft::topic
