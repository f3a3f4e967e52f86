// SPDX-License-Identifier: MIT
#include "weft/serve/session/partial_input.h"

#include <cstring>

namespace weft::serve {

bool PartialInput::make_room(std::size_t more, ByteBudget::Share& budget) noexcept {
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
  if (block == nullptr || !budget.take(block->capacity())) {
    if (block != nullptr) {
      block->release();
    }
    return false;
  }
  copy_bytes(block->data(), bytes());
  drop(budget);
  block_ = block;
  end_ = have;
  return true;
}

bool PartialInput::append(Bytes bytes, ByteBudget::Share& budget) noexcept {
  if (bytes.empty()) {
    return true;
  }
  if (!make_room(bytes.size(), budget)) {
    return false;
  }
  copy_bytes(block_->data() + end_, bytes);
  end_ += bytes.size();
  return true;
}

void PartialInput::drop(ByteBudget::Share& budget) noexcept {
  if (block_ != nullptr) {
    budget.give_back(block_->capacity());
    block_->release();
    block_ = nullptr;
  }
  begin_ = end_ = 0;
}

}  // namespace weft::serve
