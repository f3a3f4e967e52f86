// SPDX-License-Identifier: MIT
#include "weft/topic/node/message_blocks.h"

namespace weft::topic {

MessageBlocks::~MessageBlocks() {
  for (std::size_t i = 0; i < used_; ++i) {
    delete blocks_[index_of(end_ - 1 - i * kMessages)];
  }
  while (spares_ != nullptr) {
    delete std::exchange(spares_, spares_->next);
  }
}

bool MessageBlocks::grow() noexcept {
  constexpr std::size_t kPointersLeast = 4;
  const std::size_t capacity = capacity_ == 0 ? kPointersLeast : 2 * capacity_;
  std::unique_ptr<Block*[]> blocks(new (std::nothrow) Block*[capacity]);
  if (blocks == nullptr) {
    return false;
  }
  for (std::size_t i = 0; i < used_; ++i) {
    const std::uint64_t number = end_ - 1 - i * kMessages;
    blocks[static_cast<std::size_t>(number / kMessages) & (capacity - 1)] = blocks_[index_of(number)];
  }
  blocks_ = std::move(blocks);
  capacity_ = capacity;
  return true;
}

bool MessageBlocks::add() noexcept {
  if (used_ == capacity_ && !grow()) {
    return false;
  }
  Block* block = spares_;
  if (block != nullptr) {
    spares_ = block->next;
    --spare_count_;
  } else {
    block = new (std::nothrow) Block();
    if (block == nullptr) {
      return false;
    }
  }
  blocks_[index_of(end_)] = block;
  ++used_;
  end_ += kMessages;
  return true;
}

void MessageBlocks::free_block(std::uint64_t number) noexcept {
  Block* const block = blocks_[index_of(number)];
  --used_;
  if (spare_count_ == kSparesMax) {
    delete block;
    return;
  }
  block->next = std::exchange(spares_, block);
  ++spare_count_;
}

std::uint64_t MessageBlocks::restart(std::uint64_t number) noexcept {
  if (capacity_ > kPointersMax) {
    while (used_ != 0) {
      free_block(end_ - used_ * kMessages);
    }
    blocks_.reset();
    capacity_ = 0;
    return end_;
  }
  return number - number % kMessages;
}

}  // namespace weft::topic
