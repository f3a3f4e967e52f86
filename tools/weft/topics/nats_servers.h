// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>

#include "tools/weft/console.h"

// fleet up: servers of NATS on this machine, to try a fleet on them.
namespace weft::cli {

struct FleetUpOptions {
  std::uint64_t servers = 3;  // 1 to 9; several are a cluster
  std::uint64_t port = 0;     // of the first one, and the next ports for the others; 0: each server chooses one
  std::string program{};      // empty: nats-server on the path
  std::string store{};        // the directory for kept topics; empty: they keep nothing
};

// Runs the servers until a signal, then ends them and returns 0. They listen on 127.0.0.1, and end with this process.
// Failure: nats-server is not there, or does not start; the directory; all servers ended.
int fleet_up(Console& console, const FleetUpOptions& options);

}  // namespace weft::cli
