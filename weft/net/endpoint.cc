// SPDX-License-Identifier: MIT
#include "weft/net/endpoint.h"

#include "weft/net/transport.h"

namespace weft::net {

std::string Endpoint::text() const {
  const TransportRow& row = transport_row(transport);
  return std::string(row.name).append("://").append(row.format(*this));
}

Result<Endpoint> parse_endpoint(std::string_view text, bool for_bind) {
  const std::size_t separator = text.find("://");
  if (separator == std::string_view::npos || separator == 0) {
    return Error(Errc::malformed_endpoint, "an endpoint is transport://address");
  }
  const std::string_view name = text.substr(0, separator);
  for (const TransportRow& row : transports()) {
    if (row.name == name) {
      Endpoint endpoint;
      endpoint.transport = row.transport;
      WEFT_TRY(row.parse(text.substr(separator + 3), for_bind, endpoint));
      return endpoint;
    }
  }
  return Error(Errc::unknown_transport, "the transports are tcp, tls+tcp, ws, wss, ipc, inproc, udp and vsock");
}

}  // namespace weft::net
