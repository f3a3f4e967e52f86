// SPDX-License-Identifier: MIT
#include "tests/exhaustion/failing_memory.h"

#include <cstdlib>
#include <new>

namespace {

struct State {
  bool armed = false;
  bool all = false;
  bool failed = false;
  std::size_t spared = 0;
};
thread_local State state;

bool refuses() noexcept {
  if (!state.armed) {
    return false;
  }
  if (state.spared > 0) {
    --state.spared;
    return false;
  }
  state.failed = true;
  state.armed = state.all;
  return true;
}

void* allocate(std::size_t size, std::size_t alignment = 0) noexcept {
  return alignment == 0 ? std::malloc(size) : std::aligned_alloc(alignment, (size + alignment - 1) & ~(alignment - 1));
}
void* allocate_or_throw(std::size_t size, std::size_t alignment = 0) {
  if (void* const block = allocate(size, alignment); block != nullptr) {
    return block;
  }
  throw std::bad_alloc();
}

}  // namespace

extern "C" {  // NOLINTBEGIN(bugprone-reserved-identifier): the linker's names
void* __real_malloc(std::size_t size);
void* __real_calloc(std::size_t count, std::size_t size);
void* __real_realloc(void* block, std::size_t size);
void* __real_aligned_alloc(std::size_t alignment, std::size_t size);

void* __wrap_malloc(std::size_t size) { return refuses() ? nullptr : __real_malloc(size); }
void* __wrap_calloc(std::size_t count, std::size_t size) { return refuses() ? nullptr : __real_calloc(count, size); }
void* __wrap_realloc(void* block, std::size_t size) { return refuses() ? nullptr : __real_realloc(block, size); }
void* __wrap_aligned_alloc(std::size_t alignment, std::size_t size) {
  return refuses() ? nullptr : __real_aligned_alloc(alignment, size);
}
}  // NOLINTEND(bugprone-reserved-identifier)

void* operator new(std::size_t size) { return allocate_or_throw(size); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  return allocate_or_throw(size, static_cast<std::size_t>(alignment));
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept { return allocate(size); }
void* operator new(std::size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return allocate(size, static_cast<std::size_t>(alignment));
}
void operator delete(void* block) noexcept { std::free(block); }
void operator delete(void* block, std::size_t) noexcept { std::free(block); }
void operator delete(void* block, std::align_val_t) noexcept { std::free(block); }
void operator delete(void* block, std::size_t, std::align_val_t) noexcept { std::free(block); }
void operator delete(void* block, const std::nothrow_t&) noexcept { std::free(block); }
void operator delete(void* block, std::align_val_t, const std::nothrow_t&) noexcept { std::free(block); }

namespace weft::test {

FailingMemory::FailingMemory(std::size_t spared, Length length) noexcept {
  state = {true, length == Length::all, false, spared};
}
FailingMemory::~FailingMemory() { state = {}; }
void FailingMemory::end() noexcept { state.armed = false; }
void FailingMemory::resume() noexcept { state.armed = !state.failed || state.all; }
bool FailingMemory::failed() const noexcept { return state.failed; }

}  // namespace weft::test
