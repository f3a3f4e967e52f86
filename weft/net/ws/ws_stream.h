// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "weft/base/result.h"
#include "weft/net/stream/byte_stream.h"
#include "weft/zmtp/wire_type.h"

namespace weft::net::ws {

struct ZwsOptions {
  bool client = false;
  std::string mechanism = "NULL";  // of the socket: it chooses the sub-protocols
  zmtp::WireType socket_type = zmtp::WireType::pair;
  std::uint64_t message_max = UINT64_MAX;
  std::string host{};      // client: of the request
  std::string path = "/";  // client
};

// The layer of ws:// and wss:// (TransportRow::layer): a peer that speaks ZMTP 3.0, below the WebSocket frames of
// ZWS 2.0 (RFC 45), over any stream. It upgrades the stream below, and from then on translates in both directions.
//
// It answers WebSocket PINGs. A PING or a PONG alone makes read() return `done` with 0 bytes: the peer is alive. It
// answers the peer's CLOSE, which is end_of_stream. shutdown_write() sends CLOSE. A broken rule is `failed`, after a
// CLOSE with its status; StreamState::failure has the reason.
// Cost: one copy in each direction; none for a large body that is sent without a mask, or whose rest is read. An idle
// stream holds no block, and a few kilobytes until the upgrade is over.
// resource_exhausted. After an error `below` is closed.
[[nodiscard]] Result<std::unique_ptr<ByteStream>> make_zws_stream(std::unique_ptr<ByteStream> below,
                                                                  const ZwsOptions& options);

}  // namespace weft::net::ws
