// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <utility>

#include "weft/sync/atomic.h"
#include "weft/sys/clock.h"
#include "weft/sys/cpu.h"

namespace weft::sync {

// The time for which a thread may spin before it sleeps.
enum class WaitMode : std::uint8_t {
  adaptive,  // yield-spin while spinning pays, learnt at run time (default)
  latency,   // yield-spin up to 200 us, unless another program needs the core
  eco,       // sleep at once
};

// False where the other thread cannot run meanwhile (one CPU) or where spinning burns a cgroup quota.
[[nodiscard]] inline bool spinning_pays() noexcept {
  static const bool pays = sys::allowed_cpus() > 1 && !sys::quota_limited();
  return pays;
}
// Whether a thread with WaitMode::latency spins. The message may come from another process, so that a process which is
// pinned to a processor of its own spins, too.
[[nodiscard]] inline bool spins_for_latency() noexcept {
  static const bool spins = sys::machine_cpus() > 1 && !sys::quota_limited();
  return spins;
}

// Spun: how a spin ended.
enum class Spun : std::uint8_t {
  not_tried,  // there was no budget, or another program needs the core: the thread sleeps at once
  spent,      // the condition did not become true
  found,      // the condition became true while the thread spun
  late,       // the condition became true while another program had the core
};

[[nodiscard]] constexpr bool came(Spun spun) noexcept { return spun == Spun::found || spun == Spun::late; }

// SpinBudget: learns whether spinning pays at one waiting place.
// Affinity: any thread; a lost update only delays learning. Cost: a few relaxed loads and stores per wait.
// A wake-up costs about 20-50 us where it was measured, so spinning that long is at worst twice the optimum
// (the ski-rental argument). When fewer than one wait in five ends while spinning, the budget drops to kLeastUs, and
// when fewer than one in 64 does, to nothing: 64 clients of one server that spin in vain take its processor.
// Every 64th wait still gets the full 50 us. If that one ends while spinning, the next two waits get them, too: a peer
// that answers in 5 us again, after a pause, is met by one trial.
class SpinBudget {
 public:
  [[nodiscard]] std::uint32_t budget_us(WaitMode mode) noexcept {
    if (mode == WaitMode::latency) {
      return spins_for_latency() ? kLatencyUs : 0;
    }
    if (mode == WaitMode::eco || !spinning_pays()) {
      return 0;
    }
    const std::uint32_t waits = waits_.load(std::memory_order_relaxed) + 1;
    waits_.store(waits, std::memory_order_relaxed);
    if (waits % kProbeEvery == 0) {
      return kFullUs;
    }
    const std::uint32_t success = success_.load(std::memory_order_relaxed);
    return success >= kOne / 5 ? kFullUs : success >= kOne / 64 ? kLeastUs : 0;
  }

  void record(bool ended_while_spinning) noexcept {
    const std::uint32_t old = success_.load(std::memory_order_relaxed);
    const std::uint32_t next = old - old / 8 + (ended_while_spinning ? kOne / 8 : 0);
    success_.store(ended_while_spinning ? std::max(next, kOne / 4) : next, std::memory_order_relaxed);
  }
  // A success that came late counts as a failure: a thread that sleeps finds it as well.
  // `paid`: whether it brought enough.
  void record(Spun spun, bool paid = true) noexcept {
    if (spun != Spun::not_tried) {
      record(spun == Spun::found && paid);
    }
  }

 private:
  static constexpr std::uint32_t kOne = 1024;
  static constexpr std::uint32_t kFullUs = 50;
  static constexpr std::uint32_t kLeastUs = 2;
  static constexpr std::uint32_t kLatencyUs = 200;
  static constexpr std::uint32_t kProbeEvery = 64;

  Atomic<std::uint32_t> success_{kOne};
  Atomic<std::uint32_t> waits_{0};
};

// Spinners: when each thread of the process began its last spin. Threads share the places when there are more of them.
// Affinity: any thread. A place is a line of its own, which one thread writes.
class Spinners {
 public:
  [[nodiscard]] std::uint32_t add() noexcept { return count_.fetch_add(1, std::memory_order_relaxed) % kPlaces; }
  void note(std::uint32_t place, std::uint64_t now) noexcept {
    places_[place].spun_at.store(now, std::memory_order_relaxed);
  }
  // Whether more than `cpus` threads have spun at `since` or later.
  [[nodiscard]] bool more_than(unsigned cpus, std::uint64_t since) const noexcept {
    unsigned found = 0;
    for (const Place& place : places_) {
      const std::uint64_t spun_at = place.spun_at.load(std::memory_order_relaxed);
      if (spun_at != 0 && spun_at >= since && ++found > cpus) {
        return true;
      }
    }
    return false;
  }

 private:
  static constexpr std::uint32_t kPlaces = 128;
  struct alignas(kLineSize) Place {
    std::atomic<std::uint64_t> spun_at{0};  // 0: never
  };

