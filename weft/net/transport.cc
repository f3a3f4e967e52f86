// SPDX-License-Identifier: MIT
#include "weft/net/transport.h"

#include <array>

#include "weft/base/assert.h"
#include "weft/net/inproc.h"
#include "weft/net/ipc.h"
#include "weft/net/tcp.h"
#include "weft/net/udp.h"
#include "weft/net/vsock.h"
#include "weft/net/ws.h"

namespace weft::net {

std::span<const TransportRow> transports() noexcept {
  static const std::array rows = {tcp_transport(), tls_tcp_transport(), ws_transport(),  wss_transport(),
                                  ipc_transport(), inproc_transport(),  udp_transport(), vsock_transport()};
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

std::string Endpoint::text() const {
  const TransportRow& row = transport_row(transport);
  return std::string(name_of(transport)).append("://").append(row.format(*this));
}

Result<Endpoint> parse_endpoint(std::string_view text, bool for_bind) {
  const std::size_t separator = text.find("://");
  if (separator == std::string_view::npos || separator == 0) {
    return Error(Errc::malformed_endpoint, "an endpoint is transport://address");
  }
  const std::string_view name = text.substr(0, separator);
  for (const TransportRow& row : transports()) {
    if (name_of(row.transport) == name) {
      Endpoint endpoint;
      endpoint.transport = row.transport;
      WEFT_TRY(row.parse(text.substr(separator + 3), for_bind, endpoint));
      return endpoint;
    }
  }
  return Error(Errc::unknown_transport, "the transports are tcp, tls+tcp, ws, wss, ipc, inproc, udp and vsock");
}

}  // namespace weft::net
