// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>

#include "weft/net/stream/transport_row.h"

namespace weft::net {

// tcp://: IPv4 and IPv6 streams.
[[nodiscard]] TransportRow tcp_transport() noexcept;
// tls+tcp://: TLS over those.
[[nodiscard]] TransportRow tls_tcp_transport() noexcept;

// An address of this machine, numeric or of an interface, without a name service.
[[nodiscard]] Result<sys::SocketAddress> local_address(const std::string& host, std::uint16_t port, bool ipv6);

}  // namespace weft::net