  std::atomic<std::uint32_t> count_{0};
  Place places_[kPlaces];
};

inline constinit Spinners process_spinners;

// Contention: whether another program needs the core of a thread. The thread's own yields show it.
// A yield to threads that themselves yield or sleep returns within microseconds. A yield to a thread that computes
// costs a whole time slice, 2 to 4 ms on Linux. After such a yield the thread does not spin for a while. It sleeps at
// once, so that it uses less than its share of the core, and the scheduler runs it as soon as it is woken.
// A slice that other waiting threads of the process have used is not lost: where more of them than processors pass
// messages, a sleep a message costs more CPU time than the yields. Their spins, at most a slice before, show them.
// The first such while takes kFirstMs. Each further lost slice doubles it, up to kLongestMs: trials cost about 1 % of
// the time. Every kGoodYields yields without a lost slice halve it.
// A thread that has not spun for kRestUs has no recent measurement, and makes no trial: the first message after a rest
// would pay for it. It spins without yields, and sleeps.
// Owner: a thread; time is an argument, in ticks. Affinity: that thread.
class Contention {
 public:
  constexpr explicit Contention(Spinners& spinners = process_spinners) noexcept : spinners_(spinners) {}

  [[nodiscard]] bool wanted(std::uint64_t now) const noexcept { return now < until_; }
  // A spin begins. Returns whether the thread comes from a rest.
  bool note_spin(std::uint64_t now, std::uint64_t ticks_per_us) noexcept {
    if (spun_at_ == 0) {
      place_ = spinners_.add();
    }
    spinners_.note(place_, now);
    return now - std::exchange(spun_at_, now) > kRestUs * ticks_per_us;
  }
  // Returns whether the yield gave a time slice to another program.
  bool note_yield(std::uint64_t before, std::uint64_t after, std::uint64_t ticks_per_us) noexcept {
    const std::uint64_t slice = after - before;
    if (slice <= kLostUs * ticks_per_us) {
      if (++good_ % kGoodYields == 0 && away_ms_ > kFirstMs) {
        away_ms_ /= 2;
      }
      return false;
    }
    if (spinners_.more_than(sys::allowed_cpus(), before > slice ? before - slice : 0)) {
      return false;
    }
    until_ = after + std::uint64_t{away_ms_} * 1000 * ticks_per_us;
    away_ms_ = away_ms_ * 2 < kLongestMs ? away_ms_ * 2 : kLongestMs;
    return true;
  }

 private:
  // A yield costs 0.5 us alone, up to 500 us beside threads of one's own that work and yield, and where a slice is lost
  // 2,000 us or more.
  static constexpr std::uint64_t kLostUs = 500;
  static constexpr std::uint64_t kRestUs = 500;
  static constexpr std::uint32_t kFirstMs = 4;
  static constexpr std::uint32_t kLongestMs = 256;
  static constexpr std::uint32_t kGoodYields = 64;

  Spinners& spinners_;
  std::uint64_t until_ = 0;
  std::uint64_t spun_at_ = 0;
  std::uint32_t place_ = 0;
  std::uint32_t away_ms_ = kFirstMs;
  std::uint32_t good_ = 0;
};

[[nodiscard]] inline Contention& this_threads_contention() noexcept {
  static thread_local constinit Contention contention;
  return contention;
}

// SpinTurns: the turns of one spin, for a loop that has more to check than a condition.
//   SpinTurns turns(budget_us);
//   while (turns.begin()) { check some times, with pauses; turns.give_way(); check once }
// Affinity: a thread; on its stack.
class SpinTurns {
 public:
  explicit SpinTurns(std::uint64_t budget_us) noexcept : contention_(this_threads_contention()) {
    if (budget_us != 0) {
      const std::uint64_t now = sys::ticks();
      end_ = now + budget_us * sys::ticks_per_us();
      next_ = !contention_.wanted(now);
      rested_ = contention_.note_spin(now, sys::ticks_per_us());
    }
  }
  [[nodiscard]] bool begin() noexcept {
    tried_ = tried_ || next_;
    return next_;
  }
  // Yields the core, except after a rest. After a lost time slice the turns end: the caller checks once more, and
  // sleeps.
  void give_way() noexcept {
    const std::uint64_t before = sys::ticks();
    if (rested_) {
      next_ = before < end_;
      return;
    }
    sys::yield();
    const std::uint64_t after = sys::ticks();
    late_ = contention_.note_yield(before, after, sys::ticks_per_us());
    next_ = !late_ && after < end_;
  }
  [[nodiscard]] Spun end(bool found) const noexcept {
    return !tried_ && !found ? Spun::not_tried : !found ? Spun::spent : late_ ? Spun::late : Spun::found;
  }

 private:
  Contention& contention_;
  std::uint64_t end_ = 0;
  bool next_ = false;
  bool rested_ = false;
  bool tried_ = false;
  bool late_ = false;
};

// Spins until `look()` is true or the budget is spent: short pauses, then a yield, so that on a shared core the other
// thread gets to run. Only a thread that comes from a rest spins longer than about 2 us without a yield.
template <typename Look>
Spun spin_until(std::uint32_t budget_us, Look look) {
  SpinTurns turns(budget_us);
  while (turns.begin()) {
    for (int round = 0; round < 4; ++round) {
      for (int i = 0; i < 4; ++i) {
        sys::pause();
      }
      if (look()) {
        return turns.end(true);
      }
    }
    turns.give_way();
    if (look()) {
      return turns.end(true);
    }
  }
  return turns.end(false);
}

// The same, as long as it has paid at the place whose budget this is.
template <typename Look>
bool spin_until(SpinBudget& budget, WaitMode mode, Look look) {
  const Spun spun = spin_until(budget.budget_us(mode), look);
  budget.record(spun);
  return came(spun);
}

// Spins for the whole time, which is a few microseconds, without a condition and without a yield.
inline void spin_for(std::uint32_t us) {
  for (const std::uint64_t end = sys::ticks() + us * sys::ticks_per_us(); sys::ticks() < end;) {
    sys::pause();
  }
}

}  // namespace weft::sync
