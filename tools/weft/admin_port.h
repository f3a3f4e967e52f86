// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <string>

#include "weft/base/time.h"
#include "weft/net/stream/byte_stream.h"
#include "weft/sys/poll.h"

namespace weft::cli {

// AdminPort: an admin port, and the proofs that this end gives and expects.
struct AdminPort {
  std::string endpoint{};         // tcp://, tls+tcp:// or ipc://
  std::string token_file{};       // its first line is the port's token; empty: without a token
  std::string tls_certificate{};  // PEM: ours, for a port that requests one
  std::string tls_key{};          // PEM
  std::string tls_authorities{};  // PEM; empty: those of the system
  std::string tls_name{};         // in the port's certificate; empty: the endpoint's host
  bool tls_insecure = false;      // any certificate is taken
  bool monitor = false;           // of a server of NATS, whose answer may end with the connection
};

// Usage: the endpoint is of another kind, or options of TLS stand beside one without TLS.
void check_admin_port(const AdminPort& port);

// The field Host of a request: the name and the port by which this end calls the admin port.
[[nodiscard]] std::string host_of(const AdminPort& port);

// A connection, after the handshake of TLS if the endpoint has it. Failure: it is not there at `end`; the certificate
// is not trusted; a file cannot be used; this build has no TLS.
[[nodiscard]] std::unique_ptr<net::ByteStream> dial_admin(const AdminPort& port, Instant end);

// Waits until the stream may go on after would_block; false: `end` came first.
[[nodiscard]] bool wait_stream(const net::ByteStream& stream, sys::Interest want, Instant end);

}  // namespace weft::cli
