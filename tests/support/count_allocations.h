// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdlib>

// Counts every allocation of the program, also those of aligned memory. Included by one source of a test program. With
// sanitizers, which have a malloc of their own, WEFT_COUNTS_ALLOCATIONS is not defined.
#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define WEFT_COUNTS_ALLOCATIONS

namespace {
std::atomic<std::size_t> allocations{0};
}  // namespace

// NOLINTBEGIN(bugprone-reserved-identifier): glibc's names
extern "C" {
void* __libc_malloc(std::size_t size);
void* __libc_calloc(std::size_t count, std::size_t size);
void* __libc_realloc(void* memory, std::size_t size);
void* __libc_memalign(std::size_t alignment, std::size_t size);

void* malloc(std::size_t size) noexcept {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_malloc(size);
}
void* calloc(std::size_t count, std::size_t size) noexcept {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_calloc(count, size);
}
void* realloc(void* memory, std::size_t size) noexcept {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_realloc(memory, size);
}
// The aligned forms of `new` call it.
void* aligned_alloc(std::size_t alignment, std::size_t size) noexcept {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_memalign(alignment, size);
}
int posix_memalign(void** memory, std::size_t alignment, std::size_t size) noexcept {
  allocations.fetch_add(1, std::memory_order_relaxed);
  void* const got = __libc_memalign(alignment, size);
  if (got == nullptr) {
    return ENOMEM;
  }
  *memory = got;
  return 0;
}
}
// NOLINTEND(bugprone-reserved-identifier)
#endif
