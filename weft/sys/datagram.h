// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "weft/base/bytes.h"
#include "weft/base/result.h"
#include "weft/sys/address.h"
#include "weft/sys/fd.h"
#include "weft/sys/socket.h"

namespace weft::sys {

// A UDP socket: its bound address, and its treatment of multicast.
struct DatagramOptions {
  SocketAddress local{};      // its family is the socket's
  bool bound = false;         // to `local`; otherwise the system chooses an address with the first datagram
  bool shared = false;        // bound: several sockets of the host share the port, and each gets every multicast
  SocketAddress group{};      // bound: the multicast group to join; none: no group
  SocketAddress interface{};  // IPv4: the address of the interface for multicast; none: the system's choice
  std::uint32_t interface_number = 0;  // the same by number, which takes precedence; IPv6 takes only the number
  int hops = 1;                        // of multicast; routers take one off
  bool loop = true;                    // multicast that is sent also reaches sockets of this host
};

// A socket that is not connected: it gets no refusal of a host to which it sent. Non-blocking, close-on-exec. The
// buffers, the device, the type of service and `ipv6` are taken from `options`.
[[nodiscard]] Result<Fd> open_datagram_socket(const DatagramOptions& how, const SocketOptions& options) noexcept;

inline constexpr std::size_t kMaxDatagrams = 32;     // in one call
inline constexpr std::size_t kMaxDatagramParts = 2;  // of one datagram that is sent

struct OutgoingDatagram {
  const void* address = nullptr;  // SocketAddress::raw()
  std::size_t address_size = 0;
  Bytes parts[kMaxDatagramParts];
};

struct IncomingDatagram {
  MutableBytes room;           // set by the caller
  std::size_t size = 0;        // of the datagram, as far as it fits
  bool cut = false;            // it was larger than `room`
  SocketAddress from{};        // filled if `names`
  std::uint32_t overflow = 0;  // datagrams so far for which the kernel's buffer had no room; 32 bits that wrap
};

// The number of datagrams that one system call moved, from the front. 0: `os_errno` has the reason for the first one;
// would_block(os_errno): the kernel has no room, or no datagram. An error concerns one datagram: the caller of
// send_datagrams() leaves out the first, the caller of receive_datagrams() calls again. Neither call waits.
struct DatagramResult {
  std::size_t count = 0;
  int os_errno = 0;
};
[[nodiscard]] DatagramResult send_datagrams(int fd, std::span<const OutgoingDatagram> datagrams) noexcept;
[[nodiscard]] DatagramResult receive_datagrams(int fd, std::span<IncomingDatagram> into, bool names) noexcept;
[[nodiscard]] bool would_block(int os_errno) noexcept;
[[nodiscard]] bool too_long(int os_errno) noexcept;  // the datagram is longer than UDP, or the path, takes

}  // namespace weft::sys
