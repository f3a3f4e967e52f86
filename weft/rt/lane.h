// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <utility>

#include "weft/sync/atomic.h"
#include "weft/sync/spsc_ring.h"
#include "weft/sys/fence.h"

namespace weft::rt {

// What a lane orders with: the machine here, the model checker's in the model test.
struct SystemLane {
  static void light_fence() noexcept { sys::light_fence(); }
  static void heavy_fence() noexcept { sys::heavy_fence(); }
};

// Lane: the mailbox from one sender to one core: a ring that is made at the first push, and a word by which the sender
// asks to be told when there is room again.
// Owner: the core that receives. Affinity: one sender, one receiver.
// Cost: as SpscRing; asking for room is a heavy fence, answering a load.
// Invariant: a sender that found no room after want_room() is told: room_was_wanted() is true behind the receiver's
// next pops.
template <typename T, typename System = SystemLane>
class Lane {
 public:
  using Ring = sync::SpscRing<T>;

  Lane() noexcept = default;
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;
  ~Lane() { delete ring_.load(std::memory_order_relaxed); }  // nobody uses it any more

  // --- sender ---

  // False: no memory.
  [[nodiscard]] bool open(std::size_t capacity) noexcept {
    auto made = Ring::make(capacity);
    if (!made) {
      return false;
    }
    auto* const ring = new (std::nothrow) Ring(std::move(*made));
    ring_.store(ring, std::memory_order_release);  // pairs with the acquire in incoming()
    return ring != nullptr;
  }
  [[nodiscard]] Ring* outgoing() noexcept { return ring_.load(std::memory_order_relaxed); }  // null: not open
  // Then look for room once more before waiting to be told.
  void want_room() noexcept {
    wanted_.store(true, std::memory_order_relaxed);
    System::heavy_fence();  // pairs with the light fence in room_was_wanted()
  }

  // --- receiver ---

  [[nodiscard]] Ring* incoming() noexcept { return ring_.load(std::memory_order_acquire); }
  // Behind pops. True, once: tell the sender.
  [[nodiscard]] bool room_was_wanted() noexcept {
    System::light_fence();  // pairs with the heavy fence in want_room()
    return wanted_.load(std::memory_order_relaxed) && wanted_.exchange(false, std::memory_order_relaxed);
  }

 private:
  sync::Atomic<Ring*> ring_{nullptr};
  sync::Atomic<bool> wanted_{false};
};

}  // namespace weft::rt
