// SPDX-License-Identifier: MIT
// libbench_heap_shift.so, for LD_PRELOAD: the heap of a program begins WEFT_HEAP_SHIFT bytes further up. The block is
// allocated before the constructors of the program, so that the blocks that these free, and malloc reuses, move too.
#include <cstdlib>

void* bench_heap_shift = [] {
  const char* const bytes = std::getenv("WEFT_HEAP_SHIFT");
  return bytes == nullptr ? nullptr : std::malloc(std::strtoul(bytes, nullptr, 10));
}();
