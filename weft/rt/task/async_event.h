// SPDX-License-Identifier: MIT
#pragma once

#include <coroutine>

#include "weft/base/list.h"
#include "weft/base/result.h"
#include "weft/rt/task/task.h"

namespace weft::rt {

// AsyncEvent: a flag of one loop that coroutines wait for: room in a queue, the end of a drain. `co_await event.wait()`
// ends at once while the event is set, otherwise when it is set next. All waiters resume in the loop's next turn, in
// the order of their arrival. A waiter then checks its condition again, because another may have taken it first.
// Owner: its user; destruction ends every wait with `closed`.
// Affinity: the loop's thread.
// Cost: no allocation.
class AsyncEvent {
 public:
  AsyncEvent() noexcept = default;
  AsyncEvent(const AsyncEvent&) = delete;
  AsyncEvent& operator=(const AsyncEvent&) = delete;
  ~AsyncEvent() { finish_all(Result<void>(Error(Errc::closed, "the event is gone"))); }

  void set() noexcept {
    set_ = true;
    finish_all({});
  }
  void reset() noexcept { set_ = false; }
  // Resumes the present waiters; the event itself stays unchanged.
  void pulse() noexcept { finish_all({}); }
  // Resumes the waiter that came first, if any. A waiter that is cancelled in the same turn does not use the pulse: it
  // calls pulse_one() for the next one.
  void pulse_one() noexcept {
    if (Waiting* const waiting = waiting_.pop_front()) {
      waiting->wait_.finish();
    }
  }
  [[nodiscard]] bool is_set() const noexcept { return set_; }
  [[nodiscard]] bool awaited() const noexcept { return !waiting_.empty(); }

  class [[nodiscard]] Waiting : private ListHook {
   public:
    explicit Waiting(AsyncEvent& event) noexcept : event_(event), wait_(this) {}

    [[nodiscard]] bool await_ready() const noexcept { return false; }
    template <detail::TaskPromise Promise>
    bool await_suspend(std::coroutine_handle<Promise> coroutine) {
      CancelScope& scope = coroutine.promise().scope();
      if (event_.set_ && !scope.cancelled()) {
        return false;
      }
      if (!wait_.begin(scope, coroutine)) {
        return wait_.deferred();
      }
      event_.waiting_.push_back(*this);
      return true;
    }
    // A waiter whose event came and whose scope was cancelled in the same turn is cancelled.
    [[nodiscard]] Result<void> await_resume() const noexcept {
      return wait_.cancelled() ? Result<void>(kCancelled) : result_;
    }

   private:
    friend class AsyncEvent;
    friend class List<Waiting>;
    struct EventWait : Wait {
      explicit EventWait(Waiting* who) noexcept : Wait(give_up), waiting(who) {}
      static void give_up(Wait& self) noexcept {
        static_cast<EventWait&>(self).waiting->unhook();
        self.finish();
      }
      Waiting* waiting;
    };

    AsyncEvent& event_;
    EventWait wait_;
    Result<void> result_;
  };
  // Result<void>. Errors: closed (the event has ended); kCancelled.
  [[nodiscard]] Waiting wait() noexcept { return Waiting(*this); }

 private:
  void finish_all(const Result<void>& result) noexcept {
    while (Waiting* const waiting = waiting_.pop_front()) {
      waiting->result_ = result;
      waiting->wait_.finish();
    }
  }

  List<Waiting> waiting_;
  bool set_ = false;
};

}  // namespace weft::rt
