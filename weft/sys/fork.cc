// SPDX-License-Identifier: MIT
#include "weft/sys/fork.h"

#include <pthread.h>

#include <atomic>

namespace weft::sys {

namespace {
std::atomic<std::uint32_t> generation{0};
}  // namespace

std::uint32_t fork_generation() noexcept {
  // Fails only without memory; then children have their parent's number.
  [[maybe_unused]] static const int registered =
      ::pthread_atfork(nullptr, nullptr, [] { generation.fetch_add(1, std::memory_order_relaxed); });
  return generation.load(std::memory_order_relaxed);  // a child has one thread; its parent's value never changes
}

bool at_fork(void (*before)(), void (*after)()) noexcept { return ::pthread_atfork(before, after, after) == 0; }

}  // namespace weft::sys
