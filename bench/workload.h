// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "bench/library.h"
#include "bench/stage.h"

namespace bench {

enum class Pattern { push_pull, round_trip };

// One row of the table. Its name is "push_pull/tcp/64" or, with a wait mode, "round_trip/ipc/64/eco".
struct Cell {
  std::string name;
  Pattern pattern = Pattern::push_pull;
  std::string transport;  // tcp, ipc, inproc
  std::size_t size = 0;   // of a message, in bytes
  WaitMode mode = WaitMode::normal;
};

Cell parse_cell(const std::string& name);  // fails on a name that is no cell

// What one repetition gave.
struct Measurement {
  double seconds = 0;          // from the first to the last message received (round trips: the requester's clock)
  double median_ns = 0;        // round trips only
  double p99_ns = 0;           // round trips only
  double cpu_seconds = 0;      // user and system time of every thread, on both sides
  std::uint64_t switches = 0;  // voluntary context switches, on both sides: how often something slept
};

// One repetition of a cell, from one side. `run` numbers the repetition: a message left over from another one is
// noticed. Count, order and content of the messages are verified; a mistake ends the program.
class Workload {
 public:
  Workload(const Cell& cell, Socket& socket, std::uint64_t run, std::uint64_t count);
  // Measures everything but the CPU time. The leader pulls or replies, the follower pushes or requests.
  void perform(Side side, Measurement& result);

 private:
  void push();
  void pull(Measurement& result);
  void request(Measurement& result);
  void reply();
  void write_message(std::uint64_t number);
  void read_message(std::uint64_t number);
  void verify_sum() const;

  const Cell& cell_;
  Socket& socket_;
  std::uint64_t run_;
  std::uint64_t count_;
  std::vector<unsigned char> buffer_;
  std::uint64_t mistakes_ = 0;  // not zero after a message that was not the expected one
  std::uint64_t sum_ = 0;       // of the last eight bytes of every message read
};

}  // namespace bench
