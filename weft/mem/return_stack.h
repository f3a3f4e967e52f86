// SPDX-License-Identifier: MIT
#pragma once

#include "weft/sync/atomic.h"

namespace weft::mem {

// ReturnStack: the way home for blocks that were freed elsewhere. A node is a T with a member `next`.
// Owner: whoever constructs it; nodes inside are simply forgotten. Affinity: any thread pushes, its owner takes.
// Cost: a compare-exchange per chain; a load when there is nothing to take, else an exchange for all of it.
// Invariant: a node is never taken alone, so that an address which comes back (ABA) does no harm.
template <typename T>
class ReturnStack {
 public:
  // The chain from `first` to `last`, linked by next.
  void push(T* first, T* last) noexcept {
    T* top = top_.load(std::memory_order_relaxed);
    do {
      last->next = top;
      // Release pairs with the acquire in take_all(): the last use of the blocks, and their links, come first.
    } while (!top_.compare_exchange_weak(top, first, std::memory_order_release, std::memory_order_relaxed));
  }

  // Everything that is there, the last chain first, or null. Owner only.
  [[nodiscard]] T* take_all() noexcept {
    // Relaxed: only a look; the exchange acquires, and pairs with the release in push().
    return top_.load(std::memory_order_relaxed) == nullptr ? nullptr
                                                           : top_.exchange(nullptr, std::memory_order_acquire);
  }

 private:
  alignas(sync::kLineSize) sync::Atomic<T*> top_{nullptr};
};

}  // namespace weft::mem
