// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>

#include "tools/weft/admin_port.h"
#include "tools/weft/console.h"

namespace weft::cli {

struct TopOptions {
  AdminPort admin{};
  double interval = 1;      // seconds between two reads
  std::uint64_t count = 0;  // samples; 0: until a signal
  bool traces = false;      // the slowest operations instead of the counters
  bool once = false;        // one sample of one read, which has no rates
  double timeout = 5;       // seconds for each read
};

int top(Console& console, const TopOptions& options);

}  // namespace weft::cli
