// SPDX-License-Identifier: MIT
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <memory>

#include "weft/sys/address.h"
#include "weft/sys/call.h"

namespace weft::sys {
namespace {

SocketAddress from_sockaddr(const sockaddr& raw) noexcept {
  return SocketAddress::from_raw(&raw, raw.sa_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
}

// Ranks the addresses of an interface; 0: unusable.
int suitability(const sockaddr& raw, bool ipv6) noexcept {
  if (raw.sa_family == AF_INET) {
    return ipv6 ? 1 : 3;
  }
  if (raw.sa_family == AF_INET6 && ipv6) {
    return IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6&>(raw).sin6_addr) ? 2 : 3;
  }
  return 0;
}

Error resolution_error(int code, int os_errno) noexcept {
  switch (code) {
    case EAI_MEMORY: return {Errc::resource_exhausted, "out of memory while resolving a host name"};
    case EAI_AGAIN: return {Errc::name_unresolved, "the name service does not answer"};
    case EAI_SYSTEM: return {Errc::name_unresolved, "the name service failed", os_errno};
    default: return {Errc::name_unresolved, "the host name has no address"};
  }
}

}  // namespace

Result<SocketAddress> interface_address(std::string_view name, std::uint16_t port, bool ipv6) {
  ifaddrs* list = nullptr;
  WEFT_TRY(checked_call("list network interfaces", [&] { return ::getifaddrs(&list); }));
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(list, &::freeifaddrs);
  int best = 0;
  SocketAddress address;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || name != entry->ifa_name) {
      continue;
    }
    const int score = suitability(*entry->ifa_addr, ipv6);
    if (score > best) {
      best = score;
      address = from_sockaddr(*entry->ifa_addr).with_port(port);
    }
  }
  if (best == 0) {
    return Error(Errc::address_unavailable, "no such network interface, or it has no address");
  }
  return address;
}

Result<std::vector<SocketAddress>> resolve(const std::string& host, std::uint16_t port, bool ipv6) {
  addrinfo hints{};
  hints.ai_family = ipv6 ? AF_UNSPEC : AF_INET;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  int code = 0;
  const auto result = call_once([&] {
    code = ::getaddrinfo(host.c_str(), nullptr, &hints, &list);
    return code == 0 ? 0 : -1;
  });
  if (code != 0) {
    return resolution_error(code, result.os_errno);
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(list, &::freeaddrinfo);
  std::vector<SocketAddress> addresses;
  for (const addrinfo* entry = list; entry != nullptr; entry = entry->ai_next) {
    if (entry->ai_family == AF_INET || entry->ai_family == AF_INET6) {
      addresses.push_back(from_sockaddr(*entry->ai_addr).with_port(port));
    }
  }
  if (addresses.empty()) {
    return Error(Errc::name_unresolved, "the host name has no address");
  }
  return addresses;
}

}  // namespace weft::sys
