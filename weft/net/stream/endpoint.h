// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "weft/base/result.h"

namespace weft::net {

enum class Transport : std::uint8_t { tcp, tls_tcp, ws, wss, ipc, inproc, udp, vsock };
[[nodiscard]] constexpr bool is_websocket(Transport transport) noexcept {
  return transport == Transport::ws || transport == Transport::wss;
}
[[nodiscard]] constexpr std::string_view name_of(Transport transport) noexcept {  // without "://"
  constexpr std::string_view kNames[] = {"tcp", "tls+tcp", "ws", "wss", "ipc", "inproc", "udp", "vsock"};
  return kNames[static_cast<std::size_t>(transport)];
}

inline constexpr std::size_t kMaxInprocName = 255;  // bytes
inline constexpr std::size_t kMaxIpcPath = 107;     // bytes; sun_path without its NUL

// Endpoint: a parsed "transport://address".
// Affinity: a value. Invariant: the fields that belong to another transport are empty.
struct Endpoint {
  Transport transport = Transport::inproc;

  std::string host{};  // tcp, udp: numeric address without brackets, host or interface name; empty for the wildcard
  std::uint16_t port = 0;
  bool any_port = false;      // bind: the system chooses
  bool has_source = false;    // tcp connect: "tcp://source:port;host:port"; udp: "udp://interface;group:port"
  std::string source_host{};  // as `host`; empty for any. udp: the interface for multicast, by name or address
  std::uint16_t source_port = 0;

  std::string path{};     // ipc: file path, or the abstract name without its '@'; ws: "/path?query"
  bool abstract = false;  // ipc
  bool wildcard = false;  // tcp, udp, vsock: every interface; ipc: a fresh path

  std::string name{};  // inproc

  std::uint32_t cid = 0;         // vsock: the number of a machine
  std::uint32_t vsock_port = 0;  // vsock: not used with any_port

  [[nodiscard]] std::string text() const;  // parses back to an equal Endpoint
  friend bool operator==(const Endpoint&, const Endpoint&) = default;
};

// tcp://host:port, tls+tcp://host:port, ws://host:port/path, wss://host:port/path, ipc://path, ipc://@name,
// inproc://name; for bind also tcp://*:port, tcp://host:* (or :0), ipc://*; for connect also
// tcp://source:port;host:port. tls+tcp, ws and wss have the same forms as tcp. udp://host:port has the forms of tcp,
// and for both bind and connect udp://interface;group:port. vsock://cid:port, vsock://@:port for the host of a virtual
// machine, and for bind vsock://*:port, vsock://cid:*, with -1 for each *. The function does not look up names.
// Errors: unknown_transport; malformed_endpoint, whose text has the broken rule.
[[nodiscard]] Result<Endpoint> parse_endpoint(std::string_view text, bool for_bind);

}  // namespace weft::net
