// SPDX-License-Identifier: MIT
#include "weft/sys/socket.h"

#include <fcntl.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
// After sys/socket.h, which it needs.
#include <linux/vm_sockets.h>

#include <algorithm>
#include <climits>
#include <cstdint>

#include "weft/sys/call.h"

namespace weft::sys {
namespace {

Result<void> set_option(int fd, int level, int name, int value, StaticText what) noexcept {
  WEFT_TRY(checked_call(what, [&] { return ::setsockopt(fd, level, name, &value, sizeof value); }));
  return {};
}

void try_option(int fd, int level, int name, int value) noexcept {
  call([&] { return ::setsockopt(fd, level, name, &value, sizeof value); });
}

Result<int> read_option(int fd, int name, StaticText what) noexcept {
  int value = 0;
  socklen_t size = sizeof value;
  WEFT_TRY(checked_call(what, [&] { return ::getsockopt(fd, SOL_SOCKET, name, &value, &size); }));
  return value;
}

const sockaddr* raw(const SocketAddress& address) noexcept { return static_cast<const sockaddr*>(address.raw()); }

socklen_t raw_size(const SocketAddress& address) noexcept { return static_cast<socklen_t>(address.raw_size()); }

int domain_of(const SocketAddress& address) noexcept {
  switch (address.family()) {
    case SocketAddress::Family::none: return AF_UNSPEC;
    case SocketAddress::Family::ipv4: return AF_INET;
    case SocketAddress::Family::ipv6: return AF_INET6;
    case SocketAddress::Family::vsock: return AF_VSOCK;
    default: return AF_UNIX;
  }
}

// The bytes that a vsock holds for its reader. The kernel takes them up to a bound, which is an option, too.
Result<void> set_vsock_buffer(int fd, int bytes) noexcept {
  const auto size = static_cast<std::uint64_t>(bytes);
  for (const int name : {SO_VM_SOCKETS_BUFFER_MAX_SIZE, SO_VM_SOCKETS_BUFFER_SIZE}) {
    WEFT_TRY(
        checked_call("set the receive buffer", [&] { return ::setsockopt(fd, AF_VSOCK, name, &size, sizeof size); }));
  }
  return {};
}

// Sets the buffers before bind and connect: the kernel derives the TCP window from the receive buffer at the
// handshake.
Result<Fd> open_stream(int domain, const SocketOptions& options) noexcept {
  constexpr int kType = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC;
  Fd fd(WEFT_TRY(checked_call("socket", [&] { return ::socket(domain, kType, 0); })));
  if (options.send_buffer >= 0) {
    WEFT_TRY(set_option(fd.fd(), SOL_SOCKET, SO_SNDBUF, options.send_buffer, "set the send buffer"));
  }
  if (options.receive_buffer >= 0 && domain == AF_VSOCK) {
    WEFT_TRY(set_vsock_buffer(fd.fd(), options.receive_buffer));
  } else if (options.receive_buffer >= 0) {
    WEFT_TRY(set_option(fd.fd(), SOL_SOCKET, SO_RCVBUF, options.receive_buffer, "set the receive buffer"));
  }
  if (domain != AF_UNIX && domain != AF_VSOCK && !options.device.empty()) {
    WEFT_TRY(checked_call("bind to the device", [&] {
      return ::setsockopt(fd.fd(), SOL_SOCKET, SO_BINDTODEVICE, options.device.data(),
                          static_cast<socklen_t>(options.device.size()));
    }));
  }
  return fd;
}

Result<void> bind_and_listen(int fd, const SocketAddress& at, int backlog) noexcept {
  WEFT_TRY(checked_call("bind", [&] { return ::bind(fd, raw(at), raw_size(at)); }));
  return set_backlog(fd, backlog);
}

Result<Connecting> begin_connect(Fd fd, const SocketAddress& to) noexcept {
  const auto result = call_once([&] { return ::connect(fd.fd(), raw(to), raw_size(to)); });
  if (!result.failed()) {
    return Connecting{std::move(fd), true};
  }
  if (result.os_errno == EINPROGRESS || result.os_errno == EINTR) {  // after an interruption the connect continues
    return Connecting{std::move(fd), false};
  }
  return make_error(result.os_errno, "connect");
}

Result<SocketAddress> query_address(int fd, int (*query)(int, sockaddr*, socklen_t*), StaticText what) noexcept {
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;
  WEFT_TRY(checked_call(what, [&] { return query(fd, reinterpret_cast<sockaddr*>(&storage), &size); }));
  return SocketAddress::from_raw(&storage, size);
}

int query_local(int fd, sockaddr* into, socklen_t* size) { return ::getsockname(fd, into, size); }

int query_peer(int fd, sockaddr* into, socklen_t* size) { return ::getpeername(fd, into, size); }

// Errors of accept() that belong to the connection it was about to return (accept(2)); the listener is sound.
bool concerns_one_connection(int os_errno) noexcept {
  switch (os_errno) {
    case ECONNABORTED:
    case EPROTO:
    case EPERM:
    case ENETDOWN:
    case ENOPROTOOPT:
    case EHOSTDOWN:
    case ENONET:
    case EHOSTUNREACH:
    case ENETUNREACH:
    case ETIMEDOUT: return true;
    default: return false;
  }
}

}  // namespace

Result<void> set_type_of_service(int fd, int value) noexcept {
  const int tos = value & 0xFF;  // one byte in the header; IPv6 refuses a larger value, IPv4 cuts it off
  if (WEFT_TRY(read_option(fd, SO_DOMAIN, "read the socket's domain")) != AF_INET6) {
    return set_option(fd, IPPROTO_IP, IP_TOS, tos, "set the type of service");
  }
  try_option(fd, IPPROTO_IP, IP_TOS, tos);  // for IPv4 peers of an IPv6 socket, where the system supports it
  return set_option(fd, IPPROTO_IPV6, IPV6_TCLASS, tos, "set the traffic class");
}

void bound_unsent(int fd, std::size_t bytes) noexcept {
  constexpr std::size_t kMax = INT_MAX;
  try_option(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, bytes == SIZE_MAX ? 0 : static_cast<int>(std::min(bytes, kMax)));
}

Result<void> tune_tcp(int fd, const SocketOptions& options) noexcept {
  WEFT_TRY(set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1, "set TCP_NODELAY"));
  if (options.tos != 0) {
    WEFT_TRY(set_type_of_service(fd, options.tos));
  }
  if (options.priority != 0) {
    try_option(fd, SOL_SOCKET, SO_PRIORITY, options.priority);  // above 6 the system asks for a privilege
  }
  if (options.busy_poll > 0) {
    try_option(fd, SOL_SOCKET, SO_BUSY_POLL, options.busy_poll);  // beyond its own value the system asks for one, too
  }
  if (options.user_timeout > 0) {
    WEFT_TRY(set_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, options.user_timeout, "set the user timeout"));
  }
  if (options.keepalive < 0) {
    return {};
  }
  WEFT_TRY(set_option(fd, SOL_SOCKET, SO_KEEPALIVE, options.keepalive != 0 ? 1 : 0, "set keep-alive"));
  if (options.keepalive == 0) {
    return {};
  }
  if (options.keepalive_count > 0) {
    WEFT_TRY(set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, options.keepalive_count, "set the keep-alive count"));
  }
  if (options.keepalive_idle > 0) {
    WEFT_TRY(set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, options.keepalive_idle, "set the keep-alive idle time"));
  }
  if (options.keepalive_interval > 0) {
    WEFT_TRY(set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, options.keepalive_interval, "set the keep-alive interval"));
  }
  return {};
}

