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
  // Names of kept topics: those that the user declares, changes and removes, and those that it only reads and consumes.
  std::vector<std::string> streams{};
  std::vector<std::string> consumed{};
  std::vector<std::string> buckets{};
  std::vector<std::string> watched{};
};

// Prints them as a part of a user in the server's configuration, or as JSON. Throws Usage for a wrong filter.
int fleet_acl(Console& console, const FleetAclOptions& options);

}  // namespace weft::cli
