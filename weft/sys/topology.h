// SPDX-License-Identifier: MIT
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weft::sys {

// PhysicalCore: a core of the machine, named by the one of its CPUs that a thread shall use.
struct PhysicalCore {
  static constexpr unsigned kFullCapacity = 1024;

  unsigned cpu = 0;                   // the lowest allowed of its hardware threads
  unsigned node = 0;                  // of NUMA; 0 where the system does not report it
  unsigned capacity = kFullCapacity;  // strength relative to the strongest kind

  friend bool operator==(const PhysicalCore&, const PhysicalCore&) = default;
};

inline constexpr unsigned kCpuIdsMax = 8192;  // larger numbers in lists are ignored

// The numbers of a list in the kernel's form ("0-3,8,10-11\n"), in order. Text that does not parse ends the
// list.
[[nodiscard]] std::vector<unsigned> parse_cpu_list(std::string_view text);

// One entry for each physical core with an allowed CPU that is online: strong cores first, then by node, then
// by number. Numbers may have gaps. The system describes itself under `devices`: capacity by cpu_capacity, or
// the kind of core on a hybrid x86. A machine without that has cores of one thread, all alike, in node 0.
[[nodiscard]] std::vector<PhysicalCore> physical_cores(std::span<const unsigned> allowed,
                                                       const std::string& devices = "/sys/devices");

// The CPUs that the calling thread may run on, by affinity and cpuset, in order. Never empty.
[[nodiscard]] std::vector<unsigned> allowed_cpu_ids();

}  // namespace weft::sys
