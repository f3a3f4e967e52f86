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

SyscallCounter::SyscallCounter(bool wanted) {
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
  fd_ = static_cast<int>(syscall(SYS_perf_event_open, &attributes, 0, -1, -1, PERF_FLAG_FD_CLOEXEC));
}

SyscallCounter::~SyscallCounter() {
  if (fd_ >= 0) {
    close(fd_);
  }
}

void SyscallCounter::start() {
  if (fd_ >= 0) {
    before_ = read_total();
    ioctl(fd_, PERF_EVENT_IOC_ENABLE, 0);
  }
}

void SyscallCounter::stop() {
  if (fd_ >= 0) {
    ioctl(fd_, PERF_EVENT_IOC_DISABLE, 0);
  }
}

std::optional<std::uint64_t> SyscallCounter::count() const {
  return fd_ >= 0 ? std::optional(read_total() - before_) : std::nullopt;
}

// With those of the threads and processes that inherited the counter.
std::uint64_t SyscallCounter::read_total() const {
  std::uint64_t value = 0;
  return read(fd_, &value, sizeof value) == sizeof value ? value : 0;
}

}  // namespace bench