Result<Fd> open_tcp_listener(const SocketAddress& at, const SocketOptions& options) noexcept {
  Fd fd = WEFT_TRY(open_stream(domain_of(at), options));
  WEFT_TRY(tune_tcp(fd.fd(), options));
  WEFT_TRY(set_option(fd.fd(), SOL_SOCKET, SO_REUSEADDR, 1, "set SO_REUSEADDR"));
  if (options.reuse_port) {
    WEFT_TRY(set_option(fd.fd(), SOL_SOCKET, SO_REUSEPORT, 1, "set SO_REUSEPORT"));
  }
  if (at.family() == SocketAddress::Family::ipv6) {
    const bool takes_ipv4 =
        options.ipv6 || at.ip_bytes().size() == 4;  // an IPv4 address in IPv6 form takes nothing else
    WEFT_TRY(set_option(fd.fd(), IPPROTO_IPV6, IPV6_V6ONLY, takes_ipv4 ? 0 : 1, "set IPV6_V6ONLY"));
  }
  WEFT_TRY(bind_and_listen(fd.fd(), at, options.backlog));
  return fd;
}

// Bound without listening: the kernel shares such a port between sockets with SO_REUSEADDR, but never chooses it.
Result<Fd> reserve_tcp_port() noexcept {
  const SocketAddress at = WEFT_TRY(SocketAddress::parse_numeric("127.0.0.1", 0));
  Fd fd = WEFT_TRY(open_stream(AF_INET, {}));
  WEFT_TRY(set_option(fd.fd(), SOL_SOCKET, SO_REUSEADDR, 1, "set SO_REUSEADDR"));
  WEFT_TRY(checked_call("bind", [&] { return ::bind(fd.fd(), raw(at), raw_size(at)); }));
  return fd;
}

