// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <string>

#include "weft/base/result.h"

namespace weft::sys {

// Reads a regular file that the operator chose, at most `most` bytes; a symbolic link is followed. Errors: not_found
// (there is no such file, or no regular one); not_permitted; message_too_large (the file has more bytes);
// resource_exhausted (no descriptor); those of the system. Throws std::bad_alloc.
[[nodiscard]] Result<std::string> read_whole_file(const std::string& path, std::size_t most);

}  // namespace weft::sys
