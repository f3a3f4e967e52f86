// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "tools/weft/console.h"

namespace weft::cli {

struct ReportOptions {
  std::string admin;       // endpoint of an admin port; empty: no metrics
  std::string token_file;  // of that port; empty: it has no token
  double timeout = 5;      // seconds for its answer
};

// Prints one report for the text of a bug. It holds no name of a user or of the machine, no path and no environment.
int report(Console& console, const ReportOptions& options);

}  // namespace weft::cli
