// SPDX-License-Identifier: MIT
#include "weft/sys/topology.h"

#include <sched.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <tuple>

#include "weft/sys/call.h"
#include "weft/sys/small_file.h"

namespace weft::sys {

namespace {

std::optional<unsigned> take_number(std::string_view& text) {
  unsigned value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc()) {
    return std::nullopt;
  }
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

bool take_character(std::string_view& text, char wanted) {
  if (text.empty() || text.front() != wanted) {
    return false;
  }
  text.remove_prefix(1);
  return true;
}

std::vector<unsigned> read_cpu_list(const std::string& path) { return parse_cpu_list(read_small_file(path)); }

bool contains(const std::vector<unsigned>& numbers, unsigned number) {
  return std::binary_search(numbers.begin(), numbers.end(), number);
}

// The core's name: the lowest hardware thread of the CPU's core, allowed or not.
unsigned first_sibling(const std::string& cpu_directory, unsigned cpu) {
  for (const char* file : {"/topology/core_cpus_list", "/topology/thread_siblings_list"}) {  // the second before 5.3
    const auto siblings = read_cpu_list(cpu_directory + file);
    if (contains(siblings, cpu)) {
      return siblings.front();
    }
  }
  return cpu;
}

std::map<unsigned, unsigned> read_nodes(const std::string& devices) {
  std::map<unsigned, unsigned> node_of;
  for (const unsigned node : read_cpu_list(devices + "/system/node/online")) {
    for (const unsigned cpu : read_cpu_list(devices + "/system/node/node" + std::to_string(node) + "/cpulist")) {
      node_of[cpu] = node;
    }
  }
  return node_of;
}

// Without cpu_capacity, a hybrid x86 lists its kinds of cores beside their counters.
class Capacities {
 public:
  explicit Capacities(const std::string& devices) : efficient_(read_cpu_list(devices + "/cpu_atom/cpus")) {}
  [[nodiscard]] unsigned of(const std::string& cpu_directory, unsigned cpu) const {
    const std::string text = read_small_file(cpu_directory + "/cpu_capacity");
    std::string_view rest(text);
    if (const auto capacity = take_number(rest)) {
      return *capacity;
    }
    return contains(efficient_, cpu) ? PhysicalCore::kFullCapacity / 2 : PhysicalCore::kFullCapacity;
  }

 private:
  std::vector<unsigned> efficient_;
};

}  // namespace

std::vector<unsigned> parse_cpu_list(std::string_view text) {
  std::vector<unsigned> cpus;
  do {
    const auto first = take_number(text);
    if (!first) {
      break;
    }
    const auto last = take_character(text, '-') ? take_number(text) : first;
    if (!last) {
      break;
    }
    for (unsigned cpu = *first; cpu <= std::min(*last, kCpuIdsMax - 1); ++cpu) {
      cpus.push_back(cpu);
    }
  } while (take_character(text, ',') && cpus.size() <= kCpuIdsMax);
  std::sort(cpus.begin(), cpus.end());
  cpus.erase(std::unique(cpus.begin(), cpus.end()), cpus.end());
  return cpus;
}

std::vector<PhysicalCore> physical_cores(std::span<const unsigned> allowed, const std::string& devices) {
  const auto online = read_cpu_list(devices + "/system/cpu/online");
  const auto node_of = read_nodes(devices);
  const Capacities capacities(devices);
  std::vector<unsigned> cpus(allowed.begin(), allowed.end());
  std::sort(cpus.begin(), cpus.end());
  std::map<unsigned, PhysicalCore> by_sibling;
  for (const unsigned cpu : cpus) {
    if (!online.empty() && !contains(online, cpu)) {
      continue;
    }
    const std::string directory = devices + "/system/cpu/cpu" + std::to_string(cpu);
    const unsigned name = first_sibling(directory, cpu);
    if (by_sibling.contains(name)) {
      continue;  // another thread of a core that has an entry already
    }
    const auto node = node_of.find(cpu);
    by_sibling[name] = {cpu, node == node_of.end() ? 0 : node->second, capacities.of(directory, cpu)};
  }
  std::vector<PhysicalCore> cores;
  cores.reserve(by_sibling.size());
  for (const auto& [name, core] : by_sibling) {
    cores.push_back(core);
  }
  std::sort(cores.begin(), cores.end(), [](const PhysicalCore& a, const PhysicalCore& b) {
    return std::tuple(b.capacity, a.node, a.cpu) < std::tuple(a.capacity, b.node, b.cpu);
  });
  return cores;
}

std::vector<unsigned> allowed_cpu_ids() {
  std::vector<unsigned> cpus;
  std::vector<unsigned long> mask(16);  // 1024 processors; on a machine with more the kernel answers EINVAL
  for (; mask.size() * 8 * sizeof(unsigned long) <= kCpuIdsMax * 8; mask.resize(mask.size() * 2)) {
    const std::size_t bytes = mask.size() * sizeof(unsigned long);
    auto* const set = reinterpret_cast<cpu_set_t*>(mask.data());
    const auto result = call([&] { return ::sched_getaffinity(0, bytes, set); });
    if (!result.failed()) {
      for (unsigned cpu = 0; cpu < bytes * 8; ++cpu) {
        if (CPU_ISSET_S(cpu, bytes, set)) {
          cpus.push_back(cpu);
        }
      }
      break;
    }
    if (result.os_errno != EINVAL) {
      break;
    }
  }
  if (cpus.empty()) {
    cpus.push_back(0);
  }
  return cpus;
}

}  // namespace weft::sys
