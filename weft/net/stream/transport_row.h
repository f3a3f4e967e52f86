// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/result.h"
#include "weft/net/stream/byte_stream.h"
#include "weft/net/stream/endpoint.h"
#include "weft/sys/address.h"
#include "weft/sys/fd.h"
#include "weft/sys/path.h"
#include "weft/sys/socket.h"

namespace weft::net {

struct Layering;

// A listening socket, and the files that closing it must remove.
struct BoundSocket {
  sys::Fd fd;
  std::string text;            // the exact endpoint, with the port or path that the system chose
  std::string file;            // absolute path of the socket file; empty if there is none
  sys::FileIdentity identity;  // of `file`: another file of the same name is left alone
  std::string directory;       // to remove with the file; empty if there is none
};

// TransportRow: everything that distinguishes one transport, except its name and the form of its addresses, which
// endpoint.cc has. A new transport is one file and one row of transports() (transport.h).
struct TransportRow {
  Transport transport;

  // For a transport without streams the remaining members are null.
  Result<BoundSocket> (*open_listener)(const Endpoint& endpoint, const sys::SocketOptions& options) = nullptr;
  Result<void> (*tune_accepted)(int fd, const sys::SocketOptions& options) = nullptr;
  // The addresses to connect to, without a name service. Empty: `endpoint.host` must be resolved first.
  Result<std::vector<sys::SocketAddress>> (*known_addresses)(const Endpoint& endpoint) = nullptr;
  Result<sys::Connecting> (*begin_connect)(const sys::SocketAddress& to, const Endpoint& endpoint,
                                           const sys::SocketOptions& options) = nullptr;

  bool over_tcp = false;  // streams of tcp: proxies, and bounds for addresses, are for them
  bool has_tls = false;   // `layer` needs Layering::tls_server or tls_client

  // For a transport whose streams are more than sockets: the stream that speaks the transport's protocol over `below`.
  // Null if the transport's stream is the socket itself. The layer keeps the contract of ByteStream with a StreamState
  // of its own:
  // 1. One thread at a time uses it, and only the layer uses `below`.
  // 2. fd() is that of `below`, and so is the readiness that the poller reports.
  // 3. Until state().established, write() takes nothing, and read() gives nothing and continues the handshake. read()
  //    returns would_block only when `below` did.
  // 4. A read() that gave fewer bytes than it had room for holds no more, and emptied `below`; otherwise the result has
  //    `cut`, or state().ended is set.
  // 5. The bytes that write() took and `below` did not are held, at most a record: state().unsent. While they are, any
  //    write() moves those first.
  // 6. Memory and work before `established` have a bound. After a failure, state().failure is the reason.
  // `mechanism`: of ZMTP, "NULL", "PLAIN" or "CURVE". An error closes `below`.
  Result<std::unique_ptr<ByteStream>> (*layer)(std::unique_ptr<ByteStream> below, const Layering& how,
                                               std::string_view mechanism) = nullptr;
};

}  // namespace weft::net
