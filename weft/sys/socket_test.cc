// SPDX-License-Identifier: MIT
#include "weft/sys/socket.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
// After sys/socket.h, which it needs.
#include <linux/vm_sockets.h>

#include <string>
#include <vector>

#include "weft/sys/call.h"
#include "weft/sys/clock.h"
#include "weft/sys/poll.h"
#include <gtest/gtest.h>

namespace weft::sys {
namespace {

using Status = IoResult::Status;
constexpr Duration kPatience = std::chrono::seconds(10);

bool wait_for(int fd, Interest interest) {
  PollFd polled{.fd = fd, .want = interest};
  return poll_fds({&polled, 1}, kPatience).value_or(std::size_t{0}) == 1;
}

SocketAddress loopback(std::uint16_t port) { return *SocketAddress::parse_numeric("127.0.0.1", port); }

struct Pair {
  Fd listener;
  Fd client;
  Fd server;
};

Pair connect_pair(const SocketOptions& options = {}) {
  Pair pair;
  pair.listener = std::move(open_tcp_listener(loopback(0), options)).value();
  const auto address = local_address(pair.listener.fd()).value();
  pair.client = std::move(open_tcp_connection(address, nullptr, options)).value().fd;
  EXPECT_TRUE(wait_for(pair.client.fd(), Interest::writable));
  EXPECT_TRUE(finish_connect(pair.client.fd()));
  EXPECT_TRUE(wait_for(pair.listener.fd(), Interest::readable));
  pair.server = std::move(accept_connection(pair.listener.fd())).value();
  return pair;
}

int option_of(const Fd& fd, int level, int name) {
  int value = -1;
  socklen_t size = sizeof value;
  EXPECT_EQ(::getsockopt(fd.fd(), level, name, &value, &size), 0);
  return value;
}

TEST(Socket, CarriesBytesBothWaysAndEnds) {
  const Pair pair = connect_pair();
  std::uint8_t buffer[16];
  EXPECT_EQ(read_some(pair.server.fd(), buffer).status, Status::would_block);

  const IoResult written = write_some(pair.client.fd(), as_bytes("hello"));
  EXPECT_EQ(written.status, Status::done);
  EXPECT_EQ(written.bytes, 5u);
  ASSERT_TRUE(wait_for(pair.server.fd(), Interest::readable));
  const IoResult received = read_some(pair.server.fd(), buffer);
  EXPECT_EQ(received.status, Status::done);
  EXPECT_EQ(as_text({buffer, received.bytes}), "hello");

  shutdown_write(pair.server.fd());
  ASSERT_TRUE(wait_for(pair.client.fd(), Interest::readable));
  EXPECT_EQ(read_some(pair.client.fd(), buffer).status, Status::end_of_stream);
}

TEST(Socket, GathersAndScatters) {
  const Pair pair = connect_pair();
  const std::vector<Bytes> parts = {as_bytes("ab"), {}, as_bytes("cde")};
  EXPECT_EQ(write_vector(pair.client.fd(), parts).bytes, 5u);
  ASSERT_TRUE(wait_for(pair.server.fd(), Interest::readable));
  std::uint8_t first[1];
  std::uint8_t second[10];
  std::vector<MutableBytes> into = {first, second};
  EXPECT_EQ(read_vector(pair.server.fd(), into).bytes, 5u);
  EXPECT_EQ(first[0], 'a');
  EXPECT_EQ(as_text({second, 4}), "bcde");
  EXPECT_EQ(read_vector(pair.server.fd(), into).status, Status::would_block);
}

TEST(Socket, UsesTheFirst64WriteAnd4ReadElements) {
  const Pair pair = connect_pair();
  const std::vector<Bytes> parts(100, as_bytes("x"));
  EXPECT_EQ(write_vector(pair.client.fd(), parts).bytes, kMaxWriteVector);
  ASSERT_TRUE(wait_for(pair.server.fd(), Interest::readable));
  std::uint8_t bytes[6];
  std::vector<MutableBytes> into;
  for (auto& byte : bytes) {
    into.emplace_back(&byte, 1);
  }
  EXPECT_EQ(read_vector(pair.server.fd(), into).bytes, kMaxReadVector);
}

TEST(Socket, NothingToMoveIsDoneAndNotTheEnd) {
  const Pair pair = connect_pair();
  EXPECT_EQ(read_some(pair.client.fd(), {}).status, Status::done);
  EXPECT_EQ(read_vector(pair.client.fd(), {}).status, Status::done);
  EXPECT_EQ(write_some(pair.client.fd(), {}).status, Status::done);
  EXPECT_EQ(write_vector(pair.client.fd(), {}).status, Status::done);
}

TEST(Socket, WriteWouldBlockWhenThePeerDoesNotReadAndFailsWithoutSignalWhenItIsGone) {
  Pair pair = connect_pair({.send_buffer = 4096, .receive_buffer = 4096});
  const std::string block(65536, 'x');
  IoResult written;
  do {
    written = write_some(pair.client.fd(), as_bytes(block));
  } while (written.status == Status::done);
  EXPECT_EQ(written.status, Status::would_block);

  pair.server.close();  // unread bytes: the peer answers with a reset
  ASSERT_TRUE(wait_for(pair.client.fd(), Interest::readable));
  do {
    written = write_some(pair.client.fd(), as_bytes(block));
  } while (written.status != Status::failed);
  EXPECT_EQ(make_error(written.os_errno, "").code(), Errc::connection_failed);
}

TEST(Socket, KnowsTheBytesThatThePeersSystemHasNotTaken) {
  Pair pair = connect_pair({.send_buffer = 65536, .receive_buffer = 4096});
  EXPECT_EQ(unacknowledged_bytes(pair.client.fd()), 0u);
  const std::string block(65536, 'x');
  const auto fill = [&] {
    while (write_some(pair.client.fd(), as_bytes(block)).status == Status::done) {
    }
  };
  fill();
  EXPECT_GT(unacknowledged_bytes(pair.client.fd()), 0u);
  std::uint8_t taken[4096];
  const Instant end = now() + kPatience;
  while (unacknowledged_bytes(pair.client.fd()) != 0 && now() < end) {
    (void)read_some(pair.server.fd(), taken);
  }
  EXPECT_EQ(unacknowledged_bytes(pair.client.fd()), 0u);
  fill();
  shutdown_write(pair.client.fd());  // the end waits after the bytes
  EXPECT_GT(unacknowledged_bytes(pair.client.fd()), 0u);
  pair.server.close();  // unread bytes: the peer answers with a reset
  ASSERT_TRUE(wait_for(pair.client.fd(), Interest::readable));
  EXPECT_EQ(unacknowledged_bytes(pair.client.fd()), 0u);

  int ends[2] = {-1, -1};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
  const Fd near(ends[0]);
  const Fd far(ends[1]);
  EXPECT_EQ(write_some(near.fd(), as_bytes("unread")).bytes, 6u);
  EXPECT_EQ(unacknowledged_bytes(near.fd()), 0u);  // the peer has them already
  EXPECT_EQ(unacknowledged_bytes(-1), 0u);
}

TEST(Socket, AppliesItsOptions) {
  const SocketOptions options{.send_buffer = 20000,
                              .receive_buffer = 30000,
                              .tos = 0x10,
                              .keepalive = 1,
                              .keepalive_count = 3,
                              .keepalive_idle = 40,
                              .keepalive_interval = 5,
                              .user_timeout = 1234};
  const Pair pair = connect_pair(options);
  ASSERT_TRUE(tune_tcp(pair.server.fd(), options));
  for (const Fd* fd : {&pair.client, &pair.server}) {
    EXPECT_EQ(option_of(*fd, IPPROTO_TCP, TCP_NODELAY), 1);
    EXPECT_EQ(option_of(*fd, SOL_SOCKET, SO_SNDBUF), 40000);  // Linux doubles it for its bookkeeping
    EXPECT_EQ(option_of(*fd, SOL_SOCKET, SO_RCVBUF), 60000);
    EXPECT_EQ(option_of(*fd, IPPROTO_IP, IP_TOS), 0x10);
    EXPECT_EQ(option_of(*fd, SOL_SOCKET, SO_KEEPALIVE), 1);
    EXPECT_EQ(option_of(*fd, IPPROTO_TCP, TCP_KEEPCNT), 3);
    EXPECT_EQ(option_of(*fd, IPPROTO_TCP, TCP_KEEPIDLE), 40);
    EXPECT_EQ(option_of(*fd, IPPROTO_TCP, TCP_KEEPINTVL), 5);
    EXPECT_EQ(option_of(*fd, IPPROTO_TCP, TCP_USER_TIMEOUT), 1234);
  }
  EXPECT_EQ(option_of(connect_pair().client, SOL_SOCKET, SO_KEEPALIVE), 0);
}

TEST(Socket, KnowsBothEnds) {
  const Pair pair = connect_pair();
  EXPECT_EQ(*local_address(pair.client.fd()), *peer_address(pair.server.fd()));
  EXPECT_EQ(*peer_address(pair.client.fd()), *local_address(pair.listener.fd()));
  EXPECT_EQ(peer_address(pair.listener.fd()).error().code(), Errc::connection_failed);
}

TEST(Socket, ConnectsFromTheChosenSource) {
  const Fd listener = std::move(open_tcp_listener(loopback(0), {})).value();
  const auto to = local_address(listener.fd()).value();
  const auto source = *SocketAddress::parse_numeric("127.0.0.2", 0);
  const Connecting connecting = std::move(open_tcp_connection(to, &source, {})).value();
  ASSERT_TRUE(wait_for(listener.fd(), Interest::readable));
  const Fd server = std::move(accept_connection(listener.fd())).value();
  EXPECT_EQ(peer_address(server.fd())->host_text(), "127.0.0.2");

  const auto foreign = *SocketAddress::parse_numeric("192.0.2.1", 0);
  EXPECT_EQ(open_tcp_connection(to, &foreign, {}).error().code(), Errc::address_unavailable);
}

TEST(Socket, SecondListenerIsAddressInUse) {
  const Fd listener = std::move(open_tcp_listener(loopback(0), {})).value();
  EXPECT_EQ(open_tcp_listener(*local_address(listener.fd()), {}).error().code(), Errc::address_in_use);
  EXPECT_EQ(open_tcp_listener(*SocketAddress::parse_numeric("192.0.2.1", 0), {}).error().code(),
            Errc::address_unavailable);
}

// Binds any port of [from, to], as the kernel does for a program that asks for port 0 (IP_LOCAL_PORT_RANGE, ip(7)).
Result<void> bind_any_of(std::uint16_t from, std::uint16_t to) {
  constexpr int kLocalPortRange = 51;
  const std::uint32_t range = std::uint32_t{to} << 16 | from;
  const Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  constexpr int kOn = 1;
  EXPECT_EQ(::setsockopt(fd.fd(), SOL_SOCKET, SO_REUSEADDR, &kOn, sizeof kOn), 0);
  WEFT_TRY(checked_call("set the range",
                        [&] { return ::setsockopt(fd.fd(), IPPROTO_IP, kLocalPortRange, &range, sizeof range); }));
  sockaddr_in any{};
  any.sin_family = AF_INET;
  any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  WEFT_TRY(checked_call("bind", [&] { return ::bind(fd.fd(), reinterpret_cast<sockaddr*>(&any), sizeof any); }));
  return {};
}

TEST(Socket, AReservedPortIsForTheServerThatNamesIt) {
  const Fd reserved = std::move(reserve_tcp_port()).value();
  const std::uint16_t port = local_address(reserved.fd())->port();
  const auto taken = bind_any_of(port, port);  // kernels before 6.3 have no such range
  ASSERT_FALSE(taken);
  EXPECT_TRUE(taken.error() == Errc::address_in_use || taken.error() == Errc::not_supported);
  for (int start = 0; start < 2; ++start) {  // and again after it ended
    const auto listener = open_tcp_listener(loopback(port), {});
    ASSERT_TRUE(listener) << listener.error().message();
    EXPECT_TRUE(open_tcp_connection(loopback(port), nullptr, {}));
  }
}

TEST(Socket, ConnectWhereNobodyListensFails) {
  std::uint16_t port = 0;
  {
    const Fd listener = std::move(open_tcp_listener(loopback(0), {})).value();
    port = local_address(listener.fd())->port();
  }
  const auto connecting = open_tcp_connection(loopback(port), nullptr, {});
  if (connecting) {  // in progress; refused later
    ASSERT_TRUE(wait_for(connecting->fd.fd(), Interest::writable));
    EXPECT_EQ(finish_connect(connecting->fd.fd()).error().code(), Errc::connection_failed);
  } else {
    EXPECT_EQ(connecting.error().code(), Errc::connection_failed);
  }
}

TEST(Socket, ConnectionToItselfIsAFailure) {
  std::uint16_t port = 0;
  {
    const Fd listener = std::move(open_tcp_listener(loopback(0), {})).value();
    port = local_address(listener.fd())->port();
  }
  const SocketAddress self = loopback(port);
  const Connecting connecting = std::move(open_tcp_connection(self, &self, {})).value();
  ASSERT_TRUE(wait_for(connecting.fd.fd(), Interest::writable));
  EXPECT_EQ(finish_connect(connecting.fd.fd()).error().code(), Errc::connection_failed);
}

TEST(Socket, FinishBeforeTheConnectIsOverWouldBlock) {
  const Fd unconnected(::socket(AF_INET, SOCK_STREAM, 0));
  EXPECT_EQ(finish_connect(unconnected.fd()).error().code(), Errc::would_block);
}

TEST(Socket, ASocketHasTheErrorOfAResetOnce) {
  Pair pair = connect_pair();
  EXPECT_EQ(take_error(pair.client.fd()), Errc::ok);
  EXPECT_EQ(take_error(-1), Errc::ok);
  reset_at_close(pair.server.fd());
  pair.server.close();
  ASSERT_TRUE(wait_for(pair.client.fd(), Interest::readable));
  EXPECT_EQ(take_error(pair.client.fd()), Errc::connection_failed);
  EXPECT_EQ(take_error(pair.client.fd()), Errc::ok);
}

TEST(Socket, AcceptTellsEmptyFromExhausted) {
  const Fd listener = std::move(open_tcp_listener(loopback(0), {})).value();
  EXPECT_EQ(accept_connection(listener.fd()).error().code(), Errc::would_block);

  const auto to = local_address(listener.fd()).value();
  const Connecting connecting = std::move(open_tcp_connection(to, nullptr, {})).value();
  ASSERT_TRUE(wait_for(listener.fd(), Interest::readable));
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{.rlim_cur = 0, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const auto exhausted = accept_connection(listener.fd());
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(exhausted.error().code(), Errc::resource_exhausted);
  EXPECT_TRUE(accept_connection(listener.fd()));  // the connection has waited
}

TEST(Socket, UnixConnectionsNeedAListenerWithRoom) {
  const auto name = SocketAddress::from_abstract("weft-socket-test-" + std::to_string(::getpid())).value();
  EXPECT_EQ(open_unix_connection(name, {}).error().code(), Errc::connection_failed);
  EXPECT_EQ(open_unix_connection(*SocketAddress::from_path("/no/such/path"), {}).error().code(),
            Errc::connection_failed);

  const Fd listener = std::move(open_unix_listener(name, {.backlog = 0})).value();
  std::vector<Connecting> waiting;
  for (;;) {
    auto connecting = open_unix_connection(name, {});
    if (!connecting) {
      EXPECT_EQ(connecting.error().code(), Errc::would_block);
      break;
    }
    EXPECT_TRUE(connecting->connected);
    EXPECT_TRUE(finish_connect(connecting->fd.fd()));
    waiting.push_back(std::move(connecting).value());
  }
  EXPECT_FALSE(waiting.empty());
  EXPECT_TRUE(accept_connection(listener.fd()));
}

TEST(Socket, AnIpv4AddressInIpv6FormTakesAListener) {
  const auto listener = open_tcp_listener(*SocketAddress::parse_numeric("::ffff:127.0.0.1", 0), {});
  if (!listener && listener.error() == Errc::not_supported) {
    GTEST_SKIP() << "no IPv6 here";
  }
  ASSERT_TRUE(listener) << listener.error().message();
  const std::uint16_t port = local_address(listener->fd())->port();
  EXPECT_TRUE(open_tcp_connection(*SocketAddress::parse_numeric("127.0.0.1", port), nullptr, {}));
}

TEST(Socket, Ipv6ListenerTakesIpv4OnlyWhenAsked) {
  for (const bool ipv6 : {false, true}) {
    const auto listener = open_tcp_listener(SocketAddress::any(true, 0), {.ipv6 = ipv6});
    if (!listener) {
      GTEST_SKIP() << "no IPv6 here";
    }
    EXPECT_EQ(option_of(*listener, IPPROTO_IPV6, IPV6_V6ONLY), ipv6 ? 0 : 1);
  }
}

// By the numbers that this machine can bind to: none without AF_VSOCK.
class VsockSocket : public testing::TestWithParam<std::uint32_t> {
 protected:
  [[nodiscard]] static Result<Fd> listen(const SocketOptions& options = {}) {
    return open_vsock_listener(SocketAddress::from_vsock(GetParam(), SocketAddress::kVsockAny), options);
  }
};
std::vector<std::uint32_t> vsock_numbers() {
  std::vector<std::uint32_t> numbers;
  for (const std::uint32_t number : {SocketAddress::kVsockAny, SocketAddress::kVsockLoopback}) {
    if (open_vsock_listener(SocketAddress::from_vsock(number, SocketAddress::kVsockAny), {})) {
      numbers.push_back(number);
    }
  }
  return numbers;
}
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(VsockSocket);
INSTANTIATE_TEST_SUITE_P(Here, VsockSocket, testing::ValuesIn(vsock_numbers()), [](const auto& row) {
  return std::string(row.param == SocketAddress::kVsockAny ? "Any" : "Loopback");
});

TEST_P(VsockSocket, AListenerHasAPortOfItsOwn) {
  const Fd listener = std::move(listen()).value();
  const SocketAddress at = local_address(listener.fd()).value();
  EXPECT_TRUE(at.is_vsock());
  EXPECT_EQ(at.host_text(), GetParam() == SocketAddress::kVsockAny ? "*" : "1");
  EXPECT_EQ(open_vsock_listener(at, {}).error().code(), Errc::address_in_use);
  EXPECT_EQ(accept_connection(listener.fd()).error().code(), Errc::would_block);
}

TEST_P(VsockSocket, TheReceiveBufferMayExceedTheSystemsDefaultBound) {
  const Fd listener = std::move(listen({.receive_buffer = 1 << 20})).value();
  std::uint64_t bytes = 0;
  socklen_t size = sizeof bytes;
  ASSERT_EQ(::getsockopt(listener.fd(), AF_VSOCK, SO_VM_SOCKETS_BUFFER_SIZE, &bytes, &size), 0);
  EXPECT_EQ(bytes, 1U << 20);
}

TEST_P(VsockSocket, IsAdoptedAsAVsockOnly) {
  Fd listener = std::move(listen()).value();
  EXPECT_EQ(adopt_listener(listener.fd(), &SocketAddress::is_unix).error(), Errc::invalid_argument);
  EXPECT_EQ(adopt_listener(listener.fd(), &SocketAddress::is_ip).error(), Errc::invalid_argument);
  const int fd = listener.release();
  const auto adopted = adopt_listener(fd, &SocketAddress::is_vsock);
  ASSERT_TRUE(adopted) << adopted.error().message();
  EXPECT_EQ(adopted->fd(), fd);
}

}  // namespace
}  // namespace weft::sys
