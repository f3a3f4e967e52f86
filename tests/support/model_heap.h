// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <vector>

namespace weft::model {

// Heap: the over-aligned memory that one execution allocates. The heap keeps a freed block to the end of the execution,
// so that it notices a later use and no address means two blocks.
// Affinity: the exploring thread.
class Heap {
 public:
  struct Block {
    void* address = nullptr;
    std::size_t size = 0;
    bool freed = false;
  };

  Heap() = default;
  ~Heap() { reset(); }
  Heap(const Heap&) = delete;
  Heap& operator=(const Heap&) = delete;

  void reset();
  [[nodiscard]] void* allocate(std::size_t size, std::size_t alignment);
  [[nodiscard]] Block* find(const void* address);  // the block that contains the address, or null
  [[nodiscard]] bool leaks() const;

  int failures_left = 0;

 private:
  std::vector<Block> blocks_;
};

}  // namespace weft::model
