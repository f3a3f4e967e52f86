// SPDX-License-Identifier: MIT
#include "weft/net/transport/transport.h"

#include <array>

#include "weft/base/assert.h"
#include "weft/net/transport/ipc.h"
#include "weft/net/transport/tcp.h"
#include "weft/net/transport/vsock.h"
#include "weft/net/transport/ws.h"

namespace weft::net {

std::span<const TransportRow> transports() noexcept {
  // inproc has no sockets, and udp no streams.
  static const std::array rows = {tcp_transport(),
                                  tls_tcp_transport(),
                                  ws_transport(),
                                  wss_transport(),
                                  ipc_transport(),
                                  TransportRow{Transport::inproc},
                                  TransportRow{Transport::udp},
                                  vsock_transport()};
  return rows;
}

const TransportRow& transport_row(Transport transport) noexcept {
  for (const TransportRow& row : transports()) {
    if (row.transport == transport) {
      return row;
    }
  }
  WEFT_ASSERT(false && "every Transport has a row");
  std::abort();
}

}  // namespace weft::net
