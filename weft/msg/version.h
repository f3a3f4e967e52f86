// SPDX-License-Identifier: MIT
#pragma once

namespace weft {

// Returns the version of the library that the program runs with, for example "0.1.0". The text is static.
// WEFT_VERSION is the version of the headers that the program was compiled with; libweft.so may be a later patch.
[[nodiscard]] const char* version() noexcept;

}  // namespace weft
