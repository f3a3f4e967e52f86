// SPDX-License-Identifier: MIT
#pragma once

#include <sys/resource.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace bench {

// Resources that this process has used since it started, in all threads together.
struct Usage {
  double cpu_seconds = 0;         // user and system
  std::uint64_t switches = 0;     // context switches, voluntary or not
  std::uint64_t allocations = 0;  // only with bench/allocations.cc in LD_PRELOAD

  Usage operator-(const Usage& before) const {
    return {cpu_seconds - before.cpu_seconds, switches - before.switches, allocations - before.allocations};
  }
};

Usage usage_now();
bool counts_allocations();
std::uint64_t private_memory();  // bytes of anonymous memory that this process has touched; 0: unknown

// SyscallCounter: counts the system calls of threads (0: this one), and of all threads and processes that these start
// later. Owner: main; to count the program itself, main makes it before other threads. Counts nothing if switched off,
// or if the kernel does not allow it (no tracefs, no rights).
class SyscallCounter {
 public:
  explicit SyscallCounter(bool wanted, const std::vector<int>& threads = {0});
  ~SyscallCounter();
  SyscallCounter(const SyscallCounter&) = delete;
  SyscallCounter& operator=(const SyscallCounter&) = delete;

  void start();
  void stop();
  [[nodiscard]] std::optional<std::uint64_t> count() const;  // between start and stop

 private:
  std::uint64_t read_total() const;

  std::vector<int> fds_;
  std::uint64_t before_ = 0;
};

}  // namespace bench
