// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <cstdint>

#include "weft/sync/atomic.h"
#include "weft/sys/clock.h"
#include "weft/sys/cpu.h"

namespace weft::sync {

// How long a thread may spin before it sleeps.
enum class WaitMode : std::uint8_t {
  adaptive,  // yield-spin while spinning pays, learnt at run time (default)
  latency,   // yield-spin up to 200 us always
  eco,       // sleep at once
};

// False where the other thread cannot run meanwhile (one CPU) or where spinning burns a cgroup quota.
[[nodiscard]] inline bool spinning_pays() noexcept {
  static const bool pays = sys::allowed_cpus() > 1 && !sys::quota_limited();
  return pays;
}

// SpinBudget: learns whether spinning pays at one waiting place.
// Affinity: any thread; a lost update only delays learning. Cost: a few relaxed loads and stores per wait.
// A wake-up costs about 20-50 us where it was measured, so spinning that long is at worst twice the optimum
// (the ski-rental argument). When fewer than one wait in five ends while spinning, the budget drops to kLeastUs.
// Every 64th wait still gets the full 50 us.
class SpinBudget {
 public:
  [[nodiscard]] std::uint32_t budget_us(WaitMode mode) noexcept {
    if (mode == WaitMode::eco || !spinning_pays()) {
      return 0;
    }
    if (mode == WaitMode::latency) {
      return kLatencyUs;
    }
    const std::uint32_t waits = waits_.load(std::memory_order_relaxed) + 1;
    waits_.store(waits, std::memory_order_relaxed);
    return success_.load(std::memory_order_relaxed) >= kOne / 5 || waits % kProbeEvery == 0 ? kFullUs : kLeastUs;
  }

  void record(bool ended_while_spinning) noexcept {
    const std::uint32_t old = success_.load(std::memory_order_relaxed);
    success_.store(old - old / 8 + (ended_while_spinning ? kOne / 8 : 0), std::memory_order_relaxed);
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

// Spins until `look()` is true or the budget is spent: short pauses, then sched_yield, so that on a shared
// core the other thread gets to run. The thread never spins longer than about 2 us without a yield.
template <typename Look>
bool spin_until(std::uint32_t budget_us, Look look) {
  if (budget_us == 0) {
    return false;
  }
  const std::uint64_t end = sys::ticks() + budget_us * sys::ticks_per_us();
  do {
    for (int round = 0; round < 4; ++round) {
      for (int i = 0; i < 4; ++i) {
        sys::pause();
      }
      if (look()) {
        return true;
      }
    }
    sys::yield();
    if (look()) {
      return true;
    }
  } while (sys::ticks() < end);
  return false;
}

// Spins for the whole time, without a condition.
inline void spin_for(std::uint32_t us) {
  (void)spin_until(us, [] { return false; });
}

}  // namespace weft::sync
