// SPDX-License-Identifier: MIT
#include "weft/msg/message/statistics.h"

#include <iterator>

namespace weft {

namespace {
constexpr CounterRow kRows[] = {WEFT_SOCKET_COUNTERS(WEFT_COUNTER_ROW)};
static_assert(std::size(kRows) == sync::count_of_rows<Statistics>());
}  // namespace

constinit const CounterTable kSocketTable = {"socket", "A messaging socket: `admin->add(name, socket)`.", kRows};

}  // namespace weft
