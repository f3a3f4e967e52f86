// SPDX-License-Identifier: MIT
#include "tools/weft/bridge/counters.h"

#include <array>

namespace weft::bridge {

namespace {
constexpr std::array kBridgeRows{WEFT_BRIDGE_COUNTERS(WEFT_COUNTER_ROW)};
static_assert(kBridgeRows.size() == sync::count_of_rows<Counts>());
}  // namespace

const CounterTable kBridgeTable{"bridge", "A section of `weft bridge`.", kBridgeRows};

}  // namespace weft::bridge
