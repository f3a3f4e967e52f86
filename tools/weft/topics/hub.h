// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>

#include "tools/weft/serving.h"
#include "tools/weft/topics/fleet.h"

// hub: this process as the hub of a local fleet.
namespace weft::cli {

struct HubRunOptions {
  FleetOptions fleet{};
  std::string store{};                // directory; empty: that of the fleet's handles
  std::uint64_t store_bytes_max = 0;  // 0: as much as the disk holds
  std::uint64_t clients_max = 1024;
  std::uint64_t address_clients_max = 0;  // at `listen`; 0: half of clients_max
  std::string listen{};                   // for members of other hosts; empty: none
  std::string group{};                    // whose members reach the hub, too; empty: none
  std::string group_socket{};
  ServingOptions serving{};     // its certificate and authorities are those of `listen`, too
  std::string curve_key{};      // of tcp:// at `listen`: a file of `weft keygen`
  std::string curve_members{};  // a file with the public keys of members
  double drain = 0;             // seconds from SIGTERM, with /readyz at 503, to the stop
};

// Runs until a signal, and then returns 0. Failure: the hub ended by itself.
int run_hub(Console& console, const HubRunOptions& options);

}  // namespace weft::cli
