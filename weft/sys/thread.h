// SPDX-License-Identifier: MIT
#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <thread>

#include "weft/base/result.h"
#include "weft/sys/fork.h"

namespace weft::sys {

// ThreadOptions: the scheduling and the name of the threads that a context starts. A value of fixed size.
struct ThreadOptions {
  static constexpr std::size_t kCpusMax = 1024;
  static constexpr std::size_t kNamePrefixMax = 16;

  int policy = -1;             // SCHED_FIFO and so on; negative: the starting thread's
  int priority = -1;           // of a real-time policy; with other policies any positive value means the nice value -20
  std::bitset<kCpusMax> cpus;  // empty: any
  char name_prefix[kNamePrefixMax + 1] = {};
};

// Names the calling thread "prefix/name", of which the kernel keeps the first 15 bytes, and schedules it. A setting
// that the system refuses, because of missing rights or a missing CPU, stays unchanged, and the thread works
// nevertheless.
void set_up_thread(const char* name, const ThreadOptions& options) noexcept;

// Thread: std::thread that returns an error if the system refuses another thread. Owner: a move-only value; the
// destructor joins at the latest. Affinity: one thread at a time. In a forked child, which does not have the thread,
// join() and destruction have no effect.
class Thread {
 public:
  Thread() noexcept = default;
  // Errors: resource_exhausted. `run(argument)` may begin before start() returns.
  [[nodiscard]] static Result<Thread> start(void (*run)(void*), void* argument) noexcept;
  Thread(Thread&& other) noexcept;
  Thread& operator=(Thread&& other) noexcept;
  ~Thread() { join(); }

  void join() noexcept;  // idempotent; a thread that joins itself is detached
  // The same as a cancellation point. The object is unchanged if the calling thread ends in here.
  void join_cancellably();

 private:
  std::thread::native_handle_type id_{};
  Birth birth_;  // of the process that has the thread
  bool joinable_ = false;
};

}  // namespace weft::sys
