// SPDX-License-Identifier: MIT
#pragma once

#include "weft/net/backoff.h"
#include "weft/rt/task/task.h"
#include "weft/rt/task/task_time.h"

namespace weft::serve {

// What came of one connection, or of the attempt to make it.
enum class Attempt : bool {
  failed,  // none was made, or it ended before the peer had said anything
  proved,  // the peer spoke: the next wait is the first one again
};

// Repeats attempt() until the task is cancelled or wanted() returns false. The waits between attempts grow while these
// fail. A peer that takes connections and drops them is connected to no more often than one that refuses them.
template <typename MakeAttempt, typename Wanted>
rt::Task<void> keep_connected(MakeAttempt attempt, Wanted wanted, net::Backoff backoff) {
  while (wanted()) {
    const Attempt outcome = co_await attempt();
    if (!wanted()) {
      co_return;
    }
    if (outcome == Attempt::proved) {
      backoff.reset();
    }
    const Result<void> slept = co_await rt::sleep(backoff.next());
    if (!slept) {
      co_return;
    }
  }
}

}  // namespace weft::serve
