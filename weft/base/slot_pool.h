// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>

#include "weft/base/stable_array.h"

namespace weft {

// Names one use of a slot, and never another use, even after the first one ended. 0 names none.
struct SlotId {
  std::uint64_t value = 0;  // generation << 32 | slot

  [[nodiscard]] constexpr std::uint32_t slot() const noexcept { return static_cast<std::uint32_t>(value); }
  [[nodiscard]] constexpr std::uint32_t generation() const noexcept { return static_cast<std::uint32_t>(value >> 32); }
  constexpr explicit operator bool() const noexcept { return value != 0; }
  friend constexpr bool operator==(SlotId, SlotId) = default;
};

// SlotPool: room for T behind ids that the pool hands out. The pool neither constructs nor destroys a T;
// SlotMap does.
// Owner: its user. Affinity: one thread. Cost: claim, release and find O(1); slots never move, memory only
// grows.
// `kGenerationBits`: fewer than 32 leave an id's highest bits to the user, and wear slots out sooner.
// Invariants:
// 1. A claimed slot holds its own id. A free slot holds a number that equals no id, so that find() accepts
//    any number.
// 2. Each use of a slot has a generation of its own: 1, 2, 3 ... After the last generation the slot is not
//    used again.
template <typename T, unsigned kGenerationBits = 32>
class SlotPool {
  static_assert(kGenerationBits >= 1 && kGenerationBits <= 32);

 public:
  static constexpr std::uint32_t kCapacityMax = StableArray<int>::kSizeMax;

  class Slot {
   public:
    [[nodiscard]] SlotId id() const noexcept { return {word_}; }  // requires a claimed slot
    [[nodiscard]] bool claimed_as(std::uint32_t slot) const noexcept {
      return static_cast<std::uint32_t>(word_) == slot;
    }
    [[nodiscard]] T* value() noexcept { return reinterpret_cast<T*>(storage_); }

   private:
    friend class SlotPool;
    std::uint64_t word_;  // claimed: its id; free: generation of its next use << 32 | kNone; worn out: kNone
    alignas(T) std::byte storage_[sizeof(T)];
  };

  // At most `capacity` slots are claimed at a time.
  explicit SlotPool(std::uint32_t capacity = kCapacityMax) noexcept : capacity_(capacity) {}

  [[nodiscard]] Slot* claim() noexcept {  // null: full, or memory ran out
    if (size_ >= capacity_ || (free_count_ == 0 && !add_slot())) [[unlikely]] {
      return nullptr;
    }
    const std::uint32_t index = free_[--free_count_];
    Slot& slot = slots_[index];
    slot.word_ = (slot.word_ & ~std::uint64_t{kNone}) | index;
    ++size_;
    return &slot;
  }

  void release(Slot* slot) noexcept {  // a claimed slot of this pool
    const SlotId id = slot->id();
    retire(slot);
    recycle(id);
  }
  // The two halves of release(). In between no id finds the slot and no claim() gets it: a destructor may run.
  void retire(Slot* slot) noexcept {
    const std::uint32_t generation = slot->id().generation();
    slot->word_ = generation == kLastGeneration ? kNone : (std::uint64_t{generation + 1} << 32) | kNone;
  }
  void recycle(SlotId id) noexcept {  // the id until retire()
    --size_;
    if (id.generation() != kLastGeneration) [[likely]] {
      free_[free_count_++] = id.slot();
    }
  }

  [[nodiscard]] Slot* find(SlotId id) noexcept {  // null: that use has ended, or the id was never handed out
    if (id.slot() >= slots_.size()) {
      return nullptr;
    }
    Slot& slot = slots_[id.slot()];
    return slot.word_ == id.value ? &slot : nullptr;
  }

  // Any slot that was ever claimed. The 64 slots from one multiple of 64 to the next are adjacent in memory.
  [[nodiscard]] Slot* at(std::uint32_t slot) noexcept { return &slots_[slot]; }
  [[nodiscard]] std::uint32_t slots() const noexcept { return slots_.size(); }  // ever claimed
  [[nodiscard]] std::uint32_t size() const noexcept { return size_; }
  [[nodiscard]] std::uint32_t capacity() const noexcept { return capacity_; }

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  static constexpr std::uint32_t kLastGeneration = ~std::uint32_t{0} >> (32 - kGenerationBits);

  [[gnu::noinline]] bool add_slot() noexcept {
    if ((free_.size() == slots_.size() && !free_.grow()) || !slots_.grow()) {
      return false;
    }
    const std::uint32_t index = slots_.size() - 1;
    slots_[index].word_ = (std::uint64_t{1} << 32) | kNone;
    free_[free_count_++] = index;
    return true;
  }

  StableArray<Slot> slots_;
  StableArray<std::uint32_t> free_;  // a stack outside the slots: a list through them would load each slot
  std::uint32_t free_count_ = 0;
  std::uint32_t size_ = 0;
  std::uint32_t capacity_;
};

}  // namespace weft
