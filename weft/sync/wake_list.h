// SPDX-License-Identifier: MIT
#pragma once

#include "weft/sync/atomic.h"
#include "weft/sync/lock.h"
#include "weft/sys/event_fd.h"

namespace weft::sync {

// WakeList: the event descriptors of the threads that sleep in poll or epoll until the same object changes.
// Each sleeper has its own, so that none takes the wake-up of another.
// Owner: the object. Affinity: any thread. Cost: a lock; signal() is a system call for each sleeper.
// Invariant: every signal() between add() and remove() signals the sleeper's event.
// Users write WakeList; the parameters are a seam for the model test.
template <typename Event, typename Mutex>
class BasicWakeList {
 public:
  struct Sleeper {
    Event* event = nullptr;
    Sleeper* next = nullptr;
    bool listed = false;
    Plain<bool> rung = false;  // `event` was signalled; see take_rung()
  };

  BasicWakeList() noexcept = default;
  BasicWakeList(const BasicWakeList&) = delete;
  BasicWakeList& operator=(const BasicWakeList&) = delete;

  void add(Sleeper& sleeper) noexcept {  // idempotent
    const LockGuard lock(mutex_);
    if (!sleeper.listed) {
      sleeper.listed = true;
      sleeper.next = first_;
      first_ = &sleeper;
    }
  }
  void remove(Sleeper& sleeper) noexcept {  // idempotent
    const LockGuard lock(mutex_);
    for (Sleeper** place = &first_; *place != nullptr; place = &(*place)->next) {
      if (*place == &sleeper) {
        *place = sleeper.next;
        sleeper.listed = false;
        return;
      }
    }
  }

  // Whether the sleeper was signalled since the last call. If so, the caller drains its event.
  [[nodiscard]] bool take_rung(Sleeper& sleeper) noexcept {
    const LockGuard lock(mutex_);
    const bool rung = sleeper.rung;
    sleeper.rung = false;
    return rung;
  }

  void signal() noexcept {
    const LockGuard lock(mutex_);
    for (Sleeper* sleeper = first_; sleeper != nullptr; sleeper = sleeper->next) {
      sleeper->rung = true;
      sleeper->event->signal();
    }
  }

 private:
  Mutex mutex_;
  Sleeper* first_ WEFT_GUARDED_BY(mutex_) = nullptr;  // the lock also guards the members of every sleeper in the list
};

using WakeList = BasicWakeList<sys::EventFd, StdMutex>;

}  // namespace weft::sync
