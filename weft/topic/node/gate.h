// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "weft/topic/gate/gate.h"
#include "weft/topic/node/options.h"

namespace weft::topic {

// The options of a gate to these servers, with the logins and the certificates of `security`. The keys of CURVE are not
// for servers of NATS.
[[nodiscard]] GateOptions gate_options(std::string servers, std::string name, const FleetSecurity& security);

}  // namespace weft::topic
