// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "weft/base/counter_table.h"
#include "weft/sync/duration_counts.h"
#include "weft/sync/lock.h"
#include "weft/sys/clock.h"

namespace weft::serve {

// HandlerTimes: a histogram of durations for each handler of a service on one core.
// Owner: its user; it outlives the handlers. Affinity: a histogram that series() returned belongs to one thread; the
// calls are of any thread.
// Cost: 300 bytes a series; a duration is two readings of the processor's counter, a division and three stores.
// Invariant: there are at most kSeriesMax histograms, and one named "other" for all further handlers.
class HandlerTimes {
 public:
  static constexpr std::size_t kSeriesMax = 256;
  using Labels = std::vector<CounterLabel>;  // {{"handler", "/users/{id}"}, {"method", "GET"}}

  HandlerTimes() noexcept { (void)sys::ticks_per_us(); }  // measures here, not in the first request
  HandlerTimes(const HandlerTimes&) = delete;
  HandlerTimes& operator=(const HandlerTimes&) = delete;
  ~HandlerTimes() = default;

  // A histogram for the handler with these labels. Throws std::bad_alloc.
  [[nodiscard]] sync::DurationCounts& series(Labels labels);
  // A reading of each histogram that has a duration; its labels are `of`, then its own.
  void read_into(const sync::DurationRow& row, const CounterLabel& of, sync::DurationReadings& into) const;

 private:
  struct Series {
    explicit Series(Labels of) : labels(std::move(of)) {}
    Labels labels;
    sync::DurationCounts counts;
  };

  mutable sync::StdMutex mutex_;
  std::deque<Series> series_ WEFT_GUARDED_BY(mutex_);  // a Series stays where it is
};

// HandlerTimer: adds the time from its construction to its end. Affinity: the thread of the histogram.
class HandlerTimer {
 public:
  explicit HandlerTimer(sync::DurationCounts& into) noexcept : into_(into), began_(sys::ticks()) {}
  HandlerTimer(const HandlerTimer&) = delete;
  HandlerTimer& operator=(const HandlerTimer&) = delete;
  ~HandlerTimer() { into_.add(sys::time_between(began_, sys::ticks())); }

 private:
  sync::DurationCounts& into_;
  const std::uint64_t began_;
};

}  // namespace weft::serve
