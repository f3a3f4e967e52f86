// SPDX-License-Identifier: MIT
#include "weft/mem/ring_buffer.h"

#include <algorithm>
#include <cstring>
#include <new>

namespace weft::mem {

Result<RingBuffer> RingBuffer::make_either(std::size_t capacity, std::size_t capacity_max, bool mirrored) noexcept {
  if (capacity == 0 || capacity > capacity_max || capacity_max > kCapacityMax) {
    return Error(Errc::invalid_argument, "the capacity of a ring buffer");
  }
  RingBuffer buffer;
  buffer.capacity_max_ = capacity_max;
  WEFT_TRY(buffer.allocate(capacity, mirrored));
  return buffer;
}

RingBuffer& RingBuffer::operator=(RingBuffer&& other) noexcept {
  if (this != &other) {
    data_ = std::exchange(other.data_, nullptr);
    offset_ = std::exchange(other.offset_, 0);
    size_ = std::exchange(other.size_, 0);
    capacity_ = std::exchange(other.capacity_, 0);
    wrap_ = std::exchange(other.wrap_, kNoWrap);
    capacity_max_ = std::exchange(other.capacity_max_, 0);
    mirror_ = std::exchange(other.mirror_, sys::Mirror());
    block_ = std::move(other.block_);
  }
  return *this;
}

// Moves the contents into memory for `capacity` bytes.
Result<void> RingBuffer::allocate(std::size_t capacity, bool mirrored) noexcept {
  sys::Mirror mirror;
  std::unique_ptr<std::uint8_t[]> block;
  if (mirrored) {
    if (auto made = sys::Mirror::make(capacity)) {
      mirror = std::move(made).value();
    }
  }
  std::uint8_t* data = mirror.data();
  if (data == nullptr) {
    block.reset(new (std::nothrow) std::uint8_t[capacity]);
    data = block.get();
    if (data == nullptr) {
      return Error(Errc::resource_exhausted, "memory for a ring buffer");
    }
  }
  copy_bytes(data, read_view());
  capacity_ = mirror.data() != nullptr ? std::min(mirror.size(), capacity_max_) : capacity;
  wrap_ = mirror.data() != nullptr ? mirror.size() : kNoWrap;
  data_ = data;
  offset_ = 0;
  mirror_ = std::move(mirror);
  block_ = std::move(block);
  return {};
}

Result<void> RingBuffer::make_room(std::size_t least) noexcept {
  if (least > capacity_max_ - size_) {
    return Error(Errc::resource_exhausted, "a ring buffer is full");
  }
  const bool enough = least <= capacity_ - size_;  // copying: the contents stand in the wrong place, and that is all
  if (!enough || (offset_ < size_ && capacity_ < capacity_max_)) {
    const std::size_t capacity = std::min(std::max(2 * capacity_, size_ + least), capacity_max_);
    const Result<void> grown = allocate(capacity, mirrored());
    if (grown || !enough) {
      return grown;
    }
  }
  std::memmove(data_, data_ + offset_, size_);
  offset_ = 0;
  return {};
}

}  // namespace weft::mem
