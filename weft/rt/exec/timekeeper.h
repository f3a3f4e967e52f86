// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <stop_token>

#include "weft/base/result.h"
#include "weft/base/time.h"
#include "weft/rt/exec/executor.h"
#include "weft/rt/exec/job_run.h"
#include "weft/rt/loop/job.h"

namespace weft::rt {

// Timekeeper: keeps jobs until their time, on a timer wheel with a thread of its own, and then offers them to a sink.
// Owner: an executor.
// Affinity: any thread; destruction once.
// Cost: schedule() locks a mutex and takes a pooled block; a cancellation is O(1). The first schedule() starts the
// thread; an idle thread makes no wake-ups.
// Invariants:
//   1. A job that was taken goes to the sink once, no earlier than its time, or is dropped and counted.
//   2. A job that the sink refuses with resource_exhausted is offered again every millisecond; after any other error it
//      is dropped.
//   3. When the token of a waiting job is set, the job is called at once, in the thread that sets the token, and counts
//      as dropped: such a job checks its token. Its place is free then.
//   4. A dropped job is destroyed in a scope of the sink's `drops`.
//   5. After join() the sink is not called. A join() inside the sink's call returns before that call ends.
class Timekeeper {
 public:
  struct Sink {
    std::function<Result<void>(Job&)> offer;         // moves from the job only when it takes it
    std::function<void(std::size_t)> count_dropped;  // any thread
    detail::Drops& drops;                            // the owner's; lives as long as the two functions
  };
  static constexpr std::size_t kJobsMax = std::size_t{1} << 20;  // that wait

  explicit Timekeeper(Sink sink);
  Timekeeper(const Timekeeper&) = delete;
  Timekeeper& operator=(const Timekeeper&) = delete;
  ~Timekeeper();

  // resource_exhausted: kJobsMax, no memory or no thread; closed. The job is moved from only when taken.
  [[nodiscard]] Result<void> schedule(Duration delay, std::stop_token token, Job& job);
  // Takes no more jobs, and drops those that wait; `drain`: but for those that are due, which the thread still offers,
  // each once. Does not wait. Idempotent.
  void close(StopMode mode);
  // After close(): whether the thread has ended by then. It ends after it has offered the due jobs.
  [[nodiscard]] bool wait_until_ended(Instant deadline) noexcept;
  void join();  // close(abandon), or the mode of the earlier close(), and the end of the thread
  // After join(): the next due job that the sink had no room for; an empty Job: there is none.
  [[nodiscard]] Job take_due();

 private:
  struct Core;
  std::shared_ptr<Core> core_;  // shared with the thread
};

}  // namespace weft::rt
