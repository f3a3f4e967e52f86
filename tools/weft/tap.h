// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>

#include "tools/weft/console.h"

namespace weft::cli {

struct TapOptions {
  std::string listen;
  std::string remote;
  std::uint64_t bodies = 32;  // bytes shown of each part
  std::uint64_t count = 0;    // messages; 0: until a signal
};

int tap(Console& console, const TapOptions& options);

}  // namespace weft::cli
