// SPDX-License-Identifier: MIT
#pragma once

#include "weft/sync/atomic.h"

namespace weft::mem {

// ReturnStack: returns blocks to their owner from the threads that freed them. A node is a T with a member
// `next`.
// Owner: the object that constructs it; the destructor forgets the nodes inside. Affinity: any thread pushes,
// the owner takes.
// Cost: a compare-exchange per chain; take_all() is a load when the stack is empty, else an exchange for all
// of it.
// Invariant: a node is never taken alone, so that an address that is pushed again (ABA) does no harm.
template <typename T>
class ReturnStack {
 public:
  // Pushes the chain from `first` to `last`, linked by next.
  void push(T* first, T* last) noexcept {
    T* top = top_.load(std::memory_order_relaxed);
    do {
      last->next = top;
      // Release pairs with the acquire in take_all(): the freer's last use of the blocks, and their links,
      // come first.
    } while (!top_.compare_exchange_weak(top, first, std::memory_order_release, std::memory_order_relaxed));
  }

  // Takes all nodes, the last chain first, or null. Owner only.
  [[nodiscard]] T* take_all() noexcept {
    // Relaxed: a null ends here, and otherwise the exchange acquires and pairs with the release in push().
    return top_.load(std::memory_order_relaxed) == nullptr ? nullptr
                                                           : top_.exchange(nullptr, std::memory_order_acquire);
  }

 private:
  alignas(sync::kLineSize) sync::Atomic<T*> top_{nullptr};
};

}  // namespace weft::mem
