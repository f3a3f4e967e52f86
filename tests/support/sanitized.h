// SPDX-License-Identifier: MIT
#pragma once

namespace weft {

// A build whose sanitizer takes several times as long for everything.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace weft
