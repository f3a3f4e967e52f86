// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "weft/base/result.h"
#include "weft/base/time.h"

namespace weft::rt {

// IntervalTimers: callbacks that repeat until they are cancelled, for a program that has a loop of its own: the program
// sleeps for until_next() and calls run().
// Owner: its user.
// Affinity: one thread.
// Cost: O(log n) a call, O(log n) a timer that runs; adding allocates.
// Invariants:
//   1. Timers run in the order in which they are due, and those due at the same instant in the order of arming.
//   2. One run() calls a timer at most once, however late the timer is. The timer is then due an interval after `now`.
//   3. A callback may change any timer, its own included, and may destroy the IntervalTimers: then no other one is
//      called. A timer that it adds or re-arms waits for the next run().
class IntervalTimers {
 public:
  IntervalTimers() = default;
  IntervalTimers(const IntervalTimers&) = delete;
  IntervalTimers& operator=(const IntervalTimers&) = delete;
  ~IntervalTimers() {
    if (run_ != nullptr) {
      run_->gone = true;
    }
  }

  using Callback = void (*)(int id, void* argument);

  [[nodiscard]] int add(Instant now, Duration interval, Callback callback,
                        void* argument);  // the id: 1, 2, 3 ...; 0: no callback
  // Fails with invalid_argument if there is no such timer.
  [[nodiscard]] Result<void> cancel(int id) noexcept;
  void clear() noexcept {  // cancels all
    queue_.clear();
    timers_.clear();
  }
  [[nodiscard]] Result<void> set_interval(Instant now, int id, Duration interval) noexcept;  // and restarts it
  [[nodiscard]] Result<void> reset(Instant now, int id) noexcept;

  // Zero if one is overdue, nullopt if there is none.
  [[nodiscard]] std::optional<Duration> until_next(Instant now) const noexcept;
  // Has no effect if a callback calls it. Rethrows the exception of a callback: that timer has run, and the next run()
  // calls the others.
  void run(Instant now);
  [[nodiscard]] bool running() const noexcept { return run_ != nullptr; }

 private:
  using Entry = std::tuple<Instant, std::uint64_t, int>;  // when it is due, order of arming, id
  struct Timer {
    Instant due;
    std::uint64_t order = 0;
    Duration interval{};
    Callback callback = nullptr;
    void* argument = nullptr;
  };

  // Run: a call of run(), which a callback may leave by an exception, or without the timers.
  struct Run {
    explicit Run(IntervalTimers& of) noexcept;
    Run(const Run&) = delete;
    Run& operator=(const Run&) = delete;
    ~Run() {
      if (!gone) {
        timers.run_ = nullptr;
      }
    }
    IntervalTimers& timers;
    bool gone = false;
  };

  void arm(int id, Timer& timer, Instant now) noexcept;

  std::map<int, Timer> timers_;
  std::set<Entry> queue_;  // one for each timer, the next one due first
  std::uint64_t next_order_ = 0;
  int last_id_ = 0;
  Run* run_ = nullptr;  // the call that is under way
};

}  // namespace weft::rt
