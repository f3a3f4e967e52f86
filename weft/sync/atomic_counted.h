// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include "weft/base/intrusive_ptr.h"
#include "weft/sync/atomic.h"

namespace weft::sync {

// AtomicCounted: the reference count of an object that several threads share; for IntrusivePtr, like Counted.
// Owner: its references. Affinity: any thread, each with references of its own.
// Cost: 4 bytes. A copy is one read-modify-write, a release another. The last release of an object that no
// other thread references is a load only.
// Invariant: every write that a holder made before it released its reference is visible to the thread that disposes of
// the object.
template <typename T, typename Disposer = Deleter>
class AtomicCounted {
 public:
  // Relaxed: the caller holds a reference. Another thread gets the caller's writes together with the pointer.
  void add_reference() const noexcept { references_.fetch_add(1, std::memory_order_relaxed); }
  void release() const noexcept {
    // Both acquires pair with the release of the other holders' subtractions. A sole owner needs none of its own.
    if (references_.load(std::memory_order_acquire) == 1 || references_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      Disposer::dispose(const_cast<T*>(static_cast<const T*>(this)));
    }
  }
  // Whether the caller's is the only reference. Then the writes of all former holders are visible (pairs with
  // release()).
  [[nodiscard]] bool sole_owner() const noexcept { return references_.load(std::memory_order_acquire) == 1; }

 protected:
  AtomicCounted& operator=(const AtomicCounted& /*other*/) noexcept { return *this; }
  ~AtomicCounted() = default;

  // For a disposer that keeps the object: sets the count to one again. Relaxed: no other thread reads the
  // object now, and its next holder gets the count with the pointer. Most objects were never shared, and
  // their count needs no store at all.
  void revive() const noexcept {
    if (references_.load(std::memory_order_relaxed) != 1) {
      references_.store(1, std::memory_order_relaxed);
    }
  }

 private:
  friend T;  // no other class can have AtomicCounted<T> as a base
  AtomicCounted() noexcept = default;
  AtomicCounted(const AtomicCounted& /*other*/) noexcept {}  // a copy has references of its own

  mutable Atomic<std::uint32_t> references_{1};
};

}  // namespace weft::sync
