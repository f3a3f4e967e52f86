// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/bytes.h"
#include "weft/base/result.h"

namespace weft::sys {

// SocketAddress: the address that a socket is bound or connects to: IPv4, IPv6, a unix path, an abstract unix name, or
// the number and port of a virtual machine (vsock(7)).
// Affinity: a value. Cost: 136 bytes, no allocation.
// Invariant: raw() is a sockaddr of raw_size() bytes that the kernel accepts for family().
class SocketAddress {
 public:
  enum class Family : std::uint8_t { none, ipv4, ipv6, unix_path, unix_abstract, unix_unnamed, vsock };

  static constexpr std::size_t kCapacity = 128;     // sizeof(sockaddr_storage)
  static constexpr std::size_t kMaxUnixName = 107;  // a path without its NUL; an abstract name without its leading NUL
  static constexpr std::uint32_t kVsockAny = 0xFFFFFFFF;  // VMADDR_CID_ANY, VMADDR_PORT_ANY
  static constexpr std::uint32_t kVsockLoopback = 1;      // the number of the machine itself: VMADDR_CID_LOCAL
  static constexpr std::uint32_t kVsockHost = 2;          // VMADDR_CID_HOST

  SocketAddress() noexcept = default;

  // "127.0.0.1", "::1", "fe80::1%eth0"; no brackets, no port inside. Anything else: malformed_endpoint.
  [[nodiscard]] static Result<SocketAddress> parse_numeric(std::string_view host, std::uint16_t port) noexcept;
  [[nodiscard]] static SocketAddress any(bool ipv6, std::uint16_t port) noexcept;  // 0.0.0.0 or [::]
  [[nodiscard]] static SocketAddress from_ip(Bytes bytes,
                                             std::uint16_t port) noexcept;  // 4 or 16; otherwise no address
  [[nodiscard]] static Result<SocketAddress> from_path(std::string_view path) noexcept;
  [[nodiscard]] static Result<SocketAddress> from_abstract(std::string_view name) noexcept;       // without the '@'
  [[nodiscard]] static SocketAddress from_vsock(std::uint32_t cid, std::uint32_t port) noexcept;  // kVsockAny: any
  [[nodiscard]] static SocketAddress from_raw(const void* sockaddr, std::size_t size) noexcept;

  [[nodiscard]] Family family() const noexcept { return family_; }
  [[nodiscard]] bool is_ip() const noexcept { return family_ == Family::ipv4 || family_ == Family::ipv6; }
  [[nodiscard]] bool is_unix() const noexcept;
  [[nodiscard]] bool is_vsock() const noexcept { return family_ == Family::vsock; }
  [[nodiscard]] std::uint16_t port() const noexcept;  // of an IP address, otherwise 0
  [[nodiscard]] Bytes ip_bytes() const noexcept;      // 4, 16, or none; an IPv4 address in IPv6 form gives its 4
  [[nodiscard]] bool is_multicast() const noexcept;   // 224.0.0.0/4, ff00::/8
  [[nodiscard]] SocketAddress with_port(std::uint16_t port) const noexcept;

  [[nodiscard]] std::string to_text() const;    // "127.0.0.1:5555", "[::1]:5555", "/path", "@name", "3:5555", "*:5", ""
  [[nodiscard]] std::string host_text() const;  // "127.0.0.1", "::1"; a vsock's number or "*"; empty for unix

  [[nodiscard]] const void* raw() const noexcept { return storage_.data(); }
  [[nodiscard]] std::size_t raw_size() const noexcept { return size_; }
  friend bool operator==(const SocketAddress& a, const SocketAddress& b) noexcept;

 private:
  alignas(8) std::array<std::byte, kCapacity> storage_{};
  std::uint32_t size_ = 0;
  Family family_ = Family::none;
};

// The address of a network interface ("lo", "eth0"); with `ipv6` an IPv6 address is preferred.
// address_unavailable: there is no such interface, or it has no address.
[[nodiscard]] Result<SocketAddress> interface_address(std::string_view name, std::uint16_t port, bool ipv6);

[[nodiscard]] std::uint32_t interface_number(const std::string& name) noexcept;  // 0: there is no such interface

// Every address of a host name, in the system's order of preference. Waits for the name service: never call it on an
// I/O thread. IPv6 addresses are included only with `ipv6`. Fails with name_unresolved if the name has no address.
[[nodiscard]] Result<std::vector<SocketAddress>> resolve(const std::string& host, std::uint16_t port, bool ipv6);

}  // namespace weft::sys
