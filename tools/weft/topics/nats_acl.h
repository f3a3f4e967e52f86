// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "tools/weft/console.h"

// fleet acl: the permissions of nats-server that a user of a fleet's handles needs.
namespace weft::cli {

struct FleetAclOptions {
  std::string space{};
  // Topics, or filters of tokens. All empty: every topic of the space, in each way.
  std::vector<std::string> publish{};
  std::vector<std::string> subscribe{};
  std::vector<std::string> request{};
  std::vector<std::string> serve{};
};

// Prints them as a part of a user in the server's configuration, or as JSON. Throws Usage for a wrong filter.
int fleet_acl(Console& console, const FleetAclOptions& options);

}  // namespace weft::cli
