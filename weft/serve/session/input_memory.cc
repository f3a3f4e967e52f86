// SPDX-License-Identifier: MIT
#include "weft/serve/session/input_memory.h"

namespace weft::serve {

bool InputMemory::take(std::size_t bytes, const InputHolder& holder) noexcept {
  while (bytes > limit_ || held_ > limit_ - bytes || !budget_.take(bytes, MemoryOwner::received)) {
    if (used_ >> class_of(bytes) == 0) {
      return false;  // no block is as large
    }
    InputHolder* const victim = largest_beside(holder);
    if (victim == nullptr) {
      return false;
    }
    evict_(victim->owner_);
  }
  held_ += bytes;
  return true;
}

// The first holder, or the second, of the list of the largest blocks.
InputHolder* InputMemory::largest_beside(const InputHolder& holder) const noexcept {
  const List<InputHolder>& largest = lists_[class_of(used_)];
  InputHolder* const first = largest.first();
  return first == &holder ? largest.next(*first) : first;
}

void InputMemory::give_back(std::size_t bytes) noexcept {
  held_ -= bytes;
  budget_.give_back(bytes, MemoryOwner::received);
}

void InputMemory::add(InputHolder& holder, std::size_t bytes) noexcept {
  const std::size_t index = class_of(bytes);
  lists_[index].push_back(holder);
  used_ |= std::uint64_t{1} << index;
}

void InputMemory::remove(InputHolder& holder, std::size_t bytes) noexcept {
  const std::size_t index = class_of(bytes);
  holder.unhook();
  if (lists_[index].empty()) {
    used_ &= ~(std::uint64_t{1} << index);
  }
}

}  // namespace weft::serve
