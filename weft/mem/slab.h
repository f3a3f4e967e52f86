// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#include "weft/base/result.h"
#include "weft/mem/poison.h"

namespace weft::mem {

// The reaction to the return of an address that is not a live block: `name_it` prints the bug and aborts; `refuse`
// changes nothing and returns false.
enum class Misuse : std::uint8_t { refuse, name_it };

// name_it in a library that was built with assertions (without NDEBUG), otherwise refuse.
[[nodiscard]] Misuse misuse_of_this_build() noexcept;

struct SlabOptions {
  std::size_t block_size = 0;                         // bytes of a block, at least 1
  std::size_t alignment = alignof(std::max_align_t);  // of each block, a power of two
  std::size_t blocks_max = std::size_t{1} << 20;      // live blocks at a time
  std::size_t first_blocks = 1024;  // memory for this many at first; later for three times the present number
  Misuse misuse = misuse_of_this_build();
};

// Slab: blocks of one size, taken and given back in any order.
// Owner: its user; all blocks end with the slab. Affinity: owning thread.
// Cost: taking reads one entry of a stack; giving back writes one and checks. Neither touches the block, and
// only growing asks the system. A block costs its size rounded up to the alignment, and 12 bytes beside it.
// The slab never touches memory that it has not handed out, and frees memory only when the slab ends. A
// moved-from slab refuses everything.
// Invariants:
// 1. A block is free if it was never handed out, or if it is in the stack at its noted place. Nothing that its user
//    writes into the block, while it is live or after, affects this.
// 2. Numbers count blocks by address within a chunk, and chunks by age. The stack is empty when a chunk is
//    added.
class Slab {
 public:
  static constexpr std::size_t kBlockSizeMax = std::size_t{1} << 32;
  static constexpr std::size_t kBlocksMax = std::size_t{1} << 31;
  static constexpr std::size_t kAlignmentMax = std::size_t{1} << 16;

  // Errors: invalid_argument (a size of 0 or above kBlockSizeMax, an alignment that is not a power of two or is above
  // kAlignmentMax, no blocks or more than kBlocksMax). Allocates no memory yet.
  [[nodiscard]] static Result<Slab> make(const SlabOptions& options) noexcept;

  Slab(Slab&& other) noexcept { swap(other); }
  Slab& operator=(Slab&& other) noexcept {
    Slab moved(std::move(other));
    swap(moved);
    return *this;
  }
  ~Slab();

  // Returns null if blocks_max are live, or if there is no memory.
  [[nodiscard]] void* allocate() noexcept {
    std::byte* block;
    if (free_count_ != 0) [[likely]] {
      block = free_[--free_count_];
    } else {
      if (fresh_ == capacity_ && !grow()) [[unlikely]] {
        return nullptr;
      }
      block = newest_ + (fresh_++ - newest_begin_) * stride_;
    }
    unpoison(block, block_size_);
    return block;
  }

  // Returns false, and changes nothing, if the address is not the beginning of a block of this slab, or if the block is
  // free already. With Misuse::name_it the call prints the bug and ends the process instead. Null is accepted without
  // an effect.
  bool deallocate(void* block) noexcept {
    const std::uint32_t number = number_of(block);
    if (number == kNone) [[unlikely]] {
      return block == nullptr || misused("not a block of this slab", block);
    }
    if (is_free(number, block)) [[unlikely]] {
      return misused("a block is given back that is free already", block);
    }
    place_[number] = free_count_;
    free_[free_count_++] = static_cast<std::byte*>(block);
    poison(block, block_size_);
    return true;
  }

  // The two halves of deallocate(), for an object whose destructor runs in between. After retire() the slab does not
  // own the block, and does not hand it out until recycle(). Returns false like deallocate(), also for a retired block.
  bool retire(void* block) noexcept {
    const std::uint32_t number = number_of(block);
    if (number == kNone) [[unlikely]] {
      return block == nullptr || misused("not a block of this slab", block);
    }
    if (!is_live(number, block)) [[unlikely]] {
      return misused("a block is given back that is free already", block);
    }
    place_[number] = capacity_;
    ++retired_;
    return true;
  }
  void recycle(void* block) noexcept {  // requires retire()
    --retired_;
    place_[number_of(block)] = free_count_;
    free_[free_count_++] = static_cast<std::byte*>(block);
    poison(block, block_size_);
  }

