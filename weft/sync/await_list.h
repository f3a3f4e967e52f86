// SPDX-License-Identifier: MIT
#pragma once

#include "weft/sync/lock.h"

namespace weft::sync {

// AwaitList: the coroutines that wait for the same change. signal() calls every waiter, in the order in which
// they were added. A waiter that finds nothing left adds itself again.
// Owner: the object that changes. Affinity: any thread. Cost: a lock; no allocation, since a waiter lies in
// its coroutine.
// Invariant: a waiter is called once for each time that it was added, unless remove() took it out in between.
// Users write AwaitList; the parameter is a seam for the model test.
template <typename Mutex>
class BasicAwaitList {
 public:
  class Waiter {
   public:
    using Tell = void(Waiter& waiter) noexcept;
    explicit Waiter(Tell* tell) noexcept : tell_(tell) {}
    Waiter(const Waiter&) = delete;
    Waiter& operator=(const Waiter&) = delete;

   private:
    friend class BasicAwaitList;
    Tell* tell_;
    Waiter* next_ = nullptr;
  };

  BasicAwaitList() noexcept = default;
  BasicAwaitList(const BasicAwaitList&) = delete;
  BasicAwaitList& operator=(const BasicAwaitList&) = delete;

  void add(Waiter& waiter) noexcept {
    const LockGuard lock(mutex_);
    waiter.next_ = nullptr;
    *end_ = &waiter;
    end_ = &waiter.next_;
  }
  // Returns false if the waiter is not in the list, because signal() has called it or is about to.
  [[nodiscard]] bool remove(Waiter& waiter) noexcept {
    const LockGuard lock(mutex_);
    for (Waiter** place = &first_; *place != nullptr; place = &(*place)->next_) {
      if (*place == &waiter) {
        *place = waiter.next_;
        if (end_ == &waiter.next_) {
          end_ = place;
        }
        return true;
      }
    }
    return false;
  }
  void signal() noexcept {
    Waiter* waiter = take_all();
    while (waiter != nullptr) {
      Waiter* next = waiter->next_;  // read before the call: the waiter may be destroyed by it
      waiter->tell_(*waiter);
      waiter = next;
    }
  }

 private:
  Waiter* take_all() noexcept {
    const LockGuard lock(mutex_);
    Waiter* all = first_;
    first_ = nullptr;
    end_ = &first_;
    return all;
  }

  Mutex mutex_;
  Waiter* first_ WEFT_GUARDED_BY(mutex_) = nullptr;  // the lock also guards every next_
  Waiter** end_ WEFT_GUARDED_BY(mutex_) = &first_;
};

using AwaitList = BasicAwaitList<StdMutex>;

}  // namespace weft::sync
