// SPDX-License-Identifier: MIT
#include "bench/server/target.h"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "bench/server/load.h"

namespace bench {
namespace {

// The sum of the numbers behind the names in a file of proc(5).
std::uint64_t sum_of(const std::string& path, const std::vector<std::string>& names) {
  std::ifstream file(path);
  std::uint64_t total = 0;
  for (std::string word; file >> word;) {
    std::uint64_t number = 0;
    for (const std::string& name : names) {
      if (word == name && file >> number) {
        total += number;
      }
    }
  }
  return total;
}

}  // namespace

Target::Target(pid_t pid) : pid_(pid) {
  if (clock_getcpuclockid(pid, &clock_) != 0) {
    throw LoadError("no process " + std::to_string(pid));
  }
}

double Target::cpu_seconds() const {
  timespec time{};
  return clock_gettime(clock_, &time) == 0 ? static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9
                                           : 0;
}

std::vector<int> Target::threads() const {
  std::vector<int> found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/" + std::to_string(pid_) + "/task", error)) {
    found.push_back(std::stoi(entry.path().filename()));
  }
  return found;
}

std::uint64_t Target::switches() const {
  std::uint64_t total = 0;
  for (const int thread : threads()) {
    total += sum_of("/proc/" + std::to_string(pid_) + "/task/" + std::to_string(thread) + "/status",
                    {"voluntary_ctxt_switches:", "nonvoluntary_ctxt_switches:"});
  }
  return total;
}

std::uint64_t Target::private_memory() const {
  return sum_of("/proc/" + std::to_string(pid_) + "/smaps_rollup", {"Private_Dirty:"}) * 1024;
}

void Target::rest() const {
  const std::uint64_t give_up = now_ns() + 1'000'000;
  bool runs = true;
  while (runs && now_ns() < give_up) {
    runs = false;
    for (const int thread : threads()) {
      std::ifstream file("/proc/" + std::to_string(pid_) + "/task/" + std::to_string(thread) + "/stat");
      std::string number;
      std::string name;
      std::string state;
      file >> number >> name >> state;  // the threads of the benchmark's servers have no spaces in their names
      runs = runs || state == "R";
    }
  }
}

void Target::settle() const {
  const std::uint64_t give_up = now_ns() + 1'000'000'000;
  double before = -1;
  for (double now = cpu_seconds(); now > before && now_ns() < give_up; now = cpu_seconds()) {
    before = now;
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
  }
}

}  // namespace bench
