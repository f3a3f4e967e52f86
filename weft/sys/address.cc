// SPDX-License-Identifier: MIT
#include "weft/sys/address.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
// After sys/socket.h, which it needs.
#include <linux/vm_sockets.h>

#include <algorithm>
#include <charconv>
#include <cstring>

namespace weft::sys {
namespace {

static_assert(sizeof(sockaddr_storage) == SocketAddress::kCapacity);
static_assert(sizeof(sockaddr_un::sun_path) == SocketAddress::kMaxUnixName + 1);

static_assert(VMADDR_CID_ANY == SocketAddress::kVsockAny && VMADDR_PORT_ANY == SocketAddress::kVsockAny &&
              VMADDR_CID_LOCAL == SocketAddress::kVsockLoopback && VMADDR_CID_HOST == SocketAddress::kVsockHost);

constexpr std::size_t kUnixNameOffset = offsetof(sockaddr_un, sun_path);

template <typename Sockaddr>
Sockaddr view_as(const SocketAddress& address) noexcept {
  Sockaddr out{};
  std::memcpy(&out, address.raw(), std::min(sizeof out, address.raw_size()));
  return out;
}

// The number of a scope: "eth0" or "2"; 0 when there is no such interface.
std::uint32_t scope_number(const char* scope) noexcept {
  const std::uint32_t by_name = ::if_nametoindex(scope);
  if (by_name != 0) {
    return by_name;
  }
  std::uint32_t number = 0;
  const char* end = scope + std::strlen(scope);
  const auto parsed = std::from_chars(scope, end, number);
  return parsed.ec == std::errc() && parsed.ptr == end ? number : 0;
}

std::string scope_text(std::uint32_t scope) {
  char name[IF_NAMESIZE] = {};
  return scope == 0 ? "" : "%" + (::if_indextoname(scope, name) != nullptr ? std::string(name) : std::to_string(scope));
}

std::string vsock_number(std::uint32_t number) {
  return number == SocketAddress::kVsockAny ? "*" : std::to_string(number);
}

std::string_view unix_name(const SocketAddress& address, const sockaddr_un& raw) noexcept {
  const std::size_t length = address.raw_size() - kUnixNameOffset;
  if (address.family() == SocketAddress::Family::unix_abstract) {
    return {raw.sun_path + 1, length - 1};
  }
  return {raw.sun_path, ::strnlen(raw.sun_path, length)};
}

}  // namespace

Result<SocketAddress> SocketAddress::parse_numeric(std::string_view host, std::uint16_t port) noexcept {
  char text[INET6_ADDRSTRLEN + 1 + IF_NAMESIZE] = {};
  if (host.empty() || host.size() >= sizeof text || host.find('\0') != std::string_view::npos) {
    return Error(Errc::malformed_endpoint, "not a numeric address");
  }
  host.copy(text, host.size());
  sockaddr_in ipv4{};
  if (::inet_pton(AF_INET, text, &ipv4.sin_addr) == 1) {
    ipv4.sin_family = AF_INET;
    ipv4.sin_port = htons(port);
    return from_raw(&ipv4, sizeof ipv4);
  }
  sockaddr_in6 ipv6{};
  if (char* scope = std::strchr(text, '%')) {
    *scope = '\0';
    ipv6.sin6_scope_id = scope_number(scope + 1);
    if (ipv6.sin6_scope_id == 0) {
      return Error(Errc::malformed_endpoint, "no such scope in an IPv6 address");
    }
  }
  if (::inet_pton(AF_INET6, text, &ipv6.sin6_addr) == 1) {
    ipv6.sin6_family = AF_INET6;
    ipv6.sin6_port = htons(port);
    return from_raw(&ipv6, sizeof ipv6);
  }
  return Error(Errc::malformed_endpoint, "not a numeric address");
}

SocketAddress SocketAddress::any(bool ipv6, std::uint16_t port) noexcept {
  if (ipv6) {
    sockaddr_in6 raw{};  // all zero is the wildcard
    raw.sin6_family = AF_INET6;
    raw.sin6_port = htons(port);
    return from_raw(&raw, sizeof raw);
  }
  sockaddr_in raw{};
  raw.sin_family = AF_INET;
  raw.sin_port = htons(port);
  return from_raw(&raw, sizeof raw);
}

SocketAddress SocketAddress::from_ip(Bytes bytes, std::uint16_t port) noexcept {
  if (bytes.size() == sizeof(in_addr)) {
    sockaddr_in raw{};
    raw.sin_family = AF_INET;
    raw.sin_port = htons(port);
    std::memcpy(&raw.sin_addr, bytes.data(), bytes.size());
    return from_raw(&raw, sizeof raw);
  }
  if (bytes.size() == sizeof(in6_addr)) {
    sockaddr_in6 raw{};
    raw.sin6_family = AF_INET6;
    raw.sin6_port = htons(port);
    std::memcpy(&raw.sin6_addr, bytes.data(), bytes.size());
    return from_raw(&raw, sizeof raw);
  }
  return {};
}

Result<SocketAddress> SocketAddress::from_path(std::string_view path) noexcept {
  if (path.empty() || path.size() > kMaxUnixName || path.find('\0') != std::string_view::npos) {
    return Error(Errc::malformed_endpoint, "a socket path has 1 to 107 bytes and no NUL");
  }
  sockaddr_un raw{};
  raw.sun_family = AF_UNIX;
  path.copy(raw.sun_path, path.size());
  return from_raw(&raw, kUnixNameOffset + path.size() + 1);
}

Result<SocketAddress> SocketAddress::from_abstract(std::string_view name) noexcept {
  if (name.empty() || name.size() > kMaxUnixName) {
    return Error(Errc::malformed_endpoint, "an abstract socket name has 1 to 107 bytes");
  }
  sockaddr_un raw{};
  raw.sun_family = AF_UNIX;
  name.copy(raw.sun_path + 1, name.size());
  return from_raw(&raw, kUnixNameOffset + 1 + name.size());
}

SocketAddress SocketAddress::from_vsock(std::uint32_t cid, std::uint32_t port) noexcept {
  sockaddr_vm raw{};
  raw.svm_family = AF_VSOCK;
  raw.svm_cid = cid;
  raw.svm_port = port;
  return from_raw(&raw, sizeof raw);
}

SocketAddress SocketAddress::from_raw(const void* sockaddr, std::size_t size) noexcept {
  SocketAddress out;
  out.size_ = static_cast<std::uint32_t>(std::min(size, kCapacity));
  std::memcpy(out.storage_.data(), sockaddr, out.size_);
  switch (size >= sizeof(sa_family_t) ? view_as<sockaddr_storage>(out).ss_family : AF_UNSPEC) {
    case AF_INET: out.family_ = Family::ipv4; break;
    case AF_INET6: out.family_ = Family::ipv6; break;
    case AF_UNIX:
      if (out.size_ <= kUnixNameOffset) {
        out.family_ = Family::unix_unnamed;
      } else {
        const bool abstract = out.storage_[kUnixNameOffset] == std::byte{0};
        out.family_ = abstract ? Family::unix_abstract : Family::unix_path;
      }
      break;
    case AF_VSOCK: out.family_ = Family::vsock; break;
    default: out.family_ = Family::none; break;
  }
  return out;
}

bool SocketAddress::is_unix() const noexcept {
  return family_ == Family::unix_path || family_ == Family::unix_abstract || family_ == Family::unix_unnamed;
}

std::uint16_t SocketAddress::port() const noexcept {
  switch (family_) {
    case Family::ipv4: return ntohs(view_as<sockaddr_in>(*this).sin_port);
    case Family::ipv6: return ntohs(view_as<sockaddr_in6>(*this).sin6_port);
    default: return 0;
  }
}

Bytes SocketAddress::ip_bytes() const noexcept {
  const auto* raw_bytes = reinterpret_cast<const std::uint8_t*>(storage_.data());
  if (family_ == Family::ipv4) {
    return {raw_bytes + offsetof(sockaddr_in, sin_addr), 4};
  }
  if (family_ != Family::ipv6) {
    return {};
  }
  const Bytes bytes(raw_bytes + offsetof(sockaddr_in6, sin6_addr), 16);
  constexpr std::uint8_t kMapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};
  return std::equal(std::begin(kMapped), std::end(kMapped), bytes.begin()) ? bytes.last(4) : bytes;
}

