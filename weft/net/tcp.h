// SPDX-License-Identifier: MIT
#pragma once

#include "weft/net/transport.h"

namespace weft::net {

// tcp://: IPv4 and IPv6 streams.
[[nodiscard]] TransportRow tcp_transport() noexcept;
// tls+tcp://: TLS over those.
[[nodiscard]] TransportRow tls_tcp_transport() noexcept;

}  // namespace weft::net
