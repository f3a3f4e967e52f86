// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <chrono>

#include "weft/base/time.h"

namespace weft::rt {

// LatencyOptions: how long a thread polls before it parks, with WaitMode::latency.
struct LatencyOptions {
  static constexpr Duration kPollForMax = std::chrono::milliseconds(10);

  Duration poll_for = std::chrono::microseconds(200);  // of one wait; zero: the thread parks at once
  // Of the thread's time, so much may pass in polls that precede a park, whether they find something or not; 100: all
  // of it. The thread that has spent it parks at once, as with WaitMode::eco, until it has earned some again.
  unsigned cpu_percent = 75;

  [[nodiscard]] constexpr bool valid() const noexcept {
    return poll_for >= Duration::zero() && poll_for <= kPollForMax && cpu_percent <= 100;
  }
};

// PollBudget: the share of a thread's time that its polls may take.
// Owner: the thread's loop; time is an argument. Affinity: that thread. Cost: a few additions.
// Invariant: in any time T the polls that allowed() permits take at most kSaved + T * cpu_percent / 100, and the time
// by which polls in it exceeded their permission.
class PollBudget {
 public:
  static constexpr Duration kSaved = std::chrono::milliseconds(10);  // a thread that rested has at most that
  static constexpr Duration kLeast = std::chrono::microseconds(2);   // a shorter poll finds less than it costs

  void set(const LatencyOptions& options) noexcept { options_ = options; }
  // The time for which the wait that begins now may poll; zero: it parks at once.
  [[nodiscard]] Duration allowed(Instant now) noexcept {
    if (options_.cpu_percent >= 100) {
      return options_.poll_for;
    }
    // Bounded before the product: a longer rest fills the budget in any case, and would overflow it.
    const Duration passed = std::clamp(now - seen_at_, Duration::zero(), Duration(std::chrono::seconds(1)));
    seen_at_ = std::max(seen_at_, now);
    saved_ = std::min(kSaved, saved_ + passed * options_.cpu_percent / 100);
    const Duration allowed = std::min(options_.poll_for, saved_);
    return allowed < kLeast ? Duration::zero() : allowed;
  }
  // The poll took so long. The debt of one that took longer than permitted is earned before the next one.
  void spend(Duration polled) noexcept { saved_ -= polled; }

 private:
  LatencyOptions options_;
  Instant seen_at_;
  Duration saved_ = Duration::zero();
};

}  // namespace weft::rt
