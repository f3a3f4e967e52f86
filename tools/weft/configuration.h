// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "tools/weft/console.h"

namespace weft::cli {

struct ConfigurationOptions {
  std::string action;
  std::string file;
  std::string prefix = "WEFT";
  bool no_files = false;
};

// Checks a server's file of configuration, or shows its keys. Exit code 1: the file is refused.
int configuration(Console& console, const ConfigurationOptions& options);

}  // namespace weft::cli
