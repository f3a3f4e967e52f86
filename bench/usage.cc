// SPDX-License-Identifier: MIT
#include "bench/usage.h"

#include <dlfcn.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <fstream>
#include <string>

namespace bench {
namespace {

using CountFunction = std::uint64_t (*)();

CountFunction allocation_count() {
  static const auto function = reinterpret_cast<CountFunction>(dlsym(RTLD_DEFAULT, "weft_bench_allocations"));
  return function;
}

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

}  // namespace

Usage usage_now() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return {seconds(usage.ru_utime) + seconds(usage.ru_stime),
          static_cast<std::uint64_t>(usage.ru_nvcsw) + static_cast<std::uint64_t>(usage.ru_nivcsw),
          counts_allocations() ? allocation_count()() : 0};
}

bool counts_allocations() { return allocation_count() != nullptr; }

std::uint64_t private_memory() {
  std::ifstream file("/proc/self/status");  // proc(5): RssAnon, in KiB
  for (std::string word; file >> word;) {
    std::uint64_t kib = 0;
    if (word == "RssAnon:" && file >> kib) {
      return kib * 1024;
    }
  }
  return 0;
}

SyscallCounter::SyscallCounter(bool wanted, const std::vector<int>& threads) {
  if (!wanted) {
    return;
  }
  std::uint64_t id = 0;
  for (const char* place : {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"}) {
    std::ifstream file(std::string(place) + "/events/raw_syscalls/sys_enter/id");
    if (file >> id) {
      break;
    }
  }
  if (id == 0) {
    return;
  }
  perf_event_attr attributes{};
  attributes.type = PERF_TYPE_TRACEPOINT;
  attributes.size = sizeof attributes;
  attributes.config = id;
  attributes.disabled = 1;
  attributes.inherit = 1;
  for (const int thread : threads) {
    const auto fd = static_cast<int>(syscall(SYS_perf_event_open, &attributes, thread, -1, -1, PERF_FLAG_FD_CLOEXEC));
    if (fd >= 0) {
      fds_.push_back(fd);
    }
  }
}

SyscallCounter::~SyscallCounter() {
  for (const int fd : fds_) {
    close(fd);
  }
}

void SyscallCounter::start() {
  before_ = read_total();
  for (const int fd : fds_) {
    ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
  }
}

void SyscallCounter::stop() {
  for (const int fd : fds_) {
    ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
  }
}

std::optional<std::uint64_t> SyscallCounter::count() const {
  return fds_.empty() ? std::nullopt : std::optional(read_total() - before_);
}

// Includes the counts of threads and processes that inherited the counter.
std::uint64_t SyscallCounter::read_total() const {
  std::uint64_t total = 0;
  for (const int fd : fds_) {
    std::uint64_t value = 0;
    total += read(fd, &value, sizeof value) == sizeof value ? value : 0;
  }
  return total;
}

}  // namespace bench
