// SPDX-License-Identifier: MIT
#include "weft/topic/node/counters.h"

#include <array>

namespace weft {

namespace {
constexpr std::array kTopicsRows = {WEFT_TOPICS_COUNTERS(WEFT_COUNTER_ROW)};
static_assert(kTopicsRows.size() == sync::count_of_rows<TopicsStatistics>());
}  // namespace

const CounterTable kTopicsTable = {"topics", "A handle of topics. Topics::counter_source() adds it.", kTopicsRows};

}  // namespace weft
