// SPDX-License-Identifier: MIT
#pragma once

#include <string>

namespace weft::sys {

// The text of a file in /proc or /sys, which are short. Empty when the file cannot be read.
[[nodiscard]] std::string read_small_file(const std::string& path);

}  // namespace weft::sys
