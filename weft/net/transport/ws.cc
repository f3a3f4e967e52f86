// SPDX-License-Identifier: MIT
#include "weft/net/transport/ws.h"

#include <string_view>

#include "weft/net/tls/tls.h"
#include "weft/net/transport/layering.h"
#include "weft/net/transport/tcp.h"
#include "weft/net/ws/ws_stream.h"

namespace weft::net {
namespace {

const TransportRow& tcp() noexcept {
  static const TransportRow row = tcp_transport();
  return row;
}

Result<BoundSocket> open_listener(const Endpoint& endpoint, const sys::SocketOptions& options) {
  BoundSocket bound = WEFT_TRY(tcp().open_listener(endpoint, options));
  bound.text += endpoint.path;
  return bound;
}

// The value of the request's Host: without the source address that the endpoint may name.
std::string host_of(const Endpoint& endpoint) {
  Endpoint target = endpoint;
  target.has_source = false;
  target.transport = Transport::tcp;
  return target.text().substr(std::string_view("tcp://").size());
}

Result<std::unique_ptr<ByteStream>> layer(std::unique_ptr<ByteStream> below, const Layering& how,
                                          std::string_view mechanism) {
  if (how.endpoint.transport == Transport::wss && how.tls_server == nullptr && how.tls_client == nullptr) {
    return Error(Errc::not_supported, "wss without TLS");
  }
  if (how.tls_server != nullptr) {
    below = WEFT_TRY(how.tls_server->wrap(std::move(below)));
  } else if (how.tls_client != nullptr) {
    below = WEFT_TRY(how.tls_client->wrap(std::move(below), how.tls_name));
  }
  ws::ZwsOptions options;
  options.client = !how.accepts;
  options.mechanism = mechanism;
  options.socket_type = how.socket_type;
  options.message_max = how.message_max;
  options.path = how.endpoint.path;
  if (options.client) {
    options.host = host_of(how.endpoint);
  }
  return ws::make_zws_stream(std::move(below), options);
}

TransportRow row_of(Transport transport) noexcept {
  TransportRow row = tcp();
  row.transport = transport;
  row.open_listener = &open_listener;
  row.layer = &layer;
  return row;
}

}  // namespace

TransportRow ws_transport() noexcept { return row_of(Transport::ws); }

TransportRow wss_transport() noexcept {
  TransportRow row = row_of(Transport::wss);
  row.has_tls = true;
  return row;
}

}  // namespace weft::net
