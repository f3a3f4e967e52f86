// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "weft/base/result.h"
#include "weft/net/stream/endpoint.h"
#include "weft/sys/address.h"
#include "weft/sys/fd.h"
#include "weft/sys/socket.h"

namespace weft::net {

// udp://: datagrams over IPv4 and IPv6, to one host or to a multicast group. It has sockets, but no listener and no
// streams: a message is a datagram, and no peer connects.
struct MulticastOptions {
  int multicast_hops = 1;  // routers take one off
  bool multicast_loop = true;
};

struct UdpSocket {
  sys::Fd fd;
  sys::SocketAddress to;  // connect: of each datagram
  std::string text;       // the exact endpoint, with the port that the system chose
};

// Binds, or prepares to send to the endpoint. A group is joined at bind; several sockets of a host may bind the port of
// a group, and each gets every datagram. May wait: both look up a host name.
// Errors: malformed_endpoint (an interface without a group); address_unavailable (no such interface); name_unresolved;
// address_in_use.
[[nodiscard]] Result<UdpSocket> open_udp(const Endpoint& endpoint, bool for_bind, const MulticastOptions& udp,
                                         const sys::SocketOptions& options);

}  // namespace weft::net
