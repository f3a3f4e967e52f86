// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "bench/engine/end.h"
#include "bench/engine/storm.h"
#include "bench/stage.h"
#include "bench/usage.h"
#include "bench/workload.h"

namespace bench {

// The leader's orders to the other threads between two meetings, and the results that they measured. Owner:
// shared memory.
struct Plan {
  enum class Step { probe, greet, repetition, stop };

  explicit Plan(const Cell& cell) : stage(cell.lanes(Side::leader) + cell.lanes(Side::follower)) {}

  Stage stage;
  Addresses addresses;
  Step step = Step::probe;
  Task task;
  std::uint32_t ping_pongs = 1'000;
  double probe_ns = 0;
  std::atomic<int> greeted{0};
  End* reader = nullptr;  // one_thread: the leader's end, from which the follower receives
  std::array<LaneResult, kLanesMax> lanes;
  std::array<Usage, 2> usage;      // per side; one process counts on the leader's side only
  std::uint64_t memory_bytes = 0;  // of the leader's process, above the start, while all connections are idle
};

// SideRun: one side of a cell: its sockets, and a thread for each. The leader's first thread reads the commands:
//   run COUNT INTERVAL_NS VERIFY_ALL    one repetition between two probes
//   count COUNT                         one repetition without probes, in which system calls are counted
// It answers each with a JSON object on one line. The end of the input ends both sides. Affinity: one thread.
class SideRun {
 public:
  SideRun(Side side, const Cell& cell, bool processes, Engine& engine, SyscallCounter& counter, Plan& plan)
      : side_(side),
        cell_(cell),
        processes_(processes),
        engine_(engine),
        counter_(counter),
        plan_(plan),
        storm_(cell) {}
  void run();

 private:
  void open();
  void obey();
  void follow(std::size_t lane);
  void take_step(std::size_t lane);
  void repeat(std::size_t lane);
  void perform(std::size_t lane);
  void order(Plan::Step step);
  double probe();
  void print(double before, double after, bool counted) const;

  const Side side_;
  const Cell& cell_;
  const bool processes_;
  Engine& engine_;
  SyscallCounter& counter_;
  Plan& plan_;
  Storm storm_;
  Ends ends_;
  std::vector<std::unique_ptr<Workload>> workloads_;  // one per lane
};

}  // namespace bench
