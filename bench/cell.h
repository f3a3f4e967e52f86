// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <string>

namespace bench {

[[noreturn]] void fail(const std::string& what);  // a benchmark cannot handle an error: it ends the program

constexpr int kLanesMax = 64;
constexpr int kPeersMax = 10'000;
constexpr int kRestMaxMs = 10'000;  // no longer than a library's timers let a connection rest

enum class Pattern {
  push_pull,
  pub_sub,
  router_router,
  dealer_router,
  pair,
  round_trip,
  one_thread,
  pipeline,
  service,
  broker,
  burst,
  connect_storm,
  idle_memory
};
enum class Side { leader, follower };  // the leader receives or replies; the follower sends or requests

// One row of the table. Its name is "push_pull/tcp/64", followed by any of hwm0, moved, curve, tls, ws, eco, pinned,
// x8, load50, rest100. Affinity: immutable.
struct Cell {
  std::string name;
  Pattern pattern = Pattern::push_pull;
  std::string transport;   // tcp, ipc, inproc
  std::size_t size = 0;    // of a message, in bytes
  int times = 1;           // x8: subscribers, pairs of sockets, clients, or connecting peers
  bool unlimited = false;  // hwm0: high-water marks of 0 instead of 1000
  bool moved = false;      // zmq_msg_send and zmq_msg_recv instead of copies out of a buffer and into one
  bool curve = false;
  bool tls = false;       // tls+tcp
  bool ws = false;        // ws, whose bytes go over tcp
  bool eco = false;       // WEFT_WAIT_MODE=eco: sleep at once instead of spinning; other libraries ignore it
  bool pinned = false;    // each side's threads on one processor
  bool one_core = false;  // the whole process on one processor
  bool io2 = false;       // ZMQ_IO_THREADS of 2
  int load = 0;           // per cent of the closed-loop rate; rounds.py makes a pause of it
  int rest_ms = 0;        // before each request, while nothing moves

  // Returns true if each repetition is measured trip by trip: round trips, messages that their sender receives, and
  // bursts.
  [[nodiscard]] bool trips() const noexcept {
    return replies() || pattern == Pattern::one_thread || pattern == Pattern::burst;
  }
  // Returns true if the leader answers each message.
  [[nodiscard]] bool replies() const noexcept { return pattern == Pattern::round_trip || serves(); }
  // Returns true if the leader's one socket answers the sockets of all followers.
  [[nodiscard]] bool serves() const noexcept { return pattern == Pattern::service || pattern == Pattern::broker; }
  [[nodiscard]] bool storms() const noexcept {
    return pattern == Pattern::connect_storm || pattern == Pattern::idle_memory;
  }
  // Threads of a side; each has its own socket.
  [[nodiscard]] int lanes(Side side) const noexcept {
    const bool alone = side == Side::follower ? pattern == Pattern::pub_sub : serves();
    return storms() || alone ? 1 : times;
  }
  // Lanes that measure: those of the followers of a server, otherwise those of the leader.
  [[nodiscard]] int measured_lanes() const noexcept { return lanes(serves() ? Side::follower : Side::leader); }
  // The side that binds, which is also CURVE's server.
  [[nodiscard]] Side binder() const noexcept { return pattern == Pattern::pub_sub ? Side::follower : Side::leader; }
};

Cell parse_cell(const std::string& name);  // fails on a name that is not a cell

}  // namespace bench