Result<Fd> open_unix_listener(const SocketAddress& at, const SocketOptions& options) noexcept {
  Fd fd = WEFT_TRY(open_stream(domain_of(at), options));
  WEFT_TRY(bind_and_listen(fd.fd(), at, options.backlog));
  return fd;
}

Result<Fd> adopt_listener(int fd, bool (SocketAddress::*kind)() const noexcept) noexcept {
  const auto listens = read_option(fd, SO_ACCEPTCONN, "read whether the descriptor listens");
  const auto local = local_address(fd);
  if (!listens || *listens == 0 || !local || !((*local).*kind)()) {
    return Error(Errc::invalid_argument, "this descriptor does not listen at such an endpoint");
  }
  const int flags = WEFT_TRY(checked_call("fcntl", [&] { return ::fcntl(fd, F_GETFL); }));
  WEFT_TRY(checked_call("fcntl", [&] { return ::fcntl(fd, F_SETFL, flags | O_NONBLOCK); }));
  WEFT_TRY(checked_call("fcntl", [&] { return ::fcntl(fd, F_SETFD, FD_CLOEXEC); }));
  return Fd(fd);
}

Result<Connecting> open_tcp_connection(const SocketAddress& to, const SocketAddress* source,
                                       const SocketOptions& options) noexcept {
  Fd fd = WEFT_TRY(open_stream(domain_of(to), options));
  WEFT_TRY(tune_tcp(fd.fd(), options));
  if (source != nullptr) {
    WEFT_TRY(set_option(fd.fd(), SOL_SOCKET, SO_REUSEADDR, 1, "set SO_REUSEADDR"));
    if (source->port() == 0) {
      try_option(fd.fd(), IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1);  // connect chooses the port, per destination
    }
    WEFT_TRY(checked_call("bind the source", [&] { return ::bind(fd.fd(), raw(*source), raw_size(*source)); }));
  }
  return begin_connect(std::move(fd), to);
}

Result<Fd> open_vsock_listener(const SocketAddress& at, const SocketOptions& options) noexcept {
  Fd fd = WEFT_TRY(open_stream(AF_VSOCK, options));
  WEFT_TRY(bind_and_listen(fd.fd(), at, options.backlog));
  return fd;
}

Result<Connecting> open_vsock_connection(const SocketAddress& to, const SocketOptions& options) noexcept {
  Fd fd = WEFT_TRY(open_stream(AF_VSOCK, options));
  if (options.connect_timeout > 0) {
    const timeval timeout{options.connect_timeout / 1000, options.connect_timeout % 1000 * 1000};
    WEFT_TRY(checked_call("set the time for connecting", [&] {
      return ::setsockopt(fd.fd(), AF_VSOCK, SO_VM_SOCKETS_CONNECT_TIMEOUT, &timeout, sizeof timeout);
    }));
  }
  return begin_connect(std::move(fd), to);
}

bool has_vsock_loopback() noexcept {
  // The kernel binds to this number only where it has the module vsock_loopback. Elsewhere a connect to the number
  // would go to the host.
  return open_vsock_listener(SocketAddress::from_vsock(SocketAddress::kVsockLoopback, SocketAddress::kVsockAny), {})
      .has_value();
}

Result<std::uint64_t> acknowledged_bytes(int fd) noexcept {
  // The kernel's tcp_info as far as Linux 4.1 has it. That of glibc ends before.
  struct {
    ::tcp_info known;
    std::uint64_t pacing_rate, max_pacing_rate, bytes_acked;
  } info{};
  socklen_t size = sizeof info;
  if (::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0 || size < sizeof info) {
    return Error(Errc::not_supported, "no TCP connection");
  }
  return info.bytes_acked;
}

