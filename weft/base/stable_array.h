// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>
#include <type_traits>

namespace weft {

// StableArray: an array that grows at its end and whose elements never move.
// Owner: its user. Affinity: one thread.
// Cost: an access is two loads. Memory comes in chunks of kChunk elements, stays until the array ends, and
// its pages cost nothing until they are used. Growing copies at most one pointer for each chunk.
template <typename T>
class StableArray {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

 public:
  static constexpr std::uint32_t kChunk = 1024;
  static constexpr std::uint32_t kSizeMax = ~std::uint32_t{0} - kChunk + 1;
  static constexpr std::size_t kAlignment = 256;  // of a chunk

  StableArray() = default;
  StableArray(const StableArray&) = delete;
  StableArray& operator=(const StableArray&) = delete;
  ~StableArray() {
    for (std::uint32_t first = 0; first < size_; first += kChunk) {
      ::operator delete(chunks_[first / kChunk], std::align_val_t{kAlignment});
    }
    delete[] chunks_;
  }

  [[nodiscard]] std::uint32_t size() const noexcept { return size_; }
  [[nodiscard]] T& operator[](std::uint32_t index) noexcept { return chunks_[index / kChunk][index % kChunk]; }
  [[nodiscard]] const T& operator[](std::uint32_t index) const noexcept {
    return chunks_[index / kChunk][index % kChunk];
  }

  // Adds `count` adjacent elements with undefined values. `count` divides kChunk and is the same in all calls. Returns
  // false if memory or kSizeMax ran out, and nothing changes.
  [[nodiscard]] bool grow(std::uint32_t count = 1) noexcept {
    if (kSizeMax - size_ < count || (size_ % kChunk == 0 && !add_chunk())) {
      return false;
    }
    size_ += count;
    return true;
  }

 private:
  static_assert(alignof(T) <= kAlignment);

  bool add_chunk() noexcept {
    const std::uint32_t count = size_ / kChunk;
    if (count == places_) {
      const std::uint32_t places = std::max(2 * places_, 4u);
      T** chunks = new (std::nothrow) T*[places];
      if (chunks == nullptr) {
        return false;
      }
      std::copy_n(chunks_, count, chunks);
      delete[] chunks_;
      chunks_ = chunks;
      places_ = places;
    }
    chunks_[count] = static_cast<T*>(::operator new(kChunk * sizeof(T), std::align_val_t{kAlignment}, std::nothrow));
    return chunks_[count] != nullptr;
  }

  T** chunks_ = nullptr;
  std::uint32_t places_ = 0;  // in chunks_
  std::uint32_t size_ = 0;
};

}  // namespace weft
