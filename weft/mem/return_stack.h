// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>

#include "weft/sync/atomic.h"

namespace weft::mem {

// ReturnStack: returns blocks to their owner from the threads that freed them. A node is a T with a member
// `next`.
// Owner: the object that constructs it; the destructor forgets the nodes inside. Affinity: any thread pushes,
// the owner takes.
// Cost: a compare-exchange per chain, and a read-modify-write more for a bounded push; take_all() is a load when the
// stack is empty, otherwise an exchange for all of it.
// Invariants:
//   1. A node is never taken alone, so that an address that is pushed again (ABA) does no harm.
//   2. try_push() refuses after the stack has reached its bound: it holds that, and one chain of each thread that
//      pushes.
template <typename T>
class ReturnStack {
 public:
  explicit ReturnStack(std::size_t bytes_max = ~std::size_t{0}) noexcept : bytes_max_(bytes_max) {}

  // push() of a chain of so many bytes, which the owner subtracts by settle() once it has taken them. Returns false if
  // the stack is full, and the chain stays the caller's.
  [[nodiscard]] bool try_push(T* first, T* last, std::size_t bytes) noexcept {
    // Relaxed, like all accesses of both: a bound, not a hand-over.
    if (bytes_.load(std::memory_order_relaxed) >= bytes_max_.load(std::memory_order_relaxed)) [[unlikely]] {
      return false;
    }
    bytes_.fetch_add(bytes, std::memory_order_relaxed);  // before the push, so that settle() never subtracts first
    push(first, last);
    return true;
  }
  void settle(std::size_t bytes) noexcept { bytes_.fetch_sub(bytes, std::memory_order_relaxed); }
  void set_bytes_max(std::size_t bytes) noexcept { bytes_max_.store(bytes, std::memory_order_relaxed); }

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
  sync::Atomic<std::size_t> bytes_{0};  // beside top_, which a push writes too
  sync::Atomic<std::size_t> bytes_max_;
};

}  // namespace weft::mem
