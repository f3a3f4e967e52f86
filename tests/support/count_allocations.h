// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdlib>

// Counts every allocation of the program. Included by one source of a test program. With sanitizers, which have a
// malloc of their own, WEFT_COUNTS_ALLOCATIONS is not defined.
#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define WEFT_COUNTS_ALLOCATIONS

namespace {
std::atomic<std::size_t> allocations{0};
}  // namespace

extern "C" {
void* __libc_malloc(std::size_t size);  // NOLINT(bugprone-reserved-identifier): glibc's name
void* malloc(std::size_t size) noexcept {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_malloc(size);
}
}
#endif
