// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "weft/base/result.h"
#include "weft/base/time.h"
#include "weft/rt/loop/job.h"

namespace weft::rt {

// Timekeeper: jobs that wait for their time, on a timer wheel with a thread of its own, and then go to a sink.
// Owner: an executor. Affinity: any thread; stop() and destruction once. Cost: schedule() locks a mutex; the thread is
// started by the first one, and an idle one makes no wake-ups.
// Invariants: 1. a job goes to the sink no earlier than its time. 2. one that the sink refuses for want of room is
// offered again every millisecond; one that it refuses for good is dropped. 3. after stop() the sink is not called,
// but by a stop() inside a sink's call, whose call goes on.
class Timekeeper {
 public:
  // Moved from only when taken.
  using Sink = std::function<Result<void>(Job&)>;
  static constexpr std::size_t kJobsMax = std::size_t{1} << 20;  // that wait

  explicit Timekeeper(Sink sink);
  Timekeeper(const Timekeeper&) = delete;
  Timekeeper& operator=(const Timekeeper&) = delete;
  ~Timekeeper();

  // resource_exhausted: kJobsMax, no memory or no thread; closed: stopped. The job is moved from only when taken.
  [[nodiscard]] Result<void> schedule(Duration delay, Job& job);
  // Drops what waits and says how much that was; does not wait. Idempotent.
  std::size_t close();
  void stop();  // close(), and waits until the sink is not called any more

 private:
  struct Core;
  std::shared_ptr<Core> core_;  // the thread's too
};

}  // namespace weft::rt
