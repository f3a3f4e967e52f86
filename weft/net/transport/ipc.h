// SPDX-License-Identifier: MIT
#pragma once

#include "weft/net/stream/transport_row.h"

namespace weft::net {

// ipc://: unix-domain streams. bind replaces a socket file without a listener. A socket file with a listener, or a file
// that is not a socket, is address_in_use.
[[nodiscard]] TransportRow ipc_transport() noexcept;

}  // namespace weft::net
