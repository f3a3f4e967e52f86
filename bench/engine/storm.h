// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "bench/engine/zmq_sockets.h"
#include "bench/workload.h"

namespace bench {

// Storm: many PUSH sockets that connect to one PULL at once and send a message each. Each side uses its own
// half. Affinity: one thread per side.
class Storm {
 public:
  explicit Storm(const Cell& cell) : cell_(cell) {}
  ~Storm();
  Storm(const Storm&) = delete;
  Storm& operator=(const Storm&) = delete;

  void bind(Addresses& addresses);  // the leader
  void open(const Addresses&);      // the follower: the sockets of one repetition, not connected
  void connect(const Addresses&, const Task&, LaneResult&);  // the follower: first_ns is before the first one
  void receive(const Task&, LaneResult&);                    // the leader: last_ns is after the last message
  void close();                                              // the follower: closes all sockets

 private:
  const Cell& cell_;
  std::unique_ptr<ZmqContext> context_;  // of its own side
  std::vector<void*> sockets_;
};

}  // namespace bench
