// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "tools/weft/serving.h"

namespace weft::cli {

struct BridgeOptions {
  std::string file{};
  bool check = false;  // of the file alone: nothing is opened
  ServingOptions serving{};
};

// Runs until a signal, and then returns 0. Exit code 1: the file is refused. Failure: the bridge could not begin.
int run_bridge(Console& console, const BridgeOptions& options);

}  // namespace weft::cli
