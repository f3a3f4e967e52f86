// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "weft/base/bytes.h"
#include "weft/base/result.h"
#include "weft/sys/mirror.h"

namespace weft::mem {

// RingBuffer: a queue of bytes whose contents, and whose room, are always one piece of memory.
// Owner: a move-only value. A moved-from one is empty and has no room. Affinity: one thread at a time.
// Cost: only write() and growing copy; growing moves the contents once. The memory is mapped twice, back to back, so
// that the end continues at the beginning (4 KB and two mappings at least).
// Where the system refuses that, and after make_copying(), calls move the contents to the front of a plain block from
// time to time: at most once per byte on average, except in a buffer that cannot grow and is kept nearly full.
// Invariants:
// 1. size() <= capacity() <= capacity_max(); capacity() only grows.
// 2. The reader gets the committed bytes, in their order.
// 3. A call that fails changes nothing.
// 4. A view is valid until the next call that is not const.
class RingBuffer {
 public:
  static constexpr std::size_t kCapacityMax = std::size_t{1} << 40;

  // Makes a buffer that holds at least `capacity` bytes, and grows up to exactly `capacity_max` bytes. Errors:
  // invalid_argument (zero, out of order, or above kCapacityMax); resource_exhausted (no memory).
  [[nodiscard]] static Result<RingBuffer> make(std::size_t capacity, std::size_t capacity_max) noexcept {
    return make_either(capacity, capacity_max, true);
  }
  // The same without mappings, for small or short-lived buffers.
  [[nodiscard]] static Result<RingBuffer> make_copying(std::size_t capacity, std::size_t capacity_max) noexcept {
    return make_either(capacity, capacity_max, false);
  }

  RingBuffer(RingBuffer&& other) noexcept { *this = std::move(other); }
  RingBuffer& operator=(RingBuffer&& other) noexcept;
  RingBuffer(const RingBuffer&) = delete;
  RingBuffer& operator=(const RingBuffer&) = delete;
  ~RingBuffer() = default;

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }
  [[nodiscard]] std::size_t capacity_max() const noexcept { return capacity_max_; }
  [[nodiscard]] bool mirrored() const noexcept { return mirror_.data() != nullptr; }  // and therefore copies nothing

  // Returns room for `least` bytes or more after the contents. Fails with resource_exhausted if the contents would
  // exceed capacity_max(), or if there is no memory.
  [[nodiscard]] Result<MutableBytes> write_view(std::size_t least) noexcept {
    if (room() < least) [[unlikely]] {
      WEFT_TRY(make_room(least));
    }
    return MutableBytes(data_ + offset_ + size_, room());
  }
  // Makes the first `count` bytes of that room contents. Fails with invalid_argument if there is less room.
  Result<void> commit(std::size_t count) noexcept {
    if (count > room()) [[unlikely]] {
      return Error(Errc::invalid_argument, "committed more than there is room for");
    }
    size_ += count;
    return {};
  }
  // Writes all of the bytes or none. Errors: resource_exhausted.
  Result<void> write(Bytes bytes) noexcept {
    const MutableBytes view = WEFT_TRY(write_view(bytes.size()));
    copy_bytes(view.data(), bytes);
    size_ += bytes.size();
    return {};
  }

  [[nodiscard]] Bytes read_view() const noexcept { return {data_ + offset_, size_}; }
  // Drops the first `count` bytes. Fails with invalid_argument if there are fewer.
  Result<void> consume(std::size_t count) noexcept {
    if (count > size_) [[unlikely]] {
      return Error(Errc::invalid_argument, "consumed more than there is");
    }
    size_ -= count;
    offset_ += count;
    if (size_ == 0) {
      offset_ = 0;  // use the same cache lines again, while they are warm
    } else if (offset_ >= wrap_) {
      offset_ -= wrap_;
    }
    return {};
  }

 private:
  RingBuffer() noexcept = default;
  static Result<RingBuffer> make_either(std::size_t capacity, std::size_t capacity_max, bool mirrored) noexcept;

  [[nodiscard]] std::size_t room() const noexcept { return capacity_ - size_ - (mirrored() ? 0 : offset_); }
  Result<void> make_room(std::size_t least) noexcept;
  Result<void> allocate(std::size_t capacity, bool mirrored) noexcept;

  static constexpr std::size_t kNoWrap = ~std::size_t{0};

  std::uint8_t* data_ = nullptr;
  std::size_t offset_ = 0;  // of the contents
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
  std::size_t wrap_ = kNoWrap;  // where the mirror's first half ends
  std::size_t capacity_max_ = 0;
  sys::Mirror mirror_;                     // the memory is either this
  std::unique_ptr<std::uint8_t[]> block_;  // or this
};

}  // namespace weft::mem
