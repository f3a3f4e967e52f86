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
  // How blocked calls wait. The environment's WEFT_WAIT_MODE (adaptive, latency, eco) overrides the default.
  WaitMode wait_mode = default_wait_mode();
  ThreadOptions io_thread{};  // what the system refuses of it is left out

  [[nodiscard]] static WaitMode default_wait_mode() noexcept;
};

}  // namespace weft