  // Whether `block` is the beginning of a live block. Any address is allowed.
  [[nodiscard]] bool owns(const void* block) const noexcept {
    const std::uint32_t number = number_of(block);
    return number != kNone && is_live(number, block);
  }

  [[nodiscard]] std::size_t live_count() const noexcept { return fresh_ - free_count_; }
  [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }  // blocks that have memory
  [[nodiscard]] std::size_t blocks_max() const noexcept { return blocks_max_; }
  [[nodiscard]] std::size_t block_size() const noexcept { return block_size_; }
  [[nodiscard]] std::size_t alignment() const noexcept { return alignment_; }

  // Calls visit(void*) for each live block. visit takes no blocks, and may give back any.
  template <typename Visit>
  void for_each_live(Visit visit) const {
    for (std::uint32_t index = 0; index < chunk_count_; ++index) {
      for (std::uint32_t number = chunks_[index].begin; number < end_of(index); ++number) {
        std::byte* const block = chunks_[index].blocks + (number - chunks_[index].begin) * stride_;
        if (is_live(number, block)) {
          visit(static_cast<void*>(block));
        }
      }
    }
  }

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  static constexpr std::size_t kChunksMax = 18;
  struct Chunk {
    std::byte* blocks = nullptr;
    std::uint32_t begin = 0;  // the number of its first block
  };

  Slab() noexcept = default;
  void swap(Slab& other) noexcept;
  [[nodiscard]] bool grow() noexcept;
  bool misused(const char* what, const void* block) const noexcept;
  [[nodiscard]] std::uint32_t number_of_older(const void* block) const noexcept;

  [[nodiscard]] bool is_free(std::uint32_t number, const void* block) const noexcept {
    const std::uint32_t place = place_[number];
    return static_cast<bool>(static_cast<int>(place < free_count_) & static_cast<int>(free_[place] == block));
  }
  [[nodiscard]] bool is_live(std::uint32_t number, const void* block) const noexcept {
    return !is_free(number, block) && place_[number] != capacity_;
  }
  // The number after the last block of the chunk that was ever handed out.
  [[nodiscard]] std::uint32_t end_of(std::uint32_t chunk) const noexcept {
    return chunk + 1 < chunk_count_ ? chunks_[chunk + 1].begin : fresh_;
  }

  // The index of the block at this address, in strides from `blocks`. An address between strides gives a huge
  // number. An exact division by an odd number is a product with its inverse, which maps all other numbers to
  // huge ones.
  [[nodiscard]] std::uint64_t index_in(const std::byte* blocks, const void* address) const noexcept {
    const std::uint64_t offset = reinterpret_cast<std::uintptr_t>(address) - reinterpret_cast<std::uintptr_t>(blocks);
    return std::rotr(offset * stride_inverse_, stride_shift_);
  }
  // Returns kNone if the address is not the beginning of a block that was ever handed out.
  [[nodiscard]] std::uint32_t number_of(const void* block) const noexcept {
    const std::uint64_t index = index_in(newest_, block);  // most blocks are in the newest chunk
    return index < fresh_ - newest_begin_ ? newest_begin_ + static_cast<std::uint32_t>(index) : number_of_older(block);
  }

