// SPDX-License-Identifier: MIT
#include "weft/sys/cpu.h"

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <new>
#include <optional>
#include <string>

#include "weft/sys/small_file.h"
#include "weft/sys/topology.h"

namespace weft::sys {
namespace {

// Parses the number at the start of `text` and removes it with one separator.
std::optional<long long> take_quota(std::string_view& text) noexcept {
  long long value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  if (parsed.ec != std::errc()) {
    return std::nullopt;
  }
  const auto used = static_cast<std::size_t>(parsed.ptr - text.data());
  text.remove_prefix(std::min(text.size(), used + 1));
  return value;
}

double quota_in(std::optional<long long> quota, std::optional<long long> period) noexcept {
  if (!quota || !period || *quota <= 0 || *period <= 0) {
    return 0;
  }
  return static_cast<double>(*quota) / static_cast<double>(*period);
}

double quota_of_v1_directory(const std::string& directory) {
  const std::string quota_text = read_small_file(directory + "/cpu.cfs_quota_us");
  const std::string period_text = read_small_file(directory + "/cpu.cfs_period_us");
  std::string_view quota(quota_text);
  std::string_view period(period_text);
  return quota_in(take_quota(quota), take_quota(period));
}

double quota_of_v2_directory(const std::string& directory) {
  return parse_cpu_max(read_small_file(directory + "/cpu.max"));
}

// The tightest quota on the way from the group at `path` to the root; 0: none.
double tightest_quota(const std::string& mount, std::string path, double (*quota_of)(const std::string&)) {
  double tightest = 0;
  for (;;) {
    const double quota = quota_of(mount + path);
    if (quota > 0 && (tightest == 0 || quota < tightest)) {
      tightest = quota;
    }
    if (path.empty()) {
      return tightest;
    }
    path.resize(path.find_last_of('/') == std::string::npos ? 0 : path.find_last_of('/'));
  }
}

// Lines are "hierarchy:controllers:path"; version 2 is hierarchy 0 without controllers.
double control_group_quota() {
  const std::string groups = read_small_file("/proc/self/cgroup");
  double tightest = 0;
  std::string_view rest(groups);
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string_view::npos ? first : line.find(':', first + 1);
    if (second == std::string_view::npos) {
      continue;
    }
    const std::string controllers = "," + std::string(line.substr(first + 1, second - first - 1)) + ",";
    const std::string path(line.substr(second + 1));
    double quota = 0;
    if (controllers == ",,") {
      quota = tightest_quota("/sys/fs/cgroup", path, &quota_of_v2_directory);
    } else if (controllers.find(",cpu,") != std::string::npos) {
      quota = tightest_quota("/sys/fs/cgroup/cpu", path, &quota_of_v1_directory);
    }
    if (quota > 0 && (tightest == 0 || quota < tightest)) {
      tightest = quota;
    }
  }
  return tightest;
}

struct CpuBudget {
  unsigned cpus;
  bool quota_limited;
};

CpuBudget cpu_budget() noexcept {
  try {
    static const CpuBudget budget = [] {
      const auto affinity = static_cast<unsigned>(allowed_cpu_ids().size());
      const double quota = control_group_quota();
      if (quota <= 0 || quota >= affinity) {
        return CpuBudget{affinity, false};
      }
      return CpuBudget{std::max(1u, static_cast<unsigned>(quota)), true};
    }();
    return budget;
  } catch (const std::bad_alloc&) {
    return {1, false};  // the next call reads the files
  }
}

}  // namespace

double parse_cpu_max(std::string_view text) noexcept {
  const auto quota = take_quota(text);
  const auto period = take_quota(text);
  return quota_in(quota, period);
}

void yield() noexcept { ::sched_yield(); }

unsigned allowed_cpus() noexcept { return cpu_budget().cpus; }

bool quota_limited() noexcept { return cpu_budget().quota_limited; }

unsigned machine_cpus() noexcept {
  static const long online = ::sysconf(_SC_NPROCESSORS_ONLN);
  return online > 1 ? static_cast<unsigned>(online) : 1;
}

void name_thread(const char* name) noexcept {
  char shortened[16] = {};
  std::strncpy(shortened, name, sizeof shortened - 1);
  ::pthread_setname_np(::pthread_self(), shortened);
}

}  // namespace weft::sys
