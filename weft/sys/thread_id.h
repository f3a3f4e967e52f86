// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <cstddef>
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

namespace detail {
inline constinit std::atomic<std::size_t> threads_numbered{0};
}

// A number of the thread: successive threads that ask have successive ones, and no two of them the same. Cost: one load
// and one comparison after the first call.
[[nodiscard]] inline std::size_t thread_number() noexcept {
  static thread_local constinit std::size_t number = 0;  // 0: none yet
  if (number == 0) [[unlikely]] {
    number = 1 + detail::threads_numbered.fetch_add(1, std::memory_order_relaxed);  // a number stands alone
  }
  return number - 1;
}

}  // namespace weft::sys
