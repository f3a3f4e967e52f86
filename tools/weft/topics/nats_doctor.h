// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tools/weft/console.h"
#include "tools/weft/topics/fleet.h"

// fleet doctor: a check of the servers of a fleet on NATS.
namespace weft::cli {

// A version of nats-server, as its digits order it: 2.12.7 is 2'012'007; 0: the text is another one.
[[nodiscard]] std::uint64_t version_number(std::string_view text) noexcept;
// The known faults of a version, which a newer one does not have; empty: none is known.
[[nodiscard]] std::string_view known_faults(std::uint64_t version) noexcept;

struct FleetDoctorOptions {
  FleetOptions fleet{};
  std::vector<std::string> monitors{};  // http://HOST:PORT of servers
  bool strict = false;
};
// Connects as a handle of the fleet does, and prints its findings. Failure: no server lets it in, or a monitor does not
// answer.
int fleet_doctor(Console& console, const FleetDoctorOptions& options);

}  // namespace weft::cli
