// SPDX-License-Identifier: MIT
#include "weft/sys/datagram.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>

#include "weft/sys/call.h"

namespace weft::sys {
namespace {

constexpr int kIpMulticastAll = 49;    // IP_MULTICAST_ALL
constexpr int kIpv6MulticastAll = 29;  // IPV6_MULTICAST_ALL; older C libraries do not name it

template <typename Value>
Result<void> set_option(int fd, int level, int name, const Value& value, StaticText what) noexcept {
  WEFT_TRY(checked_call(what, [&] { return ::setsockopt(fd, level, name, &value, sizeof value); }));
  return {};
}

void try_datagram_option(int fd, int level, int name, int value) noexcept {
  call([&] { return ::setsockopt(fd, level, name, &value, sizeof value); });
}

const sockaddr* raw_address(const SocketAddress& address) noexcept {
  return static_cast<const sockaddr*>(address.raw());
}

in_addr ipv4_of(const SocketAddress& address) noexcept {
  in_addr out{};
  if (address.family() == SocketAddress::Family::ipv4) {
    std::memcpy(&out, address.ip_bytes().data(), sizeof out);
  }
  return out;
}

Result<void> set_buffers(int fd, const SocketOptions& options) noexcept {
  if (options.send_buffer >= 0) {
    WEFT_TRY(set_option(fd, SOL_SOCKET, SO_SNDBUF, options.send_buffer, "set the send buffer"));
  }
  if (options.receive_buffer >= 0) {
    WEFT_TRY(set_option(fd, SOL_SOCKET, SO_RCVBUF, options.receive_buffer, "set the receive buffer"));
  }
  if (!options.device.empty()) {
    WEFT_TRY(checked_call("bind to the device", [&] {
      return ::setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, options.device.data(),
                          static_cast<socklen_t>(options.device.size()));
    }));
  }
  return {};
}

Result<void> set_multicast(int fd, bool ipv6, const DatagramOptions& how) noexcept {
  const int loop = how.loop ? 1 : 0;
  const int hops = std::min(how.hops, 255);
  if (ipv6) {
    WEFT_TRY(set_option(fd, IPPROTO_IPV6, IPV6_MULTICAST_HOPS, hops, "set the hops of multicast"));
    WEFT_TRY(set_option(fd, IPPROTO_IPV6, IPV6_MULTICAST_LOOP, loop, "set the loop of multicast"));
    if (how.interface_number != 0) {
      const int number = static_cast<int>(how.interface_number);
      WEFT_TRY(set_option(fd, IPPROTO_IPV6, IPV6_MULTICAST_IF, number, "set the interface of multicast"));
    }
    return {};
  }
  WEFT_TRY(set_option(fd, IPPROTO_IP, IP_MULTICAST_TTL, hops, "set the hops of multicast"));
  WEFT_TRY(set_option(fd, IPPROTO_IP, IP_MULTICAST_LOOP, loop, "set the loop of multicast"));
  const ip_mreqn interface{{}, ipv4_of(how.interface), static_cast<int>(how.interface_number)};
  if (interface.imr_ifindex != 0 || interface.imr_address.s_addr != INADDR_ANY) {
    WEFT_TRY(set_option(fd, IPPROTO_IP, IP_MULTICAST_IF, interface, "set the interface of multicast"));
  }
  return {};
}

Result<void> join(int fd, bool ipv6, const DatagramOptions& how) noexcept {
  if (ipv6) {
    // Without this a group that any other socket of the host joined would arrive here, too.
    try_datagram_option(fd, IPPROTO_IPV6, kIpv6MulticastAll, 0);
    ipv6_mreq request{};
    std::memcpy(&request.ipv6mr_multiaddr, how.group.ip_bytes().data(), sizeof request.ipv6mr_multiaddr);
    request.ipv6mr_interface = how.interface_number;
    return set_option(fd, IPPROTO_IPV6, IPV6_ADD_MEMBERSHIP, request, "join the multicast group");
  }
  try_datagram_option(fd, IPPROTO_IP, kIpMulticastAll, 0);
  const ip_mreqn request{ipv4_of(how.group), ipv4_of(how.interface), static_cast<int>(how.interface_number)};
  return set_option(fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, request, "join the multicast group");
}

// With SO_REUSEADDR the system could choose a port that another such socket has, so only a port of the caller's choice
// gets it.
Result<void> bind_to(int fd, bool ipv6, const DatagramOptions& how, const SocketOptions& options) noexcept {
  if (how.local.port() != 0) {
    WEFT_TRY(set_option(fd, SOL_SOCKET, SO_REUSEADDR, 1, "set SO_REUSEADDR"));
  }
  if (how.shared) {
    WEFT_TRY(set_option(fd, SOL_SOCKET, SO_REUSEPORT, 1, "set SO_REUSEPORT"));
  }
  if (ipv6) {
    const bool takes_ipv4 = options.ipv6 || how.local.ip_bytes().size() == 4;
    WEFT_TRY(set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY, takes_ipv4 ? 0 : 1, "set IPV6_V6ONLY"));
  }
  try_datagram_option(fd, SOL_SOCKET, SO_RXQ_OVFL, 1);
  const auto size = static_cast<socklen_t>(how.local.raw_size());
  WEFT_TRY(checked_call("bind", [&] { return ::bind(fd, raw_address(how.local), size); }));
  if (how.group.is_ip()) {
    WEFT_TRY(join(fd, ipv6, how));
  }
  return {};
}

