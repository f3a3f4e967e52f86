// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>

#include "tools/weft/link.h"

namespace weft::cli {

struct BenchOptions {
  LinkOptions link;  // one bind: the answering end. One connect: the measuring end. Neither: both, in this process
  std::uint64_t size = 64;  // bytes of a message; at least 1
  double seconds = 1;       // for latency, and again for throughput
};

// Round trips one by one, then a stream in one direction, between two DEALERs.
int bench(Console& console, const BenchOptions& options);

}  // namespace weft::cli
