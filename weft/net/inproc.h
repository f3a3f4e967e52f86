// SPDX-License-Identifier: MIT
#pragma once

#include "weft/net/transport.h"

namespace weft::net {

// inproc://: names only; the sockets' own layer connects them.
[[nodiscard]] TransportRow inproc_transport() noexcept;

}  // namespace weft::net
