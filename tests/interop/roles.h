// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "tests/interop/link.h"
#include "tests/interop/payload.h"
#include "weft/weft.h"

namespace weft::interop {

// Job: the role of one side of a cell. The other side plays the partner role: push-pull, pub-sub, xpub-xsub,
// dealer-router, req-rep, pair-echo (two PAIR sockets). pyzmq_roles.py plays the same roles with the same lines.
struct Job {
  std::string role;
  bool bind = false;                   // and send the line "at ENDPOINT..."; otherwise wait for that line and connect
  std::vector<std::string> endpoints;  // to bind: one for each socket, or one from which the others are made
  Shape shape;
  int count = 0;                       // messages in each direction and round
  int rounds = 1;                      // before each except the first the partner ends (line "lost") and restarts
  int first_round = 0;                 // of a partner that has restarted
  bool plain = false;                  // only send and recv, not each way to send and receive in turn
  std::vector<std::string> options{};  // "name=value"
};

struct Outcome {
  std::string error{};  // empty: everything arrived, in order, and nothing else did
  long sent = 0;        // messages
  long received = 0;
  long handed = 0;  // by the sockets' own counters: handed over to the partner, and arrived from it
  long arrived = 0;
};

[[nodiscard]] bool is_role(const std::string& name);
[[nodiscard]] std::string partner_of(const std::string& role);

// Plays the role to its end, or to the first mistake. Every wait ends after kPatience.
inline constexpr std::chrono::seconds kPatience{20};
[[nodiscard]] Outcome run_role(Context& context, const Job& job, Link& link);

}  // namespace weft::interop
