// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <cstddef>

#include "weft/sync/atomic.h"
#include "weft/sys/fence.h"

namespace weft::rt {

// What slots need of the machine; the model checker's in the model test.
struct SystemSlots {
  static constexpr std::size_t kLevels = 12;
  static void light_fence() noexcept { sys::light_fence(); }
  static void heavy_fence() noexcept { sys::heavy_fence(); }
};

// ReaderSlot: one thread's announcements of what it reads, innermost last. Written by that thread only, so that two
// readers never touch one line. A hazard pointer per level of nesting.
// Invariants:
//   (1) What enter() returned stays valid until the leave() of that level: who takes it out of its place finds it here.
template <typename System>
class alignas(sync::kLineSize) BasicReaderSlot {
 public:
  static constexpr std::size_t kLevels = System::kLevels;

  [[nodiscard]] bool full() const noexcept { return depth_ == kLevels; }
  [[nodiscard]] std::size_t depth() const noexcept { return depth_; }

  // What `place` points to now, announced; null: nothing was entered, though something may have been announced for a
  // moment. Not when full.
  template <typename T>
  [[nodiscard]] T* enter(sync::Atomic<T*>& place) noexcept {
    T* seen = place.load(std::memory_order_relaxed);  // looked at again below
    if (seen == nullptr) {
      return nullptr;
    }
    do {
      // Release pairs with the acquire in reads(), as in leave(): it stands in the place of what that left there.
      reading_[depth_].store(seen, std::memory_order_release);
      System::light_fence();  // pairs with the heavy fence of who looks for readers: it sees this, or we its change
      // Acquire pairs with the release that put it there.
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
    // Release pairs with the acquire in reads(): what was done with it comes before its end.
    reading_[--depth_].store(nullptr, std::memory_order_release);
  }

  // Any thread, behind a heavy fence: whether that thread still reads what was taken out of its place before the fence.
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
  std::size_t depth_ = 0;  // the thread's own
};

using ReaderSlot = BasicReaderSlot<SystemSlots>;

}  // namespace weft::rt
