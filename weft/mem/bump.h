// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <span>
#include <type_traits>
#include <utility>

#include "weft/base/result.h"
#include "weft/mem/poison.h"

namespace weft::mem {

namespace detail {

// Takes the next `size` bytes at this alignment between `next` and `end`, and moves `next` after them; or returns null.
// No size or alignment makes the arithmetic wrap around.
[[nodiscard]] inline std::byte* carve(std::byte*& next, const std::byte* end, std::size_t size,
                                      std::size_t alignment) noexcept {
  const auto room = static_cast<std::size_t>(end - next);
  const std::size_t padding = (std::size_t{0} - reinterpret_cast<std::uintptr_t>(next)) & (alignment - 1);
  size += static_cast<std::size_t>(size == 0);  // gets an address of its own
  if (padding > room || size > room - padding || (alignment & (alignment - 1)) != 0 || alignment == 0) [[unlikely]] {
    return nullptr;
  }
  std::byte* const bytes = next + padding;
  next = bytes + size;
  unpoison(bytes, size);
  return bytes;
}

}  // namespace detail

// Bump: memory from one fixed region. reset() gives all of it back at once.
// Owner: its user; a region passed in stays its caller's. Affinity: owning thread.
// Cost: an addition and a comparison. A moved-from Bump has no region and refuses every request.
class Bump {
 public:
  // Allocates the region. Errors: invalid_argument (no bytes); resource_exhausted (no memory).
  [[nodiscard]] static Result<Bump> make(std::size_t bytes) noexcept {
    if (bytes == 0) {
      return Error(Errc::invalid_argument, "a region has at least one byte");
    }
    void* const memory = std::malloc(bytes);
    if (memory == nullptr) {
      return Error(Errc::resource_exhausted, "no memory for the region");
    }
    Bump bump({static_cast<std::byte*>(memory), bytes});
    bump.owned_ = memory;
    return bump;
  }
  // Uses the caller's region, on the stack for example, which outlives the Bump.
  explicit Bump(std::span<std::byte> region) noexcept
      : begin_(region.data()), next_(region.data()), end_(region.data() + region.size()) {
    poison(begin_, capacity());
  }
  Bump(Bump&& other) noexcept
      : begin_(std::exchange(other.begin_, nullptr)),
        next_(std::exchange(other.next_, nullptr)),
        end_(std::exchange(other.end_, nullptr)),
        owned_(std::exchange(other.owned_, nullptr)) {}
  Bump& operator=(Bump&& other) noexcept {
    Bump moved(std::move(other));
    std::swap(begin_, moved.begin_);
    std::swap(next_, moved.next_);
    std::swap(end_, moved.end_);
    std::swap(owned_, moved.owned_);
    return *this;
  }
  ~Bump() {
    unpoison(begin_, capacity());
    std::free(owned_);
  }

  // Returns null if there is no room, or if the alignment is not a power of two. A request of 0 bytes gets an address
  // of its own.
  [[nodiscard]] void* allocate(std::size_t size, std::size_t alignment = alignof(std::max_align_t)) noexcept {
    return detail::carve(next_, end_, size, alignment);
  }
  // Makes an object without a destructor, since reset() runs none. Returns null if there is no room.
  template <typename T, typename... Arguments>
  [[nodiscard]] T* make_object(Arguments&&... arguments) noexcept(std::is_nothrow_constructible_v<T, Arguments...>) {
    static_assert(std::is_trivially_destructible_v<T>);
    void* const memory = allocate(sizeof(T), alignof(T));
    return memory == nullptr ? nullptr : ::new (memory) T(std::forward<Arguments>(arguments)...);
  }

  // Frees all pieces.
  void reset() noexcept {
    poison(begin_, used());
    next_ = begin_;
  }

  [[nodiscard]] bool owns(const void* address) const noexcept {
    const auto at = reinterpret_cast<std::uintptr_t>(address);
    return at - reinterpret_cast<std::uintptr_t>(begin_) < used();
  }
  [[nodiscard]] std::size_t used() const noexcept { return static_cast<std::size_t>(next_ - begin_); }
  [[nodiscard]] std::size_t capacity() const noexcept { return static_cast<std::size_t>(end_ - begin_); }

 private:
  std::byte* begin_ = nullptr;
  std::byte* next_ = nullptr;
  std::byte* end_ = nullptr;
  void* owned_ = nullptr;
};

}  // namespace weft::mem
