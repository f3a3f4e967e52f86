// SPDX-License-Identifier: MIT
#include "weft/mem/arena.h"

#include <bit>
#include <cstdlib>

namespace weft::mem {

void Arena::List::push(Block* block) noexcept {
  block->next = first;
  first = block;
  last = last == nullptr ? block : last;
}

Arena::Block* Arena::List::pop() noexcept {
  Block* const block = first;
  if (block != nullptr) {
    first = block->next;
    last = first == nullptr ? nullptr : last;
  }
  return block;
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

namespace {

// Classes of sizes, four for each doubling: the class of the largest limit that is not above `size`.
unsigned class_below(std::size_t size) noexcept {
  const auto doubling = static_cast<unsigned>(std::bit_width(size));
  return doubling * 4 + static_cast<unsigned>((size >> (doubling - 3)) & 3);  // size is at least kBlockMin
}
unsigned class_above(std::size_t size) noexcept { return class_below(size - 1) + 1; }
std::size_t limit_of(unsigned index) noexcept { return (std::size_t{4} + index % 4) << (index / 4 - 3); }

// `size` up to the next limit.
std::size_t rounded_up(std::size_t size) noexcept { return size > SIZE_MAX / 4 ? size : limit_of(class_above(size)); }

}  // namespace

void Arena::LargeSpares::note(unsigned index) noexcept {
  const std::uint32_t bit = std::uint32_t{1} << index;
  filled_ = first_[index] != nullptr ? filled_ | bit : filled_ & ~bit;
}

void Arena::LargeSpares::push(Block* block, unsigned smallest) noexcept {
  const unsigned index = std::min(class_below(block->size) - smallest, kLast);
  block->next = std::exchange(first_[index], block);
  note(index);
}

Arena::Block* Arena::LargeSpares::pop(std::size_t bytes, unsigned smallest) noexcept {
  const unsigned wanted = class_above(bytes) - smallest;
  for (unsigned index = wanted; index < std::min(wanted + 5, kLast); ++index) {
    if (Block* const block = first_[index]; block != nullptr) {
      first_[index] = block->next;
      note(index);
      return block;
    }
  }
  return wanted + 5 > kLast ? pop_from_last(bytes) : nullptr;
}

Arena::Block* Arena::LargeSpares::pop_from_last(std::size_t bytes) noexcept {
  constexpr int kSearched = 16;  // blocks; so that a request takes constant time
  Block** place = &first_[kLast];
  for (int i = 0; i < kSearched && *place != nullptr; ++i, place = &(*place)->next) {
    Block* const block = *place;
    if (block->size >= bytes && block->size / 2 <= bytes) {
      *place = block->next;
      note(kLast);
      return block;
    }
  }
  return nullptr;
}

Arena::Block* Arena::LargeSpares::pop_largest() noexcept {
  if (filled_ == 0) {
    return nullptr;
  }
  const auto index = static_cast<unsigned>(std::bit_width(filled_)) - 1;
  Block* const block = first_[index];
  first_[index] = block->next;
  note(index);
  return block;
}

Arena::~Arena() {
  for (List* list : {&used_, &used_large_, &spare_}) {
    while (list->first != nullptr) {
      drop(list->pop());
    }
  }
  while (Block* const block = spare_large_.pop_largest()) {
    drop(block);
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
  Block* block = spare_large_.pop(bytes, class_below(options_.block_size));
  if (block == nullptr) {
    block = make_block(rounded_up(bytes));
  }
  if (block == nullptr) {
    block = make_block(bytes);  // the bound, or malloc, has no room for more
  }
  if (block == nullptr) {
    return nullptr;
  }
  used_large_.push(block);
  used_before_ += block->size - sizeof(Block);
  std::byte* next = block->bytes();
  return detail::carve(next, next + (block->size - sizeof(Block)), size, alignment);
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
  while (held_ > held) {
    Block* const block = spare_large_.pop_largest();
    if (block == nullptr) {
      break;
    }
    drop(block);
  }
  while (held_ > held && spare_.first != nullptr) {
    drop(spare_.pop());
  }
}

void Arena::reset_chain() noexcept {
#ifdef WEFT_HAVE_POISON
  for (List* list : {&used_, &used_large_}) {
    for (Block* block = list->first; block != nullptr; block = block->next) {
      poison(block->bytes(), block->size - sizeof(Block));
    }
  }
#endif
  spare_.splice(used_);
  const unsigned smallest = class_below(options_.block_size);
  while (Block* const block = used_large_.pop()) {
    spare_large_.push(block, smallest);
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
