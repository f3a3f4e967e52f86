// SPDX-License-Identifier: MIT
#pragma once

#include <malloc.h>

#include <cstddef>

namespace weft::msg {

// The bytes of all heaps of the process. Sanitizers: 0.
inline std::size_t bytes_in_use() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return 0;
#else
  const struct mallinfo2 info = ::mallinfo2();
  return info.uordblks + info.hblkhd;
#endif
}

}  // namespace weft::msg
