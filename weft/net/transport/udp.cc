// SPDX-License-Identifier: MIT
#include "weft/net/transport/udp.h"

#include "weft/net/transport/tcp.h"
#include "weft/sys/datagram.h"

namespace weft::net {
namespace {

using Family = sys::SocketAddress::Family;

constexpr Error kNoGroup(Errc::malformed_endpoint, "an interface is for a multicast group only");

Result<sys::SocketAddress> find_target(const Endpoint& endpoint, bool for_bind, bool ipv6) {
  if (endpoint.wildcard) {
    return sys::SocketAddress::any(ipv6, endpoint.port);
  }
  const auto known = for_bind ? local_address(endpoint.host, endpoint.port, ipv6)
                              : sys::SocketAddress::parse_numeric(endpoint.host, endpoint.port);
  if (known) {
    return known;
  }
  return WEFT_TRY(sys::resolve(endpoint.host, endpoint.port, ipv6)).front();
}

// Requires a multicast group of `family`.
Result<void> choose_interface(const std::string& name, Family family, sys::DatagramOptions& how) {
  constexpr Error kNone(Errc::address_unavailable, "no such interface for a multicast group");
  if (name.empty()) {
    return {};
  }
  how.interface_number = sys::interface_number(name);
  if (how.interface_number != 0) {
    return {};
  }
  const auto numeric = sys::SocketAddress::parse_numeric(name, 0);
  if (!numeric || numeric->family() != Family::ipv4 || family != Family::ipv4) {
    return kNone;  // the system finds an interface by its address for IPv4 only
  }
  how.interface = *numeric;
  return {};
}

}  // namespace

Result<UdpSocket> open_udp(const Endpoint& endpoint, bool for_bind, const MulticastOptions& udp,
                           const sys::SocketOptions& options) {
  const sys::SocketAddress target = WEFT_TRY(find_target(endpoint, for_bind, options.ipv6));
  if (endpoint.has_source && !target.is_multicast()) {
    return kNoGroup;
  }
  sys::DatagramOptions how;
  how.hops = udp.multicast_hops;
  how.loop = udp.multicast_loop;
  how.bound = for_bind;
  how.local = for_bind && !target.is_multicast()
                  ? target
                  : sys::SocketAddress::any(target.family() == Family::ipv6, target.port());
  if (target.is_multicast()) {
    WEFT_TRY(choose_interface(endpoint.source_host, target.family(), how));
    how.group = for_bind ? target : sys::SocketAddress();
    how.shared = for_bind && endpoint.port != 0;
  }
  auto fd = sys::open_datagram_socket(how, options);
  if (!fd && endpoint.wildcard && options.ipv6 && fd.error() == Errc::not_supported) {  // a kernel without IPv6
    how.local = sys::SocketAddress::any(false, endpoint.port);
    fd = sys::open_datagram_socket(how, options);
  }
  UdpSocket socket{WEFT_TRY(std::move(fd)), target, {}};
  if (!for_bind) {
    socket.text = endpoint.text();
    return socket;
  }
  const sys::SocketAddress bound = WEFT_TRY(sys::local_address(socket.fd.fd()));
  Endpoint exact = endpoint;
  exact.port = bound.port();
  exact.any_port = false;
  socket.text = target.is_multicast() ? exact.text() : "udp://" + bound.to_text();
  return socket;
}

}  // namespace weft::net
