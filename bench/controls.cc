// SPDX-License-Identifier: MIT
#include "bench/controls.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <fstream>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "bench/stage.h"

namespace bench {
namespace {

using Clock = std::chrono::steady_clock;

double since_ns(Clock::time_point start) {
  return std::chrono::duration<double, std::nano>(Clock::now() - start).count();
}

// The cost of one call in nanoseconds: the median over 15 repetitions of `count` calls.
template <typename Call>
double median_cost(int count, Call call) {
  std::array<double, 15> costs{};
  for (double& cost : costs) {
    const auto start = Clock::now();
    for (int i = 0; i < count; ++i) {
      call();
    }
    cost = since_ns(start) / count;
  }
  std::nth_element(costs.begin(), costs.begin() + costs.size() / 2, costs.end());
  return costs[costs.size() / 2];
}

void wait_for(std::atomic<std::uint32_t>& word, std::uint32_t value) {
  std::uint32_t seen = 0;
  while ((seen = word.load()) != value) {
    syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, seen, nullptr, nullptr, 0);
  }
}

void set_and_wake(std::atomic<std::uint32_t>& word, std::uint32_t value) {
  word.store(value);
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

}  // namespace

Controls measure_controls() {
  Controls controls;
  std::array<unsigned char, 64> from{};
  std::array<unsigned char, 64> to{};
  controls.memcpy_64_ns = median_cost(200'000, [&] {
    asm volatile("" ::"r"(from.data()) : "memory");
    std::memcpy(to.data(), from.data(), from.size());
    asm volatile("" ::"r"(to.data()) : "memory");
  });
  controls.getppid_ns = median_cost(5'000, [] { syscall(SYS_getppid); });

  Stage stage;
  std::atomic<std::uint32_t> there{0};
  std::atomic<std::uint32_t> back{0};
  constexpr std::uint32_t kTrips = 2'000;
  std::vector<double> trips;
  const auto lead = [&] {
    controls.ping_pong_ns = stage.ping_pong(Side::leader, 20, 200);
    pin(Side::leader);  // two threads of one processor wake each other ten times as fast, and chance would decide that
    for (std::uint32_t i = 1; i <= kTrips; ++i) {
      const auto start = Clock::now();
      set_and_wake(there, i);
      wait_for(back, i);
      trips.push_back(since_ns(start));
    }
  };
  const auto follow = [&] {
    stage.ping_pong(Side::follower, 20, 200);
    pin(Side::follower);
    for (std::uint32_t i = 1; i <= kTrips; ++i) {
      wait_for(there, i);
      set_and_wake(back, i);
    }
  };
  std::thread([&] { run_both(false, lead, follow); }).join();
  std::nth_element(trips.begin(), trips.begin() + kTrips / 2, trips.end());
  controls.futex_us = trips[kTrips / 2] / 1e3;
  return controls;
}

MachineTime machine_time() {
  // The first line of /proc/stat, in ticks: user nice system idle iowait irq softirq steal; see proc(5).
  std::ifstream file("/proc/stat");
  std::string label;
  std::array<double, 8> ticks{};
  file >> label;
  for (double& value : ticks) {
    file >> value;
  }
  const double per_second = static_cast<double>(sysconf(_SC_CLK_TCK));
  MachineTime time;
  time.stolen = ticks[7] / per_second;
  time.busy = (ticks[0] + ticks[1] + ticks[2] + ticks[5] + ticks[6] + ticks[7]) / per_second;
  return time;
}

}  // namespace bench
