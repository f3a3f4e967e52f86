// SPDX-License-Identifier: MIT
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/result.h"
#include "weft/net/endpoint.h"
#include "weft/sys/address.h"
#include "weft/sys/fd.h"
#include "weft/sys/path.h"
#include "weft/sys/socket.h"

namespace weft::net {

// A listening socket, and the files that closing it must remove.
struct BoundSocket {
  sys::Fd fd;
  std::string text;            // the exact endpoint, with the port or path that the system chose
  std::string file;            // absolute path of the socket file; empty if there is none
  sys::FileIdentity identity;  // of `file`: another file of the same name is left alone
  std::string directory;       // to remove with the file; empty if there is none
};

// TransportRow: everything that distinguishes one transport. A new transport is one file and one row of
// transports().
struct TransportRow {
  Transport transport;
  std::string_view name;  // without "://"

  // Fills `into` from the text behind "://".
  Result<void> (*parse)(std::string_view address, bool for_bind, Endpoint& into);
  std::string (*format)(const Endpoint& endpoint);  // the inverse, without "name://"

  // For a transport without sockets the remaining members are null.
  Result<BoundSocket> (*open_listener)(const Endpoint& endpoint, const sys::SocketOptions& options);
  Result<void> (*tune_accepted)(int fd, const sys::SocketOptions& options);
  // The addresses to connect to, without a name service. Empty: `endpoint.host` must be resolved first.
  Result<std::vector<sys::SocketAddress>> (*known_addresses)(const Endpoint& endpoint);
  Result<sys::Connecting> (*begin_connect)(const sys::SocketAddress& to, const Endpoint& endpoint,
                                           const sys::SocketOptions& options);
};

[[nodiscard]] std::span<const TransportRow> transports() noexcept;
[[nodiscard]] const TransportRow& transport_row(Transport transport) noexcept;

}  // namespace weft::net
