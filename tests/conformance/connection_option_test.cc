// SPDX-License-Identifier: MIT
// Options that change the peers that a socket connects to, the time for an attempt, and the peers that it accepts.
#include "tests/conformance/conformance.h"
#include "weft/net/listener.h"
#include "weft/sys/socket.h"

namespace weft::conformance {
namespace {

class ConnectionOption : public Conformance {
 protected:
  [[nodiscard]] static bool is_tcp() { return scheme() != "ipc://"; }
  [[nodiscard]] static std::string scheme() {
    const std::string endpoint = GetParam().endpoint;
    return endpoint.substr(0, endpoint.find("://") + 3);
  }

  [[nodiscard]] std::string own_uid() const {
    const std::string path = directory_ + "/self";
    const auto at = *sys::SocketAddress::from_path(path);
    const auto listener = sys::open_unix_listener(at, {});
    const auto connection = sys::open_unix_connection(at, {});
    EXPECT_TRUE(sys::remove_file(path));
    return std::to_string(sys::peer_credentials(connection->fd.fd())->uid);
  }
  [[nodiscard]] Socket make_watched(SocketType type) {
    Socket socket = make(type);
    EXPECT_TRUE(socket.watch_events());
    return socket;
  }
};
WEFT_TRANSPORTS_WHERE(ConnectionOption, over_streams);
class ConnectionOptionOverTcp : public ConnectionOption {};
WEFT_TRANSPORTS_WHERE(ConnectionOptionOverTcp, over_tcp);

TEST_P(ConnectionOptionOverTcp, AnUnansweredAttemptEndsInTimeAndIsMadeAgain) {
  // A listener that accepts no connection, and whose queue is full: the kernel lets further attempts hang.
  sys::SocketOptions narrow;
  narrow.backlog = 0;
  const auto listener = sys::open_tcp_listener(*sys::SocketAddress::parse_numeric("127.0.0.1", 0), narrow);
  ASSERT_TRUE(listener);
  const auto address = sys::local_address(listener->fd());
  std::vector<sys::Connecting> fillers;
  for (int i = 0; i < 4; ++i) {
    fillers.push_back(std::move(sys::open_tcp_connection(*address, nullptr, {})).value());
  }
  Socket socket = make_watched(SocketType::push);
  ASSERT_TRUE(socket.set(option::connect_timeout, 20ms));
  connect(socket, scheme() + address->to_text());
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(wait_for_event(socket, EventKind::connect_failed).reason, Errc::timed_out);
  }
}

TEST_P(ConnectionOption, AConnectTimeoutDoesNotEndWhatIsConnected) {
  Socket pull = make(SocketType::pull);
  Socket push = make_watched(SocketType::push);
  ASSERT_TRUE(push.set(option::connect_timeout, 1ms));
  connect(push, bind(pull));
  send(push, "a");
  EXPECT_EQ(recv_text(pull), "a");
  while (const auto next = push.next_event(20ms)) {
    EXPECT_NE(next->kind, EventKind::disconnected);
  }
}

TEST_P(ConnectionOption, ARefusedConnectIsNotRetriedIfTheOptionSaysSo) {
  Socket push = make_watched(SocketType::push);
  ASSERT_TRUE(push.set(option::reconnect_stop, 1));
  ASSERT_TRUE(push.set(option::linger, Duration(-1)));
  ASSERT_TRUE(push.set(option::send_high_water_mark, 0));  // a send finds no room only where it finds no peer
  connect(push, free_endpoint());
  (void)wait_for_event(push, EventKind::connect_failed);
  EXPECT_EQ(push.next_event(30ms).error(),
            Errc::timed_out);  // no event: the next attempt would be due after 2 ms
  const Instant end = sys::now() + kLong;
  while (push.try_send(as_bytes("for nobody")) && sys::now() < end) {  // the I/O thread gives up after its event
    EXPECT_EQ(push.next_event(1ms).error(), Errc::timed_out);
  }
  EXPECT_EQ(push.try_send(as_bytes("for nobody")).error(), Errc::would_block);
  push.close();  // the context would wait for ever if the connection lingered
}

TEST_P(ConnectionOption, AFailedHandshakeIsNotRetriedIfTheOptionSaysSo) {
  Socket pub = make(SocketType::pub);
  Socket push = make_watched(SocketType::push);
  ASSERT_TRUE(push.set(option::reconnect_stop, 2));
  connect(push, bind(pub));
  (void)wait_for_event(push, EventKind::handshake_failed);
  EXPECT_EQ(push.next_event(30ms).error(), Errc::timed_out);
}

class ConnectionFilter : public ConnectionOption {};
WEFT_TRANSPORTS_WHERE(ConnectionFilter, [](const Transport& row) { return row.streams && !over_vsock(row); });

TEST_P(ConnectionFilter, OnlyPeersThatTheFilterAdmitsAreAccepted) {
  Socket pull = make_watched(SocketType::pull);
  ASSERT_TRUE(pull.set(option::tcp_accept_filter, "10.255.255.0/24,::2"));
  ASSERT_TRUE(pull.set(option::ipc_filter, "uid:4294967000,pid:1"));
  Socket push = make(SocketType::push);
  connect(push, bind(pull));
  EXPECT_EQ(wait_for_event(pull, EventKind::accept_failed).reason, Errc::connection_failed);

  Socket open_pull = make(SocketType::pull);
  ASSERT_TRUE(open_pull.set(option::tcp_accept_filter, "10.255.255.0/24,127.0.0.0/9"));
  ASSERT_TRUE(open_pull.set(option::ipc_filter, "pid:4294967000,uid:" + own_uid()));
  Socket open_push = make(SocketType::push);
  connect(open_push, bind(open_pull));
  send(open_push, "welcome");
  EXPECT_EQ(recv_text(open_pull), "welcome");
}

TEST_P(ConnectionOption, AFilterThatDoesNotParseIsSaidByBind) {
  Socket pull = make(SocketType::pull);
  ASSERT_TRUE(pull.set(option::tcp_accept_filter, "everybody"));
  EXPECT_EQ(pull.bind(new_endpoint()).error(), Errc::invalid_argument);
}

TEST_P(ConnectionOption, ABoundDescriptorIsAdopted) {
  const net::Endpoint endpoint = *net::parse_endpoint(new_endpoint(), true);
  const bool is_vsock = over_vsock(GetParam());
  const sys::SocketAddress at = is_tcp()   ? *sys::SocketAddress::parse_numeric("127.0.0.1", 0)
                                : is_vsock ? sys::SocketAddress::from_vsock(1, sys::SocketAddress::kVsockAny)
                                           : *sys::SocketAddress::from_path(endpoint.path);
  auto listener = is_tcp()   ? sys::open_tcp_listener(at, {})
                  : is_vsock ? sys::open_vsock_listener(at, {})
                             : sys::open_unix_listener(at, {});
  ASSERT_TRUE(listener);
  const std::string exact =
      scheme() + sys::local_address(listener->fd())->to_text() + (is_tcp() ? endpoint.path : std::string());
  Socket pull = make(SocketType::pull);
  ASSERT_TRUE(pull.set(option::use_fd, listener->release()));
  secure_server(pull);
  const auto bound = pull.bind(is_tcp() || is_vsock ? exact : endpoint.text());
  ASSERT_TRUE(bound) << bound.error().message();
  EXPECT_EQ(*bound, exact);
  EXPECT_EQ(*pull.get(option::use_fd), -1);  // the next bind opens a descriptor of its own
  Socket push = make(SocketType::push);
  connect(push, exact);
  send(push, "through it");
  EXPECT_EQ(recv_text(pull), "through it");
  ASSERT_TRUE(pull.unbind(exact));
  if (!is_tcp() && !is_vsock) {
    EXPECT_TRUE(sys::remove_file(endpoint.path));  // the file still belongs to its maker
  }
}

TEST_P(ConnectionOption, ADescriptorThatDoesNotListenIsNotAdopted) {
  Socket pull = make(SocketType::pull);
  ASSERT_TRUE(pull.set(option::use_fd, 0));
  EXPECT_EQ(pull.bind(new_endpoint()).error(), Errc::invalid_argument);
  ASSERT_TRUE(pull.set(option::use_fd, 123'456));
  EXPECT_EQ(pull.bind(new_endpoint()).error(), Errc::invalid_argument);
}

TEST_P(ConnectionOptionOverTcp, AnInterfaceThatIsNotThereIsSaidByBind) {
  Socket pull = make(SocketType::pull);
  ASSERT_TRUE(pull.set(option::bind_to_device, "no-such-device"));
  EXPECT_FALSE(pull.bind(new_endpoint()));
  ASSERT_TRUE(pull.set(option::bind_to_device, "lo"));
  secure_server(pull);
  const auto bound = pull.bind(new_endpoint());
  if (!bound) {
    GTEST_SKIP() << "this system lets only the superuser choose: " << bound.error().message();
  }
  Socket push = make(SocketType::push);
  connect(push, *bound);
  send(push, "over it");
  EXPECT_EQ(recv_text(pull), "over it");
}

}  // namespace
}  // namespace weft::conformance
