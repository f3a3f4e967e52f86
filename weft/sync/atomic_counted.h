// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include "weft/base/intrusive_ptr.h"
#include "weft/sync/atomic.h"

namespace weft::sync {

// AtomicCounted: the reference count of an object that several threads share; for IntrusivePtr, as Counted is.
// Owner: its references. Affinity: any thread, each with references of its own. Cost: 4 bytes; a copy is a
// read-modify-write, a release another, but for the last one where nobody else ever looked: that is a load.
// Invariant: whoever disposes of the object sees what every holder did before it let go.
template <typename T, typename Disposer = Deleter>
class AtomicCounted {
 public:
  // Relaxed: the caller holds a reference, and what it knows of the object another thread gets along with the pointer.
  void add_reference() const noexcept { references_.fetch_add(1, std::memory_order_relaxed); }
  void release() const noexcept {
    // Both acquires pair with the release of the other holders' subtractions. A sole owner needs none of its own.
    if (references_.load(std::memory_order_acquire) == 1 || references_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      Disposer::dispose(const_cast<T*>(static_cast<const T*>(this)));
    }
  }
  // True: the caller's is the only reference, and what others did with theirs is visible (the pair of release()).
  [[nodiscard]] bool sole_owner() const noexcept { return references_.load(std::memory_order_acquire) == 1; }

 protected:
  AtomicCounted() noexcept = default;
  AtomicCounted(const AtomicCounted& /*other*/) noexcept {}  // a copy has references of its own
  AtomicCounted& operator=(const AtomicCounted& /*other*/) noexcept { return *this; }
  ~AtomicCounted() = default;

  // For a disposer that keeps the object: one reference again. Relaxed: nobody else looks, and whoever is given the
  // object gets this with the pointer. Most were never shared, and their count is not written at all.
  void revive() const noexcept {
    if (references_.load(std::memory_order_relaxed) != 1) {
      references_.store(1, std::memory_order_relaxed);
    }
  }

 private:
  mutable Atomic<std::uint32_t> references_{1};
};

}  // namespace weft::sync
