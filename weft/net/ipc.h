// SPDX-License-Identifier: MIT
#pragma once

#include "weft/net/transport.h"

namespace weft::net {

// ipc://: unix-domain streams. A socket file that nobody listens on is replaced by bind; one that somebody listens on,
// or a file that is no socket, is address_in_use.
[[nodiscard]] TransportRow ipc_transport() noexcept;

}  // namespace weft::net