bool SocketAddress::is_multicast() const noexcept {
  const Bytes bytes = ip_bytes();
  return family_ == Family::ipv4 ? (bytes[0] & 0xF0) == 0xE0 : bytes.size() == 16 && bytes[0] == 0xFF;
}

SocketAddress SocketAddress::with_port(std::uint16_t port) const noexcept {
  static_assert(offsetof(sockaddr_in, sin_port) == offsetof(sockaddr_in6, sin6_port));
  SocketAddress out = *this;
  if (is_ip()) {
    const std::uint16_t network_order = htons(port);
    std::memcpy(out.storage_.data() + offsetof(sockaddr_in, sin_port), &network_order, sizeof network_order);
  }
  return out;
}

std::string SocketAddress::host_text() const {
  char text[INET6_ADDRSTRLEN] = {};
  if (family_ == Family::ipv4) {
    const auto raw = view_as<sockaddr_in>(*this);
    ::inet_ntop(AF_INET, &raw.sin_addr, text, sizeof text);
    return text;
  }
  if (family_ == Family::ipv6) {
    const auto raw = view_as<sockaddr_in6>(*this);
    ::inet_ntop(AF_INET6, &raw.sin6_addr, text, sizeof text);
    return text + scope_text(raw.sin6_scope_id);
  }
  return family_ == Family::vsock ? vsock_number(view_as<sockaddr_vm>(*this).svm_cid) : std::string();
}

std::string SocketAddress::to_text() const {
  switch (family_) {
    case Family::ipv4: return host_text() + ":" + std::to_string(port());
    case Family::ipv6: return "[" + host_text() + "]:" + std::to_string(port());
    case Family::unix_path: return std::string(unix_name(*this, view_as<sockaddr_un>(*this)));
    case Family::unix_abstract: return "@" + std::string(unix_name(*this, view_as<sockaddr_un>(*this)));
    case Family::vsock: return host_text() + ":" + vsock_number(view_as<sockaddr_vm>(*this).svm_port);
    case Family::unix_unnamed:
    case Family::none: break;
  }
  return {};
}

std::uint32_t interface_number(const std::string& name) noexcept { return ::if_nametoindex(name.c_str()); }

bool operator==(const SocketAddress& a, const SocketAddress& b) noexcept {
  return a.family_ == b.family_ && a.size_ == b.size_ &&
         std::equal(a.storage_.begin(), a.storage_.begin() + a.size_, b.storage_.begin());
}

}  // namespace weft::sys
