// SPDX-License-Identifier: MIT
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <ctime>
#include <vector>

namespace bench {

// Target: the resources that another process uses. Owner: main. Affinity: any thread. An ended process counts as 0.
class Target {
 public:
  explicit Target(pid_t pid);

  [[nodiscard]] double cpu_seconds() const;            // user and system, all threads, to the nanosecond
  [[nodiscard]] std::uint64_t switches() const;        // context switches of all threads, voluntary or not
  [[nodiscard]] std::uint64_t private_memory() const;  // bytes of its own that it has written to (Private_Dirty)
  [[nodiscard]] std::vector<int> threads() const;
  // Returns when all its threads sleep, or after a millisecond. The kernel adds up a thread's CPU time when the
  // thread goes to sleep, otherwise only every few milliseconds.
  void rest() const;
  // Returns when the process has used no CPU time for some milliseconds, or after a second.
  void settle() const;

 private:
  const pid_t pid_;
  clockid_t clock_ = CLOCK_MONOTONIC;
};

}  // namespace bench
