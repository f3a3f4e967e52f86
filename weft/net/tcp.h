// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "weft/net/transport_row.h"

namespace weft::net {

// tcp://: IPv4 and IPv6 streams.
[[nodiscard]] TransportRow tcp_transport() noexcept;
// tls+tcp://: TLS over those.
[[nodiscard]] TransportRow tls_tcp_transport() noexcept;

// The parts of an address, which udp has too. malformed_endpoint.
struct HostPort {
  std::string_view host;  // without brackets
  std::string_view port;
};
[[nodiscard]] Result<HostPort> split_host_port(std::string_view text);
[[nodiscard]] Result<std::uint16_t> parse_port(std::string_view text);
[[nodiscard]] Result<void> check_host(std::string_view host);  // a numeric address, a host name or an interface name
[[nodiscard]] std::string format_host_port(const std::string& host, bool any_host, std::uint16_t port, bool any_port);
// An address of this machine, numeric or of an interface, without a name service.
[[nodiscard]] Result<sys::SocketAddress> local_address(const std::string& host, std::uint16_t port, bool ipv6);

}  // namespace weft::net
