// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "weft/base/result.h"
#include "weft/base/time.h"
#include "weft/rt/loop/job.h"

namespace weft::rt {

// Timekeeper: keeps jobs until their time, on a timer wheel with a thread of its own, and then calls a sink with them.
// Owner: an executor.
// Affinity: any thread; destruction once.
// Cost: schedule() locks a mutex. The first schedule() starts the thread; an idle thread makes no wake-ups.
// Invariants:
//   1. A job goes to the sink no earlier than its time.
//   2. A job that the sink refuses with resource_exhausted is offered again every millisecond; after any other error it
//      is dropped.
//   3. After stop() the sink is not called. A stop() inside the sink's call returns before that call ends.
class Timekeeper {
 public:
  // Moves from the job only when it takes it.
  using Sink = std::function<Result<void>(Job&)>;
  static constexpr std::size_t kJobsMax = std::size_t{1} << 20;  // that wait

  explicit Timekeeper(Sink sink);
  Timekeeper(const Timekeeper&) = delete;
  Timekeeper& operator=(const Timekeeper&) = delete;
  ~Timekeeper();

  // resource_exhausted: kJobsMax, no memory or no thread; closed: stopped. The job is moved from only when taken.
  [[nodiscard]] Result<void> schedule(Duration delay, Job& job);
  // Drops the waiting jobs and returns their number; does not wait. Idempotent.
  std::size_t close();
  void stop();  // close(), and waits until the sink is not called any more

 private:
  struct Core;
  std::shared_ptr<Core> core_;  // shared with the thread
};

}  // namespace weft::rt
