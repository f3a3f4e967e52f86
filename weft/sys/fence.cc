// SPDX-License-Identifier: MIT
#include "weft/sys/fence.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>

#include <cstdlib>
#include <string_view>

#include "weft/sys/call.h"

namespace weft::sys {
namespace {

SyscallResult<long> membarrier(int command) noexcept { return raw_call_once(SYS_membarrier, command, 0, 0); }

bool register_membarrier() noexcept {
  const char* disabled = std::getenv("WEFT_NO_MEMBARRIER");
  if (disabled != nullptr && std::string_view(disabled) == "1") {
    return false;
  }
  const auto commands = membarrier(MEMBARRIER_CMD_QUERY);
  if (commands.failed() || (commands.value & MEMBARRIER_CMD_PRIVATE_EXPEDITED) == 0) {
    return false;
  }
  // The trial call proves that a sandbox that allows the registration also allows the use.
  return !membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED).failed() &&
         !membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED).failed();
}

}  // namespace

namespace detail {

constinit std::atomic<FenceMode> fence_mode{FenceMode::unknown};

FenceMode decide_fence_mode() noexcept {
  static const FenceMode decided = register_membarrier() ? FenceMode::asymmetric : FenceMode::symmetric;
  fence_mode.store(decided, std::memory_order_relaxed);
  return decided;
}

// Decided at load, while the process has one thread. With several threads registering waits some 10 ms, until
// every processor has passed through the scheduler, and that would delay the first message.
[[maybe_unused]] const FenceMode decided_at_load = decide_fence_mode();

}  // namespace detail

void heavy_fence() noexcept {
  if (asymmetric_fences()) {
    if (!membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED).failed()) [[likely]] {
      return;
    }
    // A forked child whose kernel did not inherit the registration registers again. Light fences that have
    // run cannot be upgraded, so from here only membarrier is right.
    membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED);
    if (!membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED).failed()) {
      return;
    }
  }
  full_fence();
}

bool asymmetric_fences() noexcept {
  auto mode = detail::fence_mode.load(std::memory_order_relaxed);
  if (mode == detail::FenceMode::unknown) {
    mode = detail::decide_fence_mode();
  }
  return mode == detail::FenceMode::asymmetric;
}

}  // namespace weft::sys
