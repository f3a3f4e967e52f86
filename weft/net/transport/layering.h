// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "weft/base/result.h"
#include "weft/net/stream/byte_stream.h"
#include "weft/net/stream/endpoint.h"
#include "weft/zmtp/wire_type.h"

namespace weft::net {

class TlsClient;
class TlsServer;
struct TransportRow;

// Layering: how the streams of one bound or dialled endpoint get the layer of their transport (TransportRow::layer).
// Owner: shared by the connections of the endpoint. Affinity: immutable.
struct Layering {
  const TransportRow& row;                        // of the endpoint; it has a layer
  Endpoint endpoint;                              // bound or dialled
  bool accepts = false;                           // its streams are accepted; otherwise dialled
  std::shared_ptr<const TlsServer> tls_server{};  // accepts, and the transport has TLS
  std::shared_ptr<const TlsClient> tls_client{};  // dials, and the transport has TLS
  std::string tls_name{};                         // dials: the name that the server's certificate must have
  zmtp::WireType socket_type = zmtp::WireType::pair;
  std::uint64_t message_max = UINT64_MAX;  // bytes of a message part that the socket takes

  // `below` with the layer, as a stream for one reader and one writer at the same time (make_shared_stream()).
  // `mechanism`: of ZMTP, "NULL", "PLAIN" or "CURVE". Error: `below` is closed.
  [[nodiscard]] Result<std::unique_ptr<ByteStream>> apply(std::unique_ptr<ByteStream> below,
                                                          std::string_view mechanism) const;
};

// TLS over `below`, by the TlsServer or TlsClient of the endpoint. A TransportRow::layer, or the lower part of one.
[[nodiscard]] Result<std::unique_ptr<ByteStream>> put_tls(std::unique_ptr<ByteStream> below, const Layering& how,
                                                          std::string_view mechanism);

// The stream `layer` behind a lock: one thread may read while another writes. A layer's two directions share their
// state, so `layer` itself is for one thread at a time. Differences from ByteStream, which spare a writer the state():
// 1. While the layer holds bytes of a write(), write() has reported one byte less than it took. So if all bytes of a
//    writer are taken, the socket has them. A writer that is not done awaits room, like on a socket.
// 2. The caller of a short write() writes the rest next, byte for byte. write() of nothing moves unsent bytes only.
// 3. state().unsent: bytes that no write() caused, such as the answer to a ping.
[[nodiscard]] std::unique_ptr<ByteStream> make_shared_stream(std::unique_ptr<ByteStream> layer);

}  // namespace weft::net
