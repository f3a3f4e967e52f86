// SPDX-License-Identifier: MIT
#include "tests/exhaustion/failing_memory.h"

#include <atomic>
#include <cstdint>
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

// The same for the other threads: they count down `spared` together. Relaxed: the test's thread arms before it makes
// the threads that it watches, and a count that is off by one only fails another allocation.
struct OthersState {
  std::atomic<bool> armed{false};
  std::atomic<bool> failed{false};
  std::atomic<std::size_t> spared{0};
};
OthersState others;
thread_local bool arms_others = false;
std::atomic<std::int64_t> live_count{0};

bool refuses_other() noexcept {
  if (arms_others || others.spared.fetch_sub(1, std::memory_order_relaxed) != 0) {
    return false;
  }
  others.armed.store(false, std::memory_order_relaxed);
  others.failed.store(true, std::memory_order_relaxed);
  return true;
}

bool refuses() noexcept {
  if (others.armed.load(std::memory_order_relaxed)) {
    return refuses_other();
  }
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
void __real_free(void* block);

static void* counted(void* block) {
  live_count.fetch_add(block != nullptr ? 1 : 0, std::memory_order_relaxed);
  return block;
}
void* __wrap_malloc(std::size_t size) { return refuses() ? nullptr : counted(__real_malloc(size)); }
void* __wrap_calloc(std::size_t count, std::size_t size) {
  return refuses() ? nullptr : counted(__real_calloc(count, size));
}
void* __wrap_realloc(void* block, std::size_t size) {
  if (refuses()) {
    return nullptr;
  }
  void* const moved = __real_realloc(block, size);
  return block == nullptr ? counted(moved) : moved;
}
void* __wrap_aligned_alloc(std::size_t alignment, std::size_t size) {
  return refuses() ? nullptr : counted(__real_aligned_alloc(alignment, size));
}
void __wrap_free(void* block) {
  live_count.fetch_sub(block != nullptr ? 1 : 0, std::memory_order_relaxed);
  __real_free(block);
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

OthersFailingMemory::OthersFailingMemory(std::size_t spared) noexcept {
  arms_others = true;
  others.failed.store(false, std::memory_order_relaxed);
  others.spared.store(spared, std::memory_order_relaxed);
  others.armed.store(true, std::memory_order_relaxed);
}
OthersFailingMemory::~OthersFailingMemory() {
  end();
  arms_others = false;
}
void OthersFailingMemory::end() noexcept { others.armed.store(false, std::memory_order_relaxed); }
bool OthersFailingMemory::failed() const noexcept { return others.failed.load(std::memory_order_relaxed); }

std::int64_t live_allocations() noexcept { return live_count.load(std::memory_order_relaxed); }

}  // namespace weft::test
