// SPDX-License-Identifier: MIT
// For LD_PRELOAD: counts every call that allocates memory from the C library, from any caller.
#include <dlfcn.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace {

std::atomic<std::uint64_t> count{0};

template <typename Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

// dlsym() itself may allocate while the first call resolves the real function.
alignas(64) std::array<unsigned char, 4096> early{};
std::atomic<std::size_t> early_used{0};
thread_local bool looking = false;

void* early_memory(std::size_t size) {
  const std::size_t place = early_used.fetch_add((size + 63) / 64 * 64);
  return place + size <= early.size() ? early.data() + place : nullptr;
}

bool is_early(const void* memory) {
  const auto* const byte = static_cast<const unsigned char*>(memory);
  return byte >= early.data() && byte < early.data() + early.size();
}

template <typename Function>
Function& real(Function& known, const char* name) {
  if (known == nullptr) {
    looking = true;
    known = next<Function>(name);
    looking = false;
  }
  return known;
}

using Malloc = void* (*)(std::size_t);
using Calloc = void* (*)(std::size_t, std::size_t);
using Realloc = void* (*)(void*, std::size_t);
using Free = void (*)(void*);
using Align = int (*)(void**, std::size_t, std::size_t);
Malloc real_malloc = nullptr;
Calloc real_calloc = nullptr, real_aligned = nullptr, real_memalign = nullptr;
Realloc real_realloc = nullptr;
Free real_free = nullptr;
Align real_posix = nullptr;

}  // namespace

extern "C" {

std::uint64_t weft_bench_allocations() { return count.load(std::memory_order_relaxed); }

void* malloc(std::size_t size) {
  count.fetch_add(1, std::memory_order_relaxed);
  return looking ? early_memory(size) : real(real_malloc, "malloc")(size);
}

void* calloc(std::size_t number, std::size_t size) {
  count.fetch_add(1, std::memory_order_relaxed);
  return looking ? early_memory(number * size) : real(real_calloc, "calloc")(number, size);
}

void* realloc(void* memory, std::size_t size) {
  count.fetch_add(1, std::memory_order_relaxed);
  if (is_early(memory)) {
    void* const moved = malloc(size);
    if (moved != nullptr) {
      std::memcpy(moved, memory, size < 64 ? size : 64);
    }
    return moved;
  }
  return real(real_realloc, "realloc")(memory, size);
}

void free(void* memory) {
  if (memory != nullptr && !is_early(memory)) {
    real(real_free, "free")(memory);
  }
}

void* aligned_alloc(std::size_t alignment, std::size_t size) {
  count.fetch_add(1, std::memory_order_relaxed);
  return real(real_aligned, "aligned_alloc")(alignment, size);
}

void* memalign(std::size_t alignment, std::size_t size) {
  count.fetch_add(1, std::memory_order_relaxed);
  return real(real_memalign, "memalign")(alignment, size);
}

int posix_memalign(void** memory, std::size_t alignment, std::size_t size) {
  count.fetch_add(1, std::memory_order_relaxed);
  return real(real_posix, "posix_memalign")(memory, alignment, size);
}

}  // extern "C"
