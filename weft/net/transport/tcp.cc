// SPDX-License-Identifier: MIT
#include "weft/net/transport/tcp.h"

#include "weft/net/transport/layering.h"

namespace weft::net {

Result<sys::SocketAddress> local_address(const std::string& host, std::uint16_t port, bool ipv6) {
  if (auto numeric = sys::SocketAddress::parse_numeric(host, port)) {
    return numeric;
  }
  return sys::interface_address(host, port, ipv6);
}

namespace {

Result<sys::Fd> listen_at(const Endpoint& endpoint, const sys::SocketOptions& options) {
  if (endpoint.wildcard) {
    auto fd = sys::open_tcp_listener(sys::SocketAddress::any(options.ipv6, endpoint.port), options);
    if (!fd && options.ipv6 && fd.error() == Errc::not_supported) {  // a kernel without IPv6
      return sys::open_tcp_listener(sys::SocketAddress::any(false, endpoint.port), options);
    }
    return fd;
  }
  const auto local = local_address(endpoint.host, endpoint.port, options.ipv6);
  if (local) {
    return sys::open_tcp_listener(*local, options);
  }
  if (!(local.error() == Errc::address_unavailable)) {
    return local.error();
  }
  const auto addresses = WEFT_TRY(sys::resolve(endpoint.host, endpoint.port, options.ipv6));
  return sys::open_tcp_listener(addresses.front(), options);
}

Result<BoundSocket> open_listener(const Endpoint& endpoint, const sys::SocketOptions& options) {
  BoundSocket bound;
  bound.fd = options.adopt_fd >= 0 ? WEFT_TRY(sys::adopt_listener(options.adopt_fd, &sys::SocketAddress::is_ip))
                                   : WEFT_TRY(listen_at(endpoint, options));
  bound.text = std::string(name_of(endpoint.transport)) + "://" + WEFT_TRY(sys::local_address(bound.fd.fd())).to_text();
  return bound;
}

Result<std::vector<sys::SocketAddress>> known_addresses(const Endpoint& endpoint) {
  std::vector<sys::SocketAddress> addresses;
  if (const auto numeric = sys::SocketAddress::parse_numeric(endpoint.host, endpoint.port)) {
    addresses.push_back(*numeric);
  }
  return addresses;
}

Result<sys::Connecting> begin_connect(const sys::SocketAddress& to, const Endpoint& endpoint,
                                      const sys::SocketOptions& options) {
  if (!endpoint.has_source) {
    return sys::open_tcp_connection(to, nullptr, options);
  }
  const bool ipv6 = to.family() == sys::SocketAddress::Family::ipv6;
  const sys::SocketAddress source = endpoint.source_host.empty()
                                        ? sys::SocketAddress::any(ipv6, endpoint.source_port)
                                        : WEFT_TRY(local_address(endpoint.source_host, endpoint.source_port, ipv6));
  return sys::open_tcp_connection(to, &source, options);
}

}  // namespace

TransportRow tcp_transport() noexcept {
  return {Transport::tcp, &open_listener, &sys::tune_tcp, &known_addresses, &begin_connect, true};
}

TransportRow tls_tcp_transport() noexcept {
  TransportRow row = tcp_transport();
  row.transport = Transport::tls_tcp;
  row.has_tls = true;
  row.layer = &put_tls;
  return row;
}

}  // namespace weft::net