  std::byte** free_ = nullptr;      // a stack: the block that was given back last is taken next
  std::uint32_t* place_ = nullptr;  // by number: the block's place in free_ when it was given back last; or capacity_,
                                    // where free_ has one entry more, which stays null: the block is retired
  std::uint32_t free_count_ = 0;
  std::uint32_t fresh_ = 0;  // blocks with this number and above were never handed out
  std::uint32_t newest_begin_ = 0;
  int stride_shift_ = 0;  // stride_ = odd << stride_shift_
  std::byte* newest_ = nullptr;
  std::uint64_t stride_ = 0;
  std::uint64_t stride_inverse_ = 0;  // of that odd number, modulo 2^64
  std::size_t block_size_ = 0;
  std::size_t alignment_ = 0;
  std::uint32_t capacity_ = 0;
  std::uint32_t blocks_max_ = 0;
  std::uint32_t first_blocks_ = 0;
  std::uint32_t chunk_count_ = 0;
  std::uint32_t retired_ = 0;
  Misuse misuse_ = Misuse::refuse;
  std::array<Chunk, kChunksMax> chunks_{};
};

// SlabOf: objects of one type in a slab. Owner, affinity and cost: those of Slab. A destructor may make and destroy
// other objects of the slab. Objects that are still live end with the slab, each once, in no particular order, also
// those that own others by Handles; the slab makes none meanwhile. Any other Handle must not outlive the slab.
template <typename T>
class SlabOf {
 public:
  struct Destroy {
    SlabOf* slab = nullptr;
    void operator()(T* object) const noexcept { slab->destroy(object); }
  };
  using Handle = std::unique_ptr<T, Destroy>;

  // Makes a slab of at most objects_max objects at a time (and Slab::kBlocksMax); with 0 it refuses each object.
  explicit SlabOf(std::size_t objects_max, Misuse misuse = misuse_of_this_build()) noexcept
      : objects_max_(objects_max), slab_(make_slab(objects_max, misuse)) {}
  SlabOf(const SlabOf&) = delete;
  SlabOf& operator=(const SlabOf&) = delete;
  ~SlabOf() {
    if constexpr (!std::is_trivially_destructible_v<T>) {
      ending_ = true;
      slab_.for_each_live([this](void* block) { destroy(static_cast<T*>(block)); });
    }
  }

  // Returns null if objects_max are live, or if there is no memory. An exception of T's constructor passes through and
  // leaks nothing.
  template <typename... Arguments>
  [[nodiscard]] T* make(Arguments&&... arguments) noexcept(std::is_nothrow_constructible_v<T, Arguments...>) {
    void* const block = objects_max_ == 0 || ending_ ? nullptr : slab_.allocate();
    if (block == nullptr) {
      return nullptr;
    }
    if constexpr (std::is_nothrow_constructible_v<T, Arguments...>) {
      return ::new (block) T(std::forward<Arguments>(arguments)...);
    } else {
      try {
        return ::new (block) T(std::forward<Arguments>(arguments)...);
      } catch (...) {
        slab_.deallocate(block);
        throw;
      }
    }
  }
  template <typename... Arguments>
  [[nodiscard]] Handle make_handle(Arguments&&... arguments) {
    return Handle(make(std::forward<Arguments>(arguments)...), Destroy{this});
  }

  // Returns false, without running a destructor, if Slab::deallocate refuses the address.
  bool destroy(T* object) noexcept {
    if constexpr (std::is_trivially_destructible_v<T>) {
      return slab_.deallocate(object);
    } else {
      if (object == nullptr || (ending_ && !slab_.owns(object))) {
        return object == nullptr;  // the slab's end has destroyed it already
      }
      if (!slab_.retire(object)) {
        return false;
      }
      object->~T();
      slab_.recycle(object);
      return true;
    }
  }

  [[nodiscard]] bool owns(const T* object) const noexcept { return slab_.owns(object); }
  [[nodiscard]] std::size_t live_count() const noexcept { return slab_.live_count(); }

 private:
  static Slab make_slab(std::size_t objects_max, Misuse misuse) noexcept {
    SlabOptions options{.block_size = sizeof(T), .alignment = alignof(T), .misuse = misuse};
    options.blocks_max = objects_max == 0 ? 1 : objects_max < Slab::kBlocksMax ? objects_max : Slab::kBlocksMax;
    return Slab::make(options).value();
  }

  std::size_t objects_max_;
  Slab slab_;
  bool ending_ = false;
};

}  // namespace weft::mem
