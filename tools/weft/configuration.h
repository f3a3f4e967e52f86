// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <string_view>

#include "tools/weft/console.h"
#include "weft/serve/config/problem.h"

namespace weft::cli {

struct ConfigurationOptions {
  std::string action;
  std::string file;
  std::string prefix = "WEFT";
  bool no_files = false;
};

// Prints the problems of a file, and returns exit code 1.
int refuse_file(Console& console, const std::string& file, std::string_view why,
                const serve::config::Problems& problems);

// Checks a server's file of configuration, or shows its keys. Exit code 1: the file is refused.
int configuration(Console& console, const ConfigurationOptions& options);

}  // namespace weft::cli
