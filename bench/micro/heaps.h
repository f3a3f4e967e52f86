// SPDX-License-Identifier: MIT
#pragma once

#include <dlfcn.h>

#include <cstddef>
#include <cstdlib>
#include <string>
#include <vector>

#ifdef WEFT_RIVAL_jemalloc
extern "C" {
void* jemalloc_malloc(std::size_t size);
void jemalloc_free(void* block);
}
#endif

namespace bench {

// A rival of the allocators: its malloc and free. Both are called through pointers, so that no compiler can
// remove a pair of calls.
struct Heap {
  std::string name;
  void* (*allocate)(std::size_t size);
  void (*deallocate)(void* block);
};

// glibc, and mimalloc and jemalloc if this machine has them. Both would take over the name malloc. So
// mimalloc is loaded beside it, and jemalloc is linked under other names: its static thread-local data
// prevents loading.
inline const std::vector<Heap>& heaps() {
  static const std::vector<Heap> all = [] {
    std::vector<Heap> found{{"glibc", std::malloc, std::free}};
    if (void* const library = dlopen("libmimalloc.so.2", RTLD_NOW | RTLD_LOCAL); library != nullptr) {
      found.push_back({"mimalloc", reinterpret_cast<void* (*)(std::size_t)>(dlsym(library, "mi_malloc")),
                       reinterpret_cast<void (*)(void*)>(dlsym(library, "mi_free"))});
    }
#ifdef WEFT_RIVAL_jemalloc
    found.push_back({"jemalloc", jemalloc_malloc, jemalloc_free});
#endif
    return found;
  }();
  return all;
}

}  // namespace bench
