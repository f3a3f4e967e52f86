// SPDX-License-Identifier: MIT
#include "weft/mem/arena.h"

#include <bit>
#include <cstdlib>
#include <utility>

namespace weft::mem {

void Arena::List::push(Block* block) noexcept {
  block->next = first;
  first = block;
  last = last == nullptr ? block : last;
}

void Arena::List::push_back(Block* block) noexcept {
  block->next = nullptr;
  (last == nullptr ? first : last->next) = block;
  last = block;
}

Arena::Block* Arena::List::pop() noexcept {
  Block* const block = first;
  if (block != nullptr) {
    first = block->next;
    last = first == nullptr ? nullptr : last;
  }
  return block;
}

void Arena::List::take_behind(Block* before) noexcept {
  if (before == nullptr) {
    (void)pop();
    return;
  }
  Block* const block = before->next;
  before->next = block->next;
  last = last == block ? before : last;
}

void Arena::List::splice(List& other) noexcept {
  if (other.first == nullptr) {
    return;
  }
  other.last->next = first;
  last = first == nullptr ? other.last : last;
  first = other.first;
  other = List();
}

Arena::~Arena() {
  for (List* list : {&used_, &used_large_, &spare_, &spare_large_}) {
    while (list->first != nullptr) {
      drop(list->pop());
    }
  }
}

void Arena::swap(Arena& other) noexcept {
  std::swap(next_, other.next_);
  std::swap(end_, other.end_);
  std::swap(used_, other.used_);
  std::swap(used_large_, other.used_large_);
  std::swap(spare_, other.spare_);
  std::swap(spare_large_, other.spare_large_);
  std::swap(used_before_, other.used_before_);
  std::swap(held_, other.held_);
  std::swap(options_, other.options_);
}

void* Arena::allocate_elsewhere(std::size_t size, std::size_t alignment) noexcept {
  if (!std::has_single_bit(alignment) || size > options_.bytes_max || alignment > options_.bytes_max) {
    return nullptr;
  }
  const std::size_t room = options_.block_size;
  const std::size_t slack = alignment <= alignof(Block) ? 0 : alignment - 1;
  if (size > room || slack > room - size) {
    return allocate_large(size, alignment);
  }
  Block* block = spare_.pop();
  if (block == nullptr) {
    block = make_block(room + sizeof(Block));
    if (block == nullptr) {
      return nullptr;
    }
  }
  used_before_ = used() + static_cast<std::size_t>(end_ - next_);
  used_.push(block);
  next_ = block->bytes();
  end_ = next_ + room;
  return detail::carve(next_, end_, size, alignment);
}

// Leaves the current block alone, which keeps the room that it has.
void* Arena::allocate_large(std::size_t size, std::size_t alignment) noexcept {
  const std::size_t bytes = size + (alignment <= alignof(Block) ? 0 : alignment - 1) + sizeof(Block);
  if (bytes < size) {
    return nullptr;
  }
  Block* block = take_spare(bytes);
  if (block == nullptr) {
    block = make_block(bytes);
    if (block == nullptr) {
      return nullptr;
    }
  }
  used_large_.push_back(block);
  used_before_ += block->size - sizeof(Block);
  std::byte* next = block->bytes();
  return detail::carve(next, next + (block->size - sizeof(Block)), size, alignment);
}

// Tries the spares in the order of their last use, so that a round like the one before finds each at once; but only so
// many, which then stand behind the others.
Arena::Block* Arena::take_spare(std::size_t bytes) noexcept {
  constexpr int kTriedMost = 16;
  Block* before = nullptr;
  Block* spare = spare_large_.first;
  for (int tried = 0; spare != nullptr && tried < kTriedMost; ++tried) {
    // Skips a spare that is more than twice as large: a larger request may need it.
    if (spare->size >= bytes && spare->size / 2 <= bytes) {
      spare_large_.take_behind(before);
      return spare;
    }
    before = std::exchange(spare, spare->next);
  }
  if (spare != nullptr) {
    spare_large_.last->next = spare_large_.first;
    spare_large_.first = spare;
    spare_large_.last = before;
    before->next = nullptr;
  }
  return nullptr;
}

Arena::Block* Arena::make_block(std::size_t bytes) noexcept {
  if (bytes > options_.bytes_max) {
    return nullptr;
  }
  drop_spares(options_.bytes_max - bytes);
  if (held_ > options_.bytes_max - bytes) {
    return nullptr;
  }
  void* const memory = std::malloc(bytes);
  if (memory == nullptr) {
    return nullptr;
  }
  auto* const block = ::new (memory) Block{nullptr, bytes};
  held_ += bytes;
  poison(block->bytes(), bytes - sizeof(Block));
  return block;
}

void Arena::drop(Block* block) noexcept {
  held_ -= block->size;
  unpoison(block, block->size);
  std::free(block);
}

// Drops spares until at most `held` bytes are held, large ones first.
void Arena::drop_spares(std::size_t held) noexcept {
  while (held_ > held && spare_large_.first != nullptr) {
    drop(spare_large_.pop());
  }
  while (held_ > held && spare_.first != nullptr) {
    drop(spare_.pop());
  }
}

void Arena::reset_chain() noexcept {
  for (List* list : {&used_, &used_large_}) {
#ifdef WEFT_HAVE_POISON
    for (Block* block = list->first; block != nullptr; block = block->next) {
      poison(block->bytes(), block->size - sizeof(Block));
    }
#endif
    (list == &used_ ? spare_ : spare_large_).splice(*list);
  }
  drop_spares(options_.kept_max);
  used_before_ = 0;
  next_ = end_ = nullptr;
  if (Block* const block = spare_.pop(); block != nullptr) {
    used_.push(block);
    next_ = block->bytes();
    end_ = next_ + (block->size - sizeof(Block));
  }
}

bool Arena::owns(const void* address) const noexcept {
  const auto lies_in = [&](std::byte* begin, const std::byte* end) {
    const auto at = reinterpret_cast<std::uintptr_t>(address);
    return at >= reinterpret_cast<std::uintptr_t>(begin) && at < reinterpret_cast<std::uintptr_t>(end);
  };
  for (const List* list : {&used_, &used_large_}) {
    for (Block* block = list->first; block != nullptr; block = block->next) {
      const std::byte* const end = block == used_.first ? next_ : block->bytes() + (block->size - sizeof(Block));
      if (lies_in(block->bytes(), end)) {
        return true;
      }
    }
  }
  return false;
}

}  // namespace weft::mem
