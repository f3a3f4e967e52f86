// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>

// Tells AddressSanitizer which bytes must not be touched: an allocator's free blocks. No code in other
// builds.
#if defined(__SANITIZE_ADDRESS__)
#define WEFT_HAVE_POISON 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WEFT_HAVE_POISON 1
#endif
#endif
#ifdef WEFT_HAVE_POISON
#include <sanitizer/asan_interface.h>
#endif

namespace weft::mem {

inline void poison([[maybe_unused]] const void* bytes, [[maybe_unused]] std::size_t size) noexcept {
#ifdef WEFT_HAVE_POISON
  __asan_poison_memory_region(bytes, size);
#endif
}

inline void unpoison([[maybe_unused]] const void* bytes, [[maybe_unused]] std::size_t size) noexcept {
#ifdef WEFT_HAVE_POISON
  __asan_unpoison_memory_region(bytes, size);
#endif
}

}  // namespace weft::mem
