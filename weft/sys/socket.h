// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "weft/base/bytes.h"
#include "weft/base/result.h"
#include "weft/sys/address.h"
#include "weft/sys/fd.h"

namespace weft::sys {

// The outcome of one non-blocking read or write. `bytes` may be less than requested; it is 0 unless `done`.
struct IoResult {
  enum class Status : std::uint8_t { done, would_block, end_of_stream, failed };

  Status status = Status::would_block;
  std::size_t bytes = 0;
  int os_errno = 0;  // the reason when `failed`; make_error() turns it into an Error
  bool cut = false;  // `done`: the call stopped before its room was full, and there may be more at once
};

inline constexpr std::size_t kMaxReadVector = 4;
inline constexpr std::size_t kMaxWriteVector = 64;

// One system call each; they never wait and never raise SIGPIPE. Elements beyond the maximum stay for the
// next call. A read into nothing and a write of nothing are `done` with 0 bytes.
[[nodiscard]] IoResult read_some(int fd, MutableBytes into) noexcept;
[[nodiscard]] IoResult read_vector(int fd, std::span<MutableBytes> into) noexcept;
[[nodiscard]] IoResult write_some(int fd, Bytes from) noexcept;
[[nodiscard]] IoResult write_vector(int fd, std::span<const Bytes> from) noexcept;

// Options of a stream socket; -1 leaves the system's default.
struct SocketOptions {
  int send_buffer = -1;     // bytes
  int receive_buffer = -1;  // bytes
  int tos = 0;              // IP_TOS and IPV6_TCLASS; 0 leaves the default
  int backlog = 100;
  int keepalive = -1;           // -1 default, 0 off, 1 on
  int keepalive_count = -1;     // probes
  int keepalive_idle = -1;      // seconds
  int keepalive_interval = -1;  // seconds
  int user_timeout = 0;         // TCP_USER_TIMEOUT, milliseconds; 0 leaves the default
  int connect_timeout = 0;      // of a vsock, milliseconds; 0 leaves the default, 2 s
  int priority = 0;             // SO_PRIORITY of TCP; 0 leaves the default
  int busy_poll = 0;            // SO_BUSY_POLL of TCP, microseconds; 0 leaves the default
  bool reuse_port = false;      // SO_REUSEPORT: TCP listeners share an address, the kernel distributes
  int adopt_fd = -1;            // a listener takes this descriptor over instead of opening its own
  std::string device{};         // SO_BINDTODEVICE; empty: any
  bool ipv6 = false;            // names and wildcards may mean IPv6; IPv6 listeners then take IPv4 too
};

// A socket with a started connect. If not `connected`: wait until it is writable, then finish_connect().
struct Connecting {
  Fd fd;
  bool connected = false;
};

// Every socket made here is non-blocking and close-on-exec; every TCP one has TCP_NODELAY. An error leaves no
// descriptor open.
[[nodiscard]] Result<Fd> open_tcp_listener(const SocketAddress& at, const SocketOptions& options) noexcept;
// A loopback TCP port for a server whose port others must know before it starts. While the socket is open, the kernel
// gives the port to no other program that asks for any port; a server that asks for this one by its number, with
// SO_REUSEADDR, listens at it.
[[nodiscard]] Result<Fd> reserve_tcp_port() noexcept;
[[nodiscard]] Result<Fd> open_unix_listener(const SocketAddress& at, const SocketOptions& options) noexcept;
[[nodiscard]] Result<Fd> open_vsock_listener(const SocketAddress& at, const SocketOptions& options) noexcept;
// Takes over a listening stream socket whose address is of that kind (SocketAddress::is_ip, is_unix, is_vsock).
// invalid_argument: `fd` is not such a socket, and the caller keeps it.
[[nodiscard]] Result<Fd> adopt_listener(int fd, bool (SocketAddress::*kind)() const noexcept) noexcept;
// `source` is the local address to connect from, or null.
[[nodiscard]] Result<Connecting> open_tcp_connection(const SocketAddress& to, const SocketAddress* source,
                                                     const SocketOptions& options) noexcept;
[[nodiscard]] Result<Connecting> open_vsock_connection(const SocketAddress& to, const SocketOptions& options) noexcept;
// Whether this machine connects to itself by SocketAddress::kVsockLoopback.
[[nodiscard]] bool has_vsock_loopback() noexcept;
// The bytes of a TCP connection that the peer's system has acknowledged. not_supported: no TCP.
[[nodiscard]] Result<std::uint64_t> acknowledged_bytes(int fd) noexcept;
// The bytes of a TCP connection that the kernel holds until the peer's system has acknowledged them. 0 also for a
// connection that is broken, and where there is no TCP.
[[nodiscard]] std::uint64_t unacknowledged_bytes(int fd) noexcept;
// Whether a stream socket is bound to the path. Does not connect, and no listener notices.
[[nodiscard]] bool is_unix_stream_bound(const SocketAddress& at) noexcept;
// would_block: the listener's backlog is full; try again later.
[[nodiscard]] Result<Connecting> open_unix_connection(const SocketAddress& to, const SocketOptions& options) noexcept;

// would_block: no connection waits. resource_exhausted: out of descriptors or memory, and the connection
// still waits. Then the caller pauses accepting, or a level-triggered poller will spin. Connections that died
// while they waited are skipped.
[[nodiscard]] Result<Fd> accept_connection(int listen_fd) noexcept;

// The outcome of a started connect: would_block while it is under way. connection_failed also covers a TCP
// socket that connected to itself, which loopback allows when no socket listens on an ephemeral port.
[[nodiscard]] Result<void> finish_connect(int fd) noexcept;

// The error of a connection that was reset or timed out; ok: there is none, or `fd` is not a socket. The socket forgets
// the error: reads then give the bytes that came before it, and the end of the stream.
[[nodiscard]] Error take_error(int fd) noexcept;

// The kernel takes no more from this end of a TCP connection while it holds so many bytes that it has not sent.
// SIZE_MAX: as many as the system likes. Nothing happens to a socket that is not TCP.
void bound_unsent(int fd, std::size_t bytes) noexcept;

// Sets TCP_NODELAY, keep-alive and type of service on an accepted TCP socket.
[[nodiscard]] Result<void> tune_tcp(int fd, const SocketOptions& options) noexcept;

// IP_TOS, IPV6_TCLASS. 0 to 255; higher bits are left out.
[[nodiscard]] Result<void> set_type_of_service(int fd, int value) noexcept;

[[nodiscard]] Result<SocketAddress> local_address(int fd) noexcept;
[[nodiscard]] Result<SocketAddress> peer_address(int fd) noexcept;
void shutdown_write(int fd) noexcept;
// Closing the socket then resets a TCP connection: the peer gets an error, and no end of the stream. Bytes that the
// kernel has not sent are dropped. Nothing happens to a socket that is not TCP.
void reset_at_close(int fd) noexcept;
// So many connections, or as many as the system permits, wait at a listening socket for accept_connection().
[[nodiscard]] Result<void> set_backlog(int fd, int backlog) noexcept;
// A listening socket listens no more, for all its duplicates: peers are refused, and its port is free.
void stop_listening(int fd) noexcept;

// The process that made the other end of a unix connection.
struct PeerCredentials {
  std::int64_t pid = -1;
  std::int64_t uid = -1;
  std::int64_t gid = -1;
};
[[nodiscard]] Result<PeerCredentials> peer_credentials(int fd) noexcept;

}  // namespace weft::sys
