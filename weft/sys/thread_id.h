// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

namespace weft::sys {

// A number that no other living thread has; never 0. Cost: one load. A later thread may inherit it from one
// that ended.
[[nodiscard]] inline std::uintptr_t thread_id() noexcept {
#if defined(__GNUC__) && !defined(__clang__) && (defined(__x86_64__) || defined(__aarch64__))
  return reinterpret_cast<std::uintptr_t>(__builtin_thread_pointer());
#else
  static thread_local char own = 0;
  return reinterpret_cast<std::uintptr_t>(&own);
#endif
}

}  // namespace weft::sys
