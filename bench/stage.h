// SPDX-License-Identifier: MIT
#pragma once

#include <pthread.h>
#include <sched.h>

#include <atomic>
#include <cstdint>
#include <functional>

#include "bench/cell.h"

namespace bench {

// Stage: lets threads, perhaps of two processes, take turns. Owner: shared memory; see shared_memory().
// Affinity: `parties` threads, which make the same calls in the same order; one leader and one follower play
// ping-pong.
class Stage {
 public:
  explicit Stage(int parties = 2);
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

  // Returns when all threads have called it. The first ones sleep, so that waiting costs no CPU time.
  void meet() { pthread_barrier_wait(&barrier_); }
  // As meet(), but the first threads yield in a loop. All leave it running, within a microsecond of each other
  // if two.
  void meet_awake();
  // The round trip of one cache line between leader and follower, in nanoseconds: the median of `chunks` chunks
  // of `rounds` round trips. Both threads run before the clock starts, on cores of their own if the scheduler
  // grants that within some milliseconds. The follower returns 0.
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

// Spins until `look()` returns true. Yields now and then, so that the other thread runs even when both share a core.
template <typename Look>
void yield_until(Look look, int spins_max = 4'000) {
  for (int spins = 0; !look(); ++spins) {
    if (spins == spins_max) {
      sched_yield();
      spins = 0;
    }
  }
}

// Pins the calling thread, and those that it starts later, to a processor of its side's own. The leader has the first
// that this program may use.
void pin(Side side);

// Memory of `size` zero bytes that a forked process shares; it lives as long as the program.
void* shared_memory(std::size_t size);

// Runs `leader` in this thread and `follower` in another thread, or in another process, which is forked first.
// Returns when both are done. If the other process fails, the program ends with an error.
void run_both(bool processes, const std::function<void()>& leader, const std::function<void()>& follower);

}  // namespace bench
