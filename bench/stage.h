// SPDX-License-Identifier: MIT
#pragma once

#include <pthread.h>
#include <sched.h>

#include <atomic>
#include <cstdint>
#include <functional>

#include "bench/cell.h"

namespace bench {

// Stage: where threads, perhaps of two processes, take turns. Owner: shared memory; see shared_memory().
// Affinity: `parties` threads, which make the same calls in the same order; one leader and one follower play ping-pong.
class Stage {
 public:
  explicit Stage(int parties = 2);
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

  // Returns when all have called it; whoever comes first sleeps, so that it costs no CPU time.
  void meet() { pthread_barrier_wait(&barrier_); }
  // The same, but the first ones yield in a loop: all leave it running, two of them within a microsecond of each other.
  void meet_awake();
  // The round trip of one cache line between the two, in nanoseconds: a median of `chunks` chunks of `rounds` round
  // trips. Both threads are running before the clock starts, on cores of their own if the scheduler grants it within
  // some milliseconds. The follower returns 0.
  double ping_pong(Side side, int chunks, std::uint32_t rounds);

 private:
  static void arrive(std::atomic<std::uint32_t>& arrived, std::uint32_t parties);
  void return_balls();

  const std::uint32_t parties_;
  pthread_barrier_t barrier_;
  alignas(128) std::atomic<std::uint32_t> arrived_{0};
  std::atomic<std::uint32_t> players_{0};
  alignas(128) std::atomic<std::uint32_t> ball_{0};
};

// Spins until `look()`; yields now and then, so that the other one runs even when both share a core.
template <typename Look>
void yield_until(Look look, int spins_max = 4'000) {
  for (int spins = 0; !look(); ++spins) {
    if (spins == spins_max) {
      sched_yield();
      spins = 0;
    }
  }
}

// Memory of `size` zero bytes that a forked process shares; lives as long as the program.
void* shared_memory(std::size_t size);

// Runs `leader` in this thread and `follower` in another thread, or in another process that is forked first.
// Returns when both are done. The program ends with an error when the other process does.
void run_both(bool processes, const std::function<void()>& leader, const std::function<void()>& follower);

}  // namespace bench
