// SPDX-License-Identifier: MIT
// The over-aligned operators new and delete of the test program: during an execution they call the model.
#include "tests/support/model_heap.h"

#include <algorithm>
#include <cstdlib>
#include <new>

#include "tests/support/model_explorer.h"

namespace weft::model {

void Heap::reset() {
  for (const Block& block : blocks_) {
    std::free(block.address);
  }
  blocks_.clear();
  failures_left = 0;
}

void* Heap::allocate(std::size_t size, std::size_t alignment) {
  void* address = std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
  if (address != nullptr) {
    blocks_.push_back({address, size, false});
  }
  return address;
}

Heap::Block* Heap::find(const void* address) {
  const char* byte = static_cast<const char*>(address);
  for (Block& block : blocks_) {
    const char* first = static_cast<const char*>(block.address);
    if (byte >= first && byte < first + block.size) {
      return &block;
    }
  }
  return nullptr;
}

bool Heap::leaks() const {
  return std::any_of(blocks_.begin(), blocks_.end(), [](const Block& block) { return !block.freed; });
}

}  // namespace weft::model

void* operator new(std::size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  using weft::model::Explorer;
  if (Explorer* explorer = Explorer::current(); explorer != nullptr) {
    weft::model::Heap& heap = explorer->heap();
    if (heap.failures_left > 0 && explorer->choose(2) == 1) {
      --heap.failures_left;
      return nullptr;
    }
    return heap.allocate(size, static_cast<std::size_t>(alignment));
  }
  const auto unit = static_cast<std::size_t>(alignment);
  return std::aligned_alloc(unit, (size + unit - 1) / unit * unit);
}

void operator delete(void* address, std::align_val_t /*alignment*/) noexcept {
  using weft::model::Explorer;
  Explorer* explorer = Explorer::current();
  weft::model::Heap::Block* block =
      explorer == nullptr || address == nullptr ? nullptr : explorer->heap().find(address);
  if (block == nullptr) {
    std::free(address);
    return;
  }
  if (block->freed) {
    explorer->fail("memory is freed twice");
  }
  block->freed = true;
  explorer->check(explorer->memory().end_range(explorer->thread(), block->address, block->size));
}
