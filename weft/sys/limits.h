// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>

#include "weft/base/result.h"

namespace weft::sys {

// How many descriptors this process may have open at a time, as far as the system's hard limit allows; gives how many
// it was. A server with 10,000 connections asks for more than the usual 1024.
Result<std::size_t> set_descriptor_limit(std::size_t count) noexcept;

}  // namespace weft::sys
