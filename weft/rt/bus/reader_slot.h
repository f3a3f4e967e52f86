// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <cstddef>

#include "weft/sync/atomic.h"
#include "weft/sys/fence.h"

namespace weft::rt {

// SystemSlots: the fences of a slot: the system's here, the model checker's in the model test.
struct SystemSlots {
  static constexpr std::size_t kLevels = 12;
  static void light_fence() noexcept { sys::light_fence(); }
  static void heavy_fence() noexcept { sys::heavy_fence(); }
};

// ReaderSlot: one thread's announcements of the objects that it reads, innermost last: a hazard pointer per level of
// nesting. Two readers never write one line.
// Owner: the list of readers.
// Affinity: the thread of the slot; reads() any thread.
// Cost: enter() two loads, a store and a light fence; leave() a store. No allocation.
// Invariants:
//   1. The object that enter() returned stays valid until the leave() of that level: a thread that takes the object out
//      of its place finds it announced here.
template <typename System>
class alignas(sync::kLineSize) BasicReaderSlot {
 public:
  static constexpr std::size_t kLevels = System::kLevels;

  [[nodiscard]] bool full() const noexcept { return depth_ == kLevels; }
  [[nodiscard]] std::size_t depth() const noexcept { return depth_; }

  // Announces and returns the object that `place` points to. Returns null if `place` is null and no level was entered,
  // but an announcement may have been visible for a moment. Requires !full().
  template <typename T>
  [[nodiscard]] T* enter(sync::Atomic<T*>& place) noexcept {
    T* seen = place.load(std::memory_order_relaxed);  // relaxed: loaded again below
    if (seen == nullptr) {
      return nullptr;
    }
    do {
      // Release pairs with the acquire in reads(): this store replaces the null of the last leave() and so must publish
      // the reads before that leave(), too.
      reading_[depth_].store(seen, std::memory_order_release);
      // pairs with the remover's heavy fence: this is visible to the remover, or its change to the load below
      System::light_fence();
      // Acquire pairs with the release that stored the object.
      T* const again = place.load(std::memory_order_acquire);
      if (again == seen) [[likely]] {
        ++depth_;
        return seen;
      }
      seen = again;
    } while (seen != nullptr);
    reading_[depth_].store(nullptr, std::memory_order_release);  // as above
    return nullptr;
  }
  void leave() noexcept {
    // Release pairs with the acquire in reads(): the uses of the object come before its destruction.
    reading_[--depth_].store(nullptr, std::memory_order_release);
  }

  // Any thread, after a heavy fence: whether the slot's thread still reads an object that was taken out of its place
  // before the fence.
  [[nodiscard]] bool reads(const void* what) const noexcept {
    for (const auto& level : reading_) {
      if (level.load(std::memory_order_acquire) == what) {  // pairs with leave()
        return true;
      }
    }
    return false;
  }

 private:
  sync::Atomic<const void*> reading_[kLevels]{};
  std::size_t depth_ = 0;  // only the slot's thread uses it
};

using ReaderSlot = BasicReaderSlot<SystemSlots>;

}  // namespace weft::rt
