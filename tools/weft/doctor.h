// SPDX-License-Identifier: MIT
#pragma once

#include "tools/weft/console.h"

namespace weft::cli {

// Reads what limits this process and this machine, and says what to change and why. `strict`: exit code 1 when a line
// is a warning.
int doctor(Console& console, bool strict);

}  // namespace weft::cli
