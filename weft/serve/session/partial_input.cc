// SPDX-License-Identifier: MIT
#include "weft/serve/session/partial_input.h"

#include <cstring>

namespace weft::serve {

bool PartialInput::make_room(std::size_t more, InputMemory& memory) noexcept {
  const std::size_t have = size();
  const std::size_t wanted = std::max({kMin, have + more, std::min(needed_, std::max(kStep, 4 * have))});
  if (block_ != nullptr && block_->capacity() >= wanted) {
    if (block_->capacity() - begin_ < wanted) {
      std::memmove(block_->data(), block_->data() + begin_, have);
      begin_ = 0;
      end_ = have;
    }
    return true;
  }
  mem::Buffer* const block = mem::Buffer::make(wanted);
  if (block == nullptr || !memory.take(block->capacity(), *this)) {
    if (block != nullptr) {
      block->release();
    }
    return false;
  }
  copy_bytes(block->data(), bytes());
  drop(memory);
  block_ = block;
  memory.add(*this, block->capacity());
  end_ = have;
  return true;
}

bool PartialInput::append(Bytes bytes, InputMemory& memory) noexcept {
  if (bytes.empty()) {
    return true;
  }
  if (!make_room(bytes.size(), memory)) {
    return false;
  }
  copy_bytes(block_->data() + end_, bytes);
  extend(bytes.size(), memory);
  return true;
}

void PartialInput::drop(InputMemory& memory) noexcept {
  if (block_ != nullptr) {
    memory.remove(*this, block_->capacity());
    memory.give_back(block_->capacity());
    block_->release();
    block_ = nullptr;
  }
  begin_ = end_ = 0;
}

}  // namespace weft::serve
