// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>

#include "bench/server/abuse_bytes.h"
#include "bench/server/load.h"

namespace bench {

enum class LoadPattern { echo, one_way, storm, idle, bad, udp, udp_flood };

// One row of the table. Its name is PATTERN/SIZE/xCONNECTIONS and perhaps /depthN, /loadN, the style of a load of the
// web, or the kind of bad peers: "echo/64/x16/depth16/load50", "http/5/x16/close", "udp/64/x16",
// "bad/64/x16/depth4/slow_loris", "bad_http/5/x16/depth4/slow_body", "rpc/64/x16/depth16". Affinity: immutable.
struct LoadCell {
  LoadPattern pattern = LoadPattern::echo;
  std::uint32_t size = 0;  // of a body, in bytes
  std::uint32_t connections = 1;
  std::uint32_t depth = 1;  // unanswered requests of a connection
  Abuse abuse = Abuse::none;
  LoadWire wire = LoadWire::frames;
  WebStyle style = WebStyle::plain;
  bool streams = false;  // of rpc: messages instead of calls, for a client of its own only
};

LoadCell parse_load_cell(const std::string& name);  // throws LoadError for an unknown name

}  // namespace bench
