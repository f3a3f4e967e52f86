// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <cstdint>

#include "weft/msg/message/statistics.h"

namespace weft::msg {

// MessageDrops: the messages that vanished, by reason. A message is counted where it vanishes, once.
// Owner: a socket, and its pattern. Affinity: any thread. Cost: a locked addition for a message that is dropped.
struct MessageDrops {
  using Number = std::atomic<std::uint64_t>;
  WEFT_COUNTER_BLOCK(WEFT_DROP_COUNTERS)
};

void add_drops(Statistics& into, const MessageDrops& drops) noexcept;
void sum_drops(Statistics& of) noexcept;  // sets `dropped`

}  // namespace weft::msg