std::uint64_t unacknowledged_bytes(int fd) noexcept {
  ::tcp_info info{};
  socklen_t size = sizeof info;
  if (::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0 || info.tcpi_state == TCP_CLOSE) {
    return 0;  // a reset leaves the number of bytes as it was
  }
  int held = 0;
  if (::ioctl(fd, SIOCOUTQ, &held) != 0) {
    return 0;
  }
  // The end of the stream counts as a byte until it is acknowledged.
  const bool ended =
      info.tcpi_state == TCP_FIN_WAIT1 || info.tcpi_state == TCP_CLOSING || info.tcpi_state == TCP_LAST_ACK;
  return static_cast<std::uint64_t>(std::max(held - (ended ? 1 : 0), 0));
}

bool is_unix_stream_bound(const SocketAddress& at) noexcept {
  // The kernel resolves the path before it compares the types: EPROTOTYPE (connect(2)) means that a stream
  // socket is bound.
  const auto other_type = checked_call("socket", [&] { return ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0); });
  if (!other_type) {
    return false;
  }
  const Fd probe(*other_type);
  return call([&] { return ::connect(probe.fd(), raw(at), raw_size(at)); }).os_errno == EPROTOTYPE;
}

Result<Connecting> open_unix_connection(const SocketAddress& to, const SocketOptions& options) noexcept {
  Fd fd = WEFT_TRY(open_stream(domain_of(to), options));
  const auto result = call([&] { return ::connect(fd.fd(), raw(to), raw_size(to)); });
  if (!result.failed()) {
    return Connecting{std::move(fd), true};
  }
  if (result.os_errno == ENOENT) {
    return Error(Errc::connection_failed, "connect", ENOENT);
  }
  return make_error(result.os_errno, "connect");
}

Result<Fd> accept_connection(int listen_fd) noexcept {
  constexpr int kMaxDead = 64;  // skipped in one call, so that a stream of them cannot hold the caller
  for (int dead = 0; dead < kMaxDead; ++dead) {
    const auto result = call([&] { return ::accept4(listen_fd, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC); });
    if (!result.failed()) {
      return Fd(result.value);
    }
    if (!concerns_one_connection(result.os_errno)) {
      return make_error(result.os_errno, "accept");
    }
  }
  return Error(Errc::would_block, "accept");
}

Result<void> finish_connect(int fd) noexcept {
  const int os_errno = WEFT_TRY(read_option(fd, SO_ERROR, "read the socket's error"));
  if (os_errno != 0) {
    const auto local = local_address(fd);
    const bool refused = os_errno == ECONNRESET && local && local->is_vsock();  // a vsock is refused by a reset
    return make_error(refused ? ECONNREFUSED : os_errno, "connect");
  }
  const auto peer = peer_address(fd);
  if (!peer) {
    if (peer.error().os_errno() == ENOTCONN) {
      return Error(Errc::would_block, "connect");
    }
    return peer.error();
  }
  if (peer->is_ip() && WEFT_TRY(local_address(fd)) == *peer) {
    return Error(Errc::connection_failed, "connected to itself: nobody listens there", ECONNREFUSED);
  }
  return {};
}

Error take_error(int fd) noexcept {
  const auto os_errno = read_option(fd, SO_ERROR, "read the socket's error");
  return os_errno && *os_errno != 0 ? make_error(*os_errno, "the connection failed") : Error();
}

Result<SocketAddress> local_address(int fd) noexcept { return query_address(fd, &query_local, "getsockname"); }

Result<SocketAddress> peer_address(int fd) noexcept { return query_address(fd, &query_peer, "getpeername"); }

Result<PeerCredentials> peer_credentials(int fd) noexcept {
  ucred peer{};
  socklen_t size = sizeof peer;
  WEFT_TRY(checked_call("read the peer's credentials",
                        [&] { return ::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size); }));
  return PeerCredentials{peer.pid, peer.uid, peer.gid};
}

void shutdown_write(int fd) noexcept {
  call([&] { return ::shutdown(fd, SHUT_WR); });  // refused only when the stream is gone already
}

void reset_at_close(int fd) noexcept {
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  call([&] { return ::setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once); });
}

Result<void> set_backlog(int fd, int backlog) noexcept {
  WEFT_TRY(checked_call("listen", [&] { return ::listen(fd, backlog); }));
  return {};
}

void stop_listening(int fd) noexcept {
  call([&] { return ::shutdown(fd, SHUT_RD); });
}

}  // namespace weft::sys
