// SPDX-License-Identifier: MIT
#pragma once

#include <coroutine>
#include <utility>

#include "weft/base/time.h"
#include "weft/sync/await_list.h"
#include "weft/sync/parker.h"
#include "weft/sync/spin.h"
#include "weft/sys/clock.h"

namespace weft::sync {

// The operations that a gate waits with: the machine's here, the model checker's in a model test.
struct GateWait : SystemWait {
  using Event = AwaitList;
  using Budget = SpinBudget;

  static Instant now() noexcept { return sys::now(); }
  template <typename Look>
  static void spin(Budget& budget, Look look) noexcept {
    (void)spin_until(budget, WaitMode::adaptive, look);
  }
};

// Resumption: continues a coroutine that waited. A small value; the executor that receives it calls it once.
class Resumption {
 public:
  using Run = void(void* waiter);
  Resumption(Run* run, void* waiter) noexcept : run_(run), waiter_(waiter) {}
  void operator()() const { run_(waiter_); }

 private:
  Run* run_;
  void* waiter_;
};

// Gate: threads and coroutines wait here until an attempt of theirs can succeed. They make the attempt
// themselves.
// Owner: the object that changes. Affinity: any thread.
// Cost: wake() is one load while no waiter waits. Each wait that slept costs the thread that changes the object one
// wake-up.
// Invariant: a thread changes the object, then calls wake(). A waiter that is about to sleep either sees the
// change in its look() or is woken (invariant 1 of Parker; a coroutine counts as a sleeper in poll whose
// event is the list).
// Users write Gate; the parameter is a seam for the model test.
template <typename System>
class BasicGate {
  using List = typename System::Event;

 public:
  void wake() noexcept { parker_.wake(); }

  // Returns true once attempt() did, false at the deadline. look() returns whether an attempt might succeed now, and
  // changes nothing. The first attempt is made even when the deadline has passed.
  template <typename Attempt, typename Look>
  [[nodiscard]] bool settle_until(Instant deadline, Attempt attempt, Look look) noexcept {
    if (attempt()) {
      return true;
    }
    if (deadline > System::now()) {
      System::spin(budget_, look);
    }
    while (!attempt()) {
      const Duration left = time_left(deadline, System::now());
      if (left == Duration::zero()) {
        return false;
      }
      const auto ticket = parker_.announce_futex(true);
      if (!look()) {
        parker_.sleep(ticket, left);
      }
    }
    return true;
  }

  // Wait: the same for a coroutine. It is the base of an awaiter, which has bool attempt() and bool look().
  // The thread that wakes calls `post(Resumption)` inside its call of wake(). `post` hands the resumption to
  // the thread or strand that awaits; it does not run the resumption and does not throw. A coroutine that is
  // suspended here is not destroyed.
  template <typename Awaiter, typename Post>
  class Wait : private List::Waiter {
   public:
    Wait(const Wait&) = delete;
    Wait& operator=(const Wait&) = delete;

    [[nodiscard]] bool await_ready() noexcept { return self().attempt(); }
    [[nodiscard]] bool await_suspend(std::coroutine_handle<> coroutine) noexcept {
      coroutine_ = coroutine;
      return !settle();
    }

   protected:
    Wait(BasicGate& gate, Post post) noexcept : List::Waiter(tell), gate_(gate), post_(std::move(post)) {}

   private:
    Awaiter& self() noexcept { return static_cast<Awaiter&>(*this); }
    // Returns false if the coroutine stays suspended, and tell() will be called.
    bool settle() noexcept {
      for (;;) {
        gate_.list_.add(*this);
        gate_.parker_.announce_poll(&gate_.list_, true);
        if (!self().look() || !gate_.list_.remove(*this)) {
          return false;
        }
        if (self().attempt()) {
          return true;
        }
      }
    }
    static void tell(typename List::Waiter& waiter) noexcept {
      auto& wait = static_cast<Wait&>(waiter);
      wait.post_(Resumption(resume, &wait));
    }
    static void resume(void* waiter) {
      auto& wait = *static_cast<Wait*>(waiter);
      if (wait.self().attempt() || wait.settle()) {
        wait.coroutine_.resume();
      }
    }

    BasicGate& gate_;
    Post post_;
    std::coroutine_handle<> coroutine_;
  };

 private:
  BasicParker<System> parker_;
  List list_;
  [[no_unique_address]] typename System::Budget budget_;
};

using Gate = BasicGate<GateWait>;

}  // namespace weft::sync
