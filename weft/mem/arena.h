// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>
#include <type_traits>
#include <utility>

#include "weft/mem/bump.h"
#include "weft/mem/slab.h"

namespace weft::mem {

struct ArenaOptions {
  std::size_t block_size = std::size_t{4} * 1024;  // bytes of a block after its header (at least Arena::kBlockMin)
  std::size_t bytes_max = std::size_t{1} * 1024 * 1024;  // held at a time, blocks' headers included
  std::size_t kept_max = std::size_t{1} * 1024 * 1024;   // held after reset()
};

// Arena: memory in any number of pieces. reset() frees all of them at once and keeps the blocks for the next round.
// Owner: its user. Affinity: owning thread.
// Cost: an addition and a comparison. A new block is one malloc; the arena makes no new block after its rounds have
// reached their size. A request that does not fit into a block gets a block of its own: one of a few spare ones of that
// size, or a new one. So a request is O(1), however many blocks there are.
// A moved-from arena is empty, keeps its bounds and can be used. The first request makes the first
// allocation.
// Invariants:
// 1. Each block is in one list: used or spare; large ones (of one request) and ordinary ones apart.
// 2. held() is the sum of all blocks, and at most bytes_max: the arena frees spare blocks before it refuses a
//    request.
class Arena {
 public:
  static constexpr std::size_t kBlockMin = 128;

  explicit Arena(const ArenaOptions& options = {}) noexcept : options_(options) {
    const std::size_t most = options_.bytes_max - std::min(options_.bytes_max, sizeof(Block));
    options_.block_size = std::max(std::min(options_.block_size, most), kBlockMin);
  }
  Arena(Arena&& other) noexcept : options_(other.options_) { swap(other); }
  Arena& operator=(Arena&& other) noexcept {
    Arena moved(std::move(other));
    swap(moved);
    return *this;
  }
  ~Arena();

  // Returns null if the request would exceed bytes_max, if there is no memory, or if the alignment is not a power of
  // two. A request of 0 bytes gets an address of its own.
  [[nodiscard]] void* allocate(std::size_t size, std::size_t alignment = alignof(std::max_align_t)) noexcept {
    if (void* const bytes = detail::carve(next_, end_, size, alignment); bytes != nullptr) [[likely]] {
      return bytes;
    }
    return allocate_elsewhere(size, alignment);
  }
  // Makes an object without a destructor, since reset() runs none. Returns null like allocate().
  template <typename T, typename... Arguments>
  [[nodiscard]] T* make_object(Arguments&&... arguments) noexcept(std::is_nothrow_constructible_v<T, Arguments...>) {
    static_assert(std::is_trivially_destructible_v<T>);
    void* const memory = allocate(sizeof(T), alignof(T));
    return memory == nullptr ? nullptr : ::new (memory) T(std::forward<Arguments>(arguments)...);
  }

  // Frees all pieces. Keeps blocks up to kept_max, ordinary ones first.
  void reset() noexcept {
    if (used_.first != nullptr && used_before_ == 0 && held_ <= options_.kept_max) [[likely]] {  // one block was enough
      poison(used_.first->bytes(), used());
      next_ = used_.first->bytes();
      return;
    }
    reset_chain();
  }

  // Bytes allocated since the last reset, including the bytes lost to alignment and to the ends of blocks.
  [[nodiscard]] std::size_t used() const noexcept {
    return used_before_ + (used_.first == nullptr ? 0 : static_cast<std::size_t>(next_ - used_.first->bytes()));
  }
  [[nodiscard]] std::size_t held() const noexcept { return held_; }  // bytes of all blocks
  // whether an allocated piece contains it; linear in blocks
  [[nodiscard]] bool owns(const void* address) const noexcept;
  [[nodiscard]] const ArenaOptions& options() const noexcept { return options_; }

 private:
  struct alignas(alignof(std::max_align_t)) Block {
    Block* next;
    std::size_t size;  // including this header
    std::byte* bytes() noexcept { return reinterpret_cast<std::byte*>(this + 1); }
  };
  struct List {
    Block* first = nullptr;  // in used_: the current one
    Block* last = nullptr;
    void push(Block* block) noexcept;
    void push_back(Block* block) noexcept;
    Block* pop() noexcept;
    void take_behind(Block* before) noexcept;  // null: the first block
    void splice(List& other) noexcept;
  };

  void swap(Arena& other) noexcept;
  [[nodiscard]] void* allocate_elsewhere(std::size_t size, std::size_t alignment) noexcept;
  [[nodiscard]] void* allocate_large(std::size_t size, std::size_t alignment) noexcept;
  [[nodiscard]] Block* take_spare(std::size_t bytes) noexcept;
  [[nodiscard]] Block* make_block(std::size_t bytes) noexcept;
  void drop(Block* block) noexcept;
  void drop_spares(std::size_t held) noexcept;
  void reset_chain() noexcept;

  std::byte* next_ = nullptr;
  std::byte* end_ = nullptr;
  List used_;
  List used_large_;
  List spare_;
  List spare_large_;
  std::size_t used_before_ = 0;  // in blocks other than the current one
  std::size_t held_ = 0;
  ArenaOptions options_;
};

// ArenaPool: an arena for each request of one core. A handler that waits keeps its arena while other handlers
// run. Leases end in any order, and each frees only the pieces that were allocated from it.
// Owner: the core; the pool outlives its leases. Affinity: owning thread. Cost of a lease: a few list
// operations. The pool keeps arenas with their blocks (each up to kept_max).
class ArenaPool {
  struct Slot {
    explicit Slot(const ArenaOptions& options) noexcept : arena(options) {}
    Arena arena;
    Slot* next = nullptr;
  };

 public:
  class Lease {
   public:
    Lease() noexcept = default;  // empty
    Lease(ArenaPool& pool, Slot* slot) noexcept : pool_(&pool), slot_(slot) {}
    Lease(Lease&& other) noexcept : pool_(other.pool_), slot_(std::exchange(other.slot_, nullptr)) {}
    Lease& operator=(Lease&& other) noexcept {
      Lease moved(std::move(other));
      std::swap(pool_, moved.pool_);
      std::swap(slot_, moved.slot_);
      return *this;
    }
    ~Lease() { release(); }

    // Frees all pieces. The lease is empty afterwards.
    void release() noexcept {
      if (Slot* const slot = std::exchange(slot_, nullptr); slot != nullptr) {
        slot->arena.reset();
        slot->next = std::exchange(pool_->idle_, slot);
      }
    }
    explicit operator bool() const noexcept { return slot_ != nullptr; }
    Arena& operator*() const noexcept { return slot_->arena; }
    Arena* operator->() const noexcept { return &slot_->arena; }

   private:
    ArenaPool* pool_ = nullptr;
    Slot* slot_ = nullptr;
  };

  explicit ArenaPool(std::size_t leases_max, const ArenaOptions& options = {}) noexcept
      : slots_(leases_max), options_(options) {}

  // Returns an empty lease if leases_max are in use, or if there is no memory.
  [[nodiscard]] Lease lease() noexcept {
    Slot* slot = idle_;
    if (slot != nullptr) [[likely]] {
      idle_ = slot->next;
    } else {
      slot = slots_.make(options_);
    }
    return {*this, slot};
  }

 private:
  SlabOf<Slot> slots_;
  Slot* idle_ = nullptr;
  ArenaOptions options_;
};

}  // namespace weft::mem
