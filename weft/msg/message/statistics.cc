// SPDX-License-Identifier: MIT
#include "weft/msg/message/statistics.h"

#include <iterator>

#include "weft/msg/message/message_drops.h"

namespace weft {

namespace {
constexpr CounterRow kRows[] = {WEFT_SOCKET_COUNTERS(WEFT_COUNTER_ROW)};
static_assert(std::size(kRows) == sync::count_of_rows<Statistics>());
}  // namespace

constinit const CounterTable kSocketTable = {"socket", "A messaging socket: `admin->add(name, socket)`.", kRows};

namespace msg {
void add_drops(Statistics& into, const MessageDrops& drops) noexcept {
  MessageDrops::visit([](std::uint64_t& sum, const std::atomic<std::uint64_t>& number) { sum += number.load(); }, into,
                      drops);
}

void sum_drops(Statistics& of) noexcept {
  of.dropped = 0;
  MessageDrops::visit([&of](std::uint64_t number) { of.dropped += number; }, of);
}
}  // namespace msg

}  // namespace weft
