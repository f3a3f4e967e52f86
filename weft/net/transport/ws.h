// SPDX-License-Identifier: MIT
#pragma once

#include "weft/net/stream/transport_row.h"

namespace weft::net {

// ws://host:port/path: ZWS 2.0 over tcp, as libzmq's draft and jszmq speak it. wss:// is the same over TLS. A listener
// serves every path; the path of its own endpoint is for the endpoint's text, and for clients to say.
[[nodiscard]] TransportRow ws_transport() noexcept;
[[nodiscard]] TransportRow wss_transport() noexcept;

}  // namespace weft::net
