// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "bench/cell.h"
#include "bench/engine/end.h"
#include "bench/histogram.h"

namespace bench {

std::uint64_t now_ns();  // of a clock that all processes share

// The measurements of one lane in one repetition; in shared memory.
struct LaneResult {
  // After the first message was received (round trips, bursts: before the first one is sent).
  std::uint64_t first_ns = 0;
  std::uint64_t last_ns = 0;  // after the last message was received
  Histogram trips;            // round trips: of requests; bursts: from the first send to the last message received
  std::atomic<std::uint64_t> burst_ns{0};  // bursts: when the present one began
  std::atomic<std::uint64_t> bursts{0};    // bursts: received so far in this repetition
};

// One repetition.
struct Task {
  std::uint64_t run = 0;          // number of the repetition, which exposes a message left over from another one
  std::uint64_t count = 0;        // messages, round trips or bursts
  std::uint64_t interval_ns = 0;  // not 0: a request is due once each interval, and its time counts from then
  bool verify_all = false;        // verify every byte of every message, instead of the first and last eight
};

// Workload: one lane of one side of a cell. Verifies count, order and content of the messages; a mistake ends
// the program. Affinity: one thread.
class Workload {
 public:
  Workload(const Cell& cell, End& end)
      : cell_(cell), end_(end), from_(&end), buffer_(cell.size), expected_(cell.size) {}

  // one_thread: where the follower receives its own messages. From the next repetition on.
  void read_from(End& end) noexcept { from_ = &end; }
  // Called before the first repetition; returns when a message has arrived. `greeted` counts the receivers that
  // have one.
  void greet(Side side, std::atomic<int>& greeted);
  // A leader receives or replies, a follower sends or requests.
  void perform(Side side, const Task& task, LaneResult& result);

 private:
  void push();
  void pull(LaneResult& result);
  void push_bursts(LaneResult& result);
  void pull_bursts(LaneResult& result);
  void request(LaneResult& result);
  void reply();
  void reply_to_all();
  void write_message(std::uint64_t number);
  void read_message(std::uint64_t number);
  bool verify(const unsigned char* data, std::size_t size, std::uint64_t number);
  void verify_sum(std::uint64_t count, std::uint64_t senders = 1) const;

  const Cell& cell_;
  End& end_;
  End* from_;
  std::vector<unsigned char> buffer_;
  std::vector<unsigned char> expected_;  // the whole message, when every byte is verified
  Task task_;
  std::uint64_t mistakes_ = 0;  // not zero after a message that was not the expected one
  std::uint64_t sum_ = 0;       // of the last eight bytes of every message read
};

}  // namespace bench
