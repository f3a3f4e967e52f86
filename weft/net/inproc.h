// SPDX-License-Identifier: MIT
#pragma once

#include "weft/net/transport_row.h"

namespace weft::net {

// inproc://: names only. The socket layer connects the sockets itself.
[[nodiscard]] TransportRow inproc_transport() noexcept;

}  // namespace weft::net
