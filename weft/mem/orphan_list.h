// SPDX-License-Identifier: MIT
#pragma once

#include "weft/sync/atomic.h"
#include "weft/sync/lock.h"

namespace weft::mem {

// OrphanList: objects whose thread has ended, until another thread takes them over. A T has a member `next_orphan`.
// Owner: its user, as are the objects. Affinity: any thread.
// Cost: a lock.
// Invariant: the thread that gets an object sees all that its last thread wrote.
template <typename T, typename Mutex>
class BasicOrphanList {
 public:
  constexpr BasicOrphanList() noexcept = default;
  BasicOrphanList(const BasicOrphanList&) = delete;
  BasicOrphanList& operator=(const BasicOrphanList&) = delete;

  void push(T& orphan) noexcept {
    const sync::LockGuard lock(mutex_);
    orphan.next_orphan = first_;
    first_ = &orphan;
  }
  [[nodiscard]] T* pop() noexcept {  // the one that came last; null: there is none
    const sync::LockGuard lock(mutex_);
    T* const orphan = first_;
    if (orphan != nullptr) {
      first_ = orphan->next_orphan;
    }
    return orphan;
  }
  // For the time of a fork: the child has the list with its lock.
  [[nodiscard]] Mutex& mutex() noexcept { return mutex_; }

 private:
  Mutex mutex_;
  sync::Plain<T*> first_ WEFT_GUARDED_BY(mutex_) = nullptr;
};

}  // namespace weft::mem
