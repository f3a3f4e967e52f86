// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>

#include "weft/base/result.h"

namespace weft::sys {

// Sets the number of descriptors that this process may have open, up to the system's hard limit. Returns the
// former number. A server with 10,000 connections needs more than the usual 1024.
Result<std::size_t> set_descriptor_limit(std::size_t count) noexcept;

// Raises the limit to `count`, or to the hard limit where that is lower. A limit that is higher stays. Returns the
// limit that holds now.
Result<std::size_t> raise_descriptor_limit(std::size_t count) noexcept;

}  // namespace weft::sys
