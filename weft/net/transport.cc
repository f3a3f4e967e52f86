// SPDX-License-Identifier: MIT
#include "weft/net/transport.h"

#include <array>

#include "weft/base/assert.h"
#include "weft/net/ipc.h"
#include "weft/net/tcp.h"
#include "weft/net/vsock.h"
#include "weft/net/ws.h"

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
