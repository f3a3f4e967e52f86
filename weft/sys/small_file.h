// SPDX-License-Identifier: MIT
#pragma once

#include <string>

namespace weft::sys {

// The text of a file in /proc or /sys, which are short. Empty when the file cannot be read.
[[nodiscard]] std::string read_small_file(const std::string& path);

// Whether the file system of the path is in memory (tmpfs, ramfs): it is empty after a loss of power. Returns false if
// it is not, or the path is not there.
[[nodiscard]] bool is_in_memory(const std::string& path) noexcept;

}  // namespace weft::sys
