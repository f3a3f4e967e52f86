// SPDX-License-Identifier: MIT
#include "weft/topic/hub/counters.h"

#include <array>

namespace weft::topic {

namespace {
constexpr std::array kHubRows = {WEFT_HUB_COUNTERS(WEFT_COUNTER_ROW)};
static_assert(kHubRows.size() == sync::count_of_rows<HubStatistics>());
}  // namespace

const CounterTable kHubTable = {"hub", "The hub of a local fleet. Hub::counter_source() adds it.", kHubRows};

}  // namespace weft::topic
