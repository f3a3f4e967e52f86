// SPDX-License-Identifier: MIT
#pragma once

#include <string>

namespace weft::sys {

// The text of a file of /proc or /sys, which are short; empty when it cannot be read.
[[nodiscard]] std::string read_small_file(const std::string& path);

}  // namespace weft::sys
