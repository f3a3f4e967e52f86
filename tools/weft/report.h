// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "tools/weft/admin_port.h"
#include "tools/weft/console.h"

namespace weft::cli {

struct ReportOptions {
  AdminPort admin{};   // without an endpoint: no metrics
  double timeout = 5;  // seconds for its answer
};

// Prints one report for the text of a bug. It holds no name of a user or of the machine, no path and no environment.
int report(Console& console, const ReportOptions& options);

}  // namespace weft::cli
