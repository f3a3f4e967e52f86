// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>

#include "weft/sync/spin.h"
#include "weft/sys/thread.h"

namespace weft {

using sync::WaitMode;
using sys::ThreadOptions;

struct ContextOptions {
  std::size_t sockets_max = 1023;
  // How blocked calls wait. The environment variable WEFT_WAIT_MODE (adaptive, latency, eco) overrides the default.
  WaitMode wait_mode = default_wait_mode();
  ThreadOptions io_thread{};  // a setting that the system refuses has no effect

  [[nodiscard]] static WaitMode default_wait_mode() noexcept;
};

}  // namespace weft