std::uint32_t overflow_of(msghdr& message, std::uint32_t known) noexcept {
  for (cmsghdr* one = CMSG_FIRSTHDR(&message); one != nullptr; one = CMSG_NXTHDR(&message, one)) {
    if (one->cmsg_level == SOL_SOCKET && one->cmsg_type == SO_RXQ_OVFL) {
      std::memcpy(&known, CMSG_DATA(one), sizeof known);
    }
  }
  return known;
}

}  // namespace

Result<Fd> open_datagram_socket(const DatagramOptions& how, const SocketOptions& options) noexcept {
  constexpr int kType = SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC;
  const bool ipv6 = how.local.family() == SocketAddress::Family::ipv6;
  Fd fd(WEFT_TRY(checked_call("socket", [&] { return ::socket(ipv6 ? AF_INET6 : AF_INET, kType, 0); })));
  WEFT_TRY(set_buffers(fd.fd(), options));
  if (options.tos != 0) {
    WEFT_TRY(set_type_of_service(fd.fd(), options.tos));
  }
  WEFT_TRY(set_multicast(fd.fd(), ipv6, how));
  if (how.bound) {
    WEFT_TRY(bind_to(fd.fd(), ipv6, how, options));
  }
  return fd;
}

DatagramResult send_datagrams(int fd, std::span<const OutgoingDatagram> datagrams) noexcept {
  const std::size_t count = std::min(datagrams.size(), kMaxDatagrams);
  mmsghdr messages[kMaxDatagrams];
  iovec vectors[kMaxDatagrams][kMaxDatagramParts];
  for (std::size_t i = 0; i < count; ++i) {
    const OutgoingDatagram& from = datagrams[i];
    for (std::size_t part = 0; part < kMaxDatagramParts; ++part) {
      vectors[i][part] = {const_cast<std::uint8_t*>(from.parts[part].data()), from.parts[part].size()};
    }
    messages[i] = {};
    messages[i].msg_hdr.msg_name = const_cast<void*>(from.address);
    messages[i].msg_hdr.msg_namelen = static_cast<socklen_t>(from.address_size);
    messages[i].msg_hdr.msg_iov = vectors[i];
    messages[i].msg_hdr.msg_iovlen = kMaxDatagramParts;
  }
  const auto sent =
      call([&] { return ::sendmmsg(fd, messages, static_cast<unsigned>(count), MSG_DONTWAIT | MSG_NOSIGNAL); });
  return {sent.failed() ? 0 : static_cast<std::size_t>(sent.value), sent.os_errno};
}

DatagramResult receive_datagrams(int fd, std::span<IncomingDatagram> into, bool names) noexcept {
  const std::size_t count = std::min(into.size(), kMaxDatagrams);
  mmsghdr messages[kMaxDatagrams];
  iovec vectors[kMaxDatagrams];
  sockaddr_in6 from[kMaxDatagrams];  // the larger of the two families
  alignas(cmsghdr) std::uint8_t control[kMaxDatagrams][CMSG_SPACE(sizeof(std::uint32_t))];
  for (std::size_t i = 0; i < count; ++i) {
    vectors[i] = {into[i].room.data(), into[i].room.size()};
    messages[i] = {};
    messages[i].msg_hdr.msg_name = names ? &from[i] : nullptr;
    messages[i].msg_hdr.msg_namelen = names ? sizeof from[i] : 0;
    messages[i].msg_hdr.msg_iov = &vectors[i];
    messages[i].msg_hdr.msg_iovlen = 1;
    messages[i].msg_hdr.msg_control = control[i];
    messages[i].msg_hdr.msg_controllen = sizeof control[i];
  }
  const auto got = call([&] { return ::recvmmsg(fd, messages, static_cast<unsigned>(count), MSG_DONTWAIT, nullptr); });
  if (got.failed()) {
    return {0, got.os_errno};
  }
  for (std::size_t i = 0; i < static_cast<std::size_t>(got.value); ++i) {
    msghdr& header = messages[i].msg_hdr;
    into[i].size = messages[i].msg_len;
    into[i].cut = (header.msg_flags & MSG_TRUNC) != 0;
    into[i].overflow = overflow_of(header, i == 0 ? into[i].overflow : into[i - 1].overflow);
    if (names) {
      into[i].from = SocketAddress::from_raw(&from[i], header.msg_namelen);
    }
  }
  return {static_cast<std::size_t>(got.value), 0};
}

bool would_block(int os_errno) noexcept { return os_errno == EAGAIN || os_errno == EWOULDBLOCK; }

bool too_long(int os_errno) noexcept { return os_errno == EMSGSIZE; }

}  // namespace weft::sys
