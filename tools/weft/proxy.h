// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "tools/weft/link.h"

namespace weft::cli {

struct DeviceOptions {
  std::string device;    // forwarder, queue, streamer
  std::string frontend;  // clients, publishers, pushers
  std::string backend;   // servers, subscribers, workers
  bool connect_frontend = false;
  bool connect_backend = false;
  std::string capture;  // endpoint of a PUB that sends every message; empty: none
  double every = 0;     // seconds between two lines of counters; 0: none
};

// Runs until a signal.
int run_device(Console& console, const DeviceOptions& options);

}  // namespace weft::cli
