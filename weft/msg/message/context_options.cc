// SPDX-License-Identifier: MIT
#include "weft/msg/message/context_options.h"

#include <cstdlib>
#include <string_view>

namespace weft {

WaitMode ContextOptions::default_wait_mode() noexcept {
  const char* mode = std::getenv("WEFT_WAIT_MODE");
  const std::string_view text = mode == nullptr ? "" : mode;
  if (text == "eco") {
    return WaitMode::eco;
  }
  return text == "latency" ? WaitMode::latency : WaitMode::adaptive;
}

}  // namespace weft
