// SPDX-License-Identifier: MIT
#pragma once

#include "weft/net/backoff.h"
#include "weft/rt/task/task.h"
#include "weft/rt/task/task_time.h"

namespace weft::serve {

// Attempt: the outcome of one connection, or of the attempt to make it.
enum class Attempt : bool {
  failed,  // no connection was made, or it ended before the peer sent anything
  proved,  // the peer sent a byte: the next wait is the first one again
};

// Runs attempt() until its task is cancelled or wanted() returns false. The wait between two attempts grows while they
// fail. A peer that accepts connections and drops them gets no more attempts than a peer that refuses them. An attempt
// that throws has failed.
template <typename MakeAttempt, typename Wanted>
rt::Task<void> keep_connected(MakeAttempt attempt, Wanted wanted, net::Backoff backoff) {
  while (wanted()) {
    Attempt outcome = Attempt::failed;
    try {
      outcome = co_await attempt();
    } catch (...) {  // NOLINT(bugprone-empty-catch): the next attempt comes after a wait
    }
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
