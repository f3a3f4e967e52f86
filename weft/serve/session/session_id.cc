// SPDX-License-Identifier: MIT
#include "weft/serve/session/session_id.h"

#include <algorithm>
#include <atomic>
#include <chrono>

namespace weft::serve {

std::uint16_t next_epoch() noexcept {
  static std::atomic<std::uint64_t> last{0};  // no partner: the number guards no other memory, so relaxed is enough
  const auto wall = std::chrono::system_clock::now().time_since_epoch();
  const auto quarters =
      static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(wall).count()) >> 28;
  std::uint64_t seen = last.load(std::memory_order_relaxed);
  std::uint64_t next = 0;
  do {
    next = std::max(seen + 1, quarters);
  } while (!last.compare_exchange_weak(seen, next, std::memory_order_relaxed));
  return static_cast<std::uint16_t>(next);
}

}  // namespace weft::serve
