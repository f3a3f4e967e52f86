// SPDX-License-Identifier: MIT
// A peer that breaks the protocol loses its connection, for a reason that the monitor reports; the socket and its other
// peers continue. A caller that misuses the API gets the Errc that the header names.
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "weft/weft.h"
#include <gtest/gtest.h>

namespace weft {
namespace {

using std::chrono::seconds;
constexpr seconds kPatience{10};
using namespace std::string_literals;

// The greeting of a ZMTP 3.1 peer with the NULL mechanism.
std::string greeting() { return "\xff\0\0\0\0\0\0\0\1\x7f\3\1NULL"s + std::string(48, '\0'); }

std::string command(const std::string& name, const std::string& data) {
  const std::string body = static_cast<char>(name.size()) + name + data;
  return "\4"s + static_cast<char>(body.size()) + body;
}

std::string ready(const std::string& type) {
  return command("READY", "\xbSocket-Type\0\0\0"s + static_cast<char>(type.size()) + type);
}

std::string frame(const std::string& body, bool more = false) {
  return (more ? "\1"s : "\0"s) + static_cast<char>(body.size()) + body;
}

// RawPeer: a connection that sends any bytes.
class RawPeer {
 public:
  explicit RawPeer(const std::string& endpoint) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<std::uint16_t>(std::stoi(endpoint.substr(endpoint.rfind(':') + 1))));
    connected_ = ::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
    const timeval patience{10, 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  }
  RawPeer(const RawPeer&) = delete;
  RawPeer& operator=(const RawPeer&) = delete;
  ~RawPeer() { ::close(fd_); }

  [[nodiscard]] bool connected() const { return connected_; }
  // False once the other side has closed.
  bool send(const std::string& bytes) {
    for (std::size_t sent = 0; sent < bytes.size();) {
      const ssize_t count = ::send(fd_, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
      if (count <= 0) {
        return false;
      }
      sent += static_cast<std::size_t>(count);
    }
    return true;
  }
  // Reads until the other side closes; false: the other side does not close.
  bool sees_end() {
    std::array<char, 4096> block{};
    for (;;) {
      const ssize_t count = ::recv(fd_, block.data(), block.size(), 0);
      if (count <= 0) {
        return count == 0 || errno == ECONNRESET;
      }
    }
  }

 private:
  int fd_;
  bool connected_ = false;
};

// A bound PULL socket with one good peer, before and after the bad one.
class BadPeer : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(pull_.set(option::max_message_size, 1000));
    ASSERT_TRUE(pull_.set(option::receive_timeout, kPatience));
    for (Socket* const socket : {&pull_, &push_}) {
      ASSERT_TRUE(socket->set(option::handshake_timeout, kPatience));  // a busy machine may need that long
    }
    ASSERT_TRUE(pull_.watch_events());
    const auto bound = pull_.bind("tcp://127.0.0.1:*");
    ASSERT_TRUE(bound) << bound.error().message();
    endpoint_ = *bound;
    ASSERT_TRUE(push_.connect(endpoint_));
    wait_for_handshake();
    good_peer_works();
  }

  void TearDown() override { good_peer_works(); }

  void good_peer_works() {
    ASSERT_TRUE(push_.send("still here"));
    const auto message = pull_.recv();
    ASSERT_TRUE(message) << message.error().message();
    EXPECT_EQ(message->text(), "still here");
  }

  static Duration time_until(std::chrono::steady_clock::time_point end) {
    return std::max<Duration>(end - std::chrono::steady_clock::now(), Duration(0));
  }
  void wait_for_handshake() {
    for (const auto end = std::chrono::steady_clock::now() + kPatience;;) {
      const auto event = pull_.next_event(time_until(end));
      ASSERT_TRUE(event) << "no handshake in time";
      if (event->kind == EventKind::handshake_succeeded) {
        return;
      }
    }
  }

  // The reason of the next end of a connection, before or after its handshake.
  Error next_end(EventKind kind) {
    for (const auto end = std::chrono::steady_clock::now() + kPatience;;) {
      const auto event = pull_.next_event(time_until(end));
      if (!event || event->kind == EventKind::handshake_failed || event->kind == EventKind::disconnected) {
        EXPECT_TRUE(event) << "no end in time";
        EXPECT_TRUE(!event || event->kind == kind);
        return event ? event->reason : event.error();
      }
    }
  }

  void expect_refused(const std::string& bytes, EventKind kind, Errc reason) {
    RawPeer peer(endpoint_);
    ASSERT_TRUE(peer.connected());
    peer.send(bytes);
    EXPECT_TRUE(peer.sees_end());
    const Error error = next_end(kind);
    EXPECT_EQ(error.code(), reason) << error.message();
    EXPECT_STRNE(error.text(), "");
  }

  Context context_;
  Socket pull_ = *context_.socket(SocketType::pull);
  Socket push_ = *context_.socket(SocketType::push);
  std::string endpoint_;
};

TEST_F(BadPeer, SendsBytesOfAnotherProtocol) {
  expect_refused("GET / HTTP/1.1\r\nHost: nobody\r\nAccept: nothing at all, really\r\n\r\n",
                 EventKind::handshake_failed, Errc::protocol_error);
}

TEST_F(BadPeer, SendsAFrameBeyondTheLimit) {
  expect_refused(greeting() + ready("PUSH") + "\2\0\0\0\0\0\0\3\xe9"s, EventKind::disconnected,
                 Errc::message_too_large);
}

TEST_F(BadPeer, ClaimsAFrameOfAllMemory) {
  expect_refused(greeting() + ready("PUSH") + "\2\x7f\xff\xff\xff\xff\xff\xff\xff"s, EventKind::disconnected,
                 Errc::message_too_large);
}

TEST_F(BadPeer, SendsAMalformedFrame) {
  expect_refused(greeting() + ready("PUSH") + "\xf8\1x"s, EventKind::disconnected, Errc::protocol_error);
}

TEST_F(BadPeer, SendsAMalformedCommand) {
  expect_refused(greeting() + ready("PUSH") + "\4\3\x7fPI"s, EventKind::disconnected, Errc::protocol_error);
}

TEST_F(BadPeer, SendsAMessageBeforeReady) {
  expect_refused(greeting() + frame("too early"), EventKind::handshake_failed, Errc::protocol_error);
}

TEST_F(BadPeer, IsOfATypeThatCannotTalkToOurs) {
  expect_refused(greeting() + ready("SUB"), EventKind::handshake_failed, Errc::incompatible_peer);
}

TEST_F(BadPeer, CannotForgeItsUserIdOrAddress) {
  RawPeer peer(endpoint_);
  ASSERT_TRUE(peer.send(greeting() +
                        command("READY",
                                "\xbSocket-Type\0\0\0\4PUSH"
                                "\7User-Id\0\0\0\4root"
                                "\xcPeer-Address\0\0\0\7"
                                "6.6.6.6"
                                "\6X-Mine\0\0\0\3yes"s) +
                        frame("trust me")));
  const auto message = pull_.recv();
  ASSERT_TRUE(message);
  EXPECT_EQ(message->text(), "trust me");
  EXPECT_EQ(message->peer_property("User-Id"), nullptr);
  EXPECT_STREQ(message->peer_property("Peer-Address"), "127.0.0.1");
  EXPECT_STREQ(message->peer_property("X-Mine"), "yes");
}

TEST_F(BadPeer, GoesInTheMiddleOfTheGreeting) {
  {
    RawPeer peer(endpoint_);
    ASSERT_TRUE(peer.send(greeting().substr(0, 11)));
  }
  EXPECT_FALSE(next_end(EventKind::handshake_failed) == Errc::ok);
}

TEST_F(BadPeer, SaysNothing) {
  ASSERT_TRUE(pull_.set(option::handshake_timeout, std::chrono::milliseconds(200)));
  const auto bound = pull_.bind("tcp://127.0.0.1:*");
  ASSERT_TRUE(bound) << bound.error().message();
  RawPeer peer(*bound);
  EXPECT_TRUE(peer.sees_end());
  EXPECT_EQ(next_end(EventKind::handshake_failed).code(), Errc::timed_out);
}

TEST_F(BadPeer, NeverEndsItsMultipartMessage) {
  RawPeer peer(endpoint_);
  ASSERT_TRUE(peer.send(greeting() + ready("PUSH")));
  std::string parts;
  for (int i = 0; i < 1000; ++i) {
    parts += frame("x", true);
  }
  for (int i = 0; i < 1000; ++i) {  // a million parts, far beyond the bound
    ASSERT_TRUE(peer.send(parts));
  }
  ASSERT_TRUE(peer.send(frame("end", false) + frame("next", false)));
  const auto next = pull_.recv();  // the peer loses that message alone
  ASSERT_TRUE(next) << next.error().message();
  EXPECT_EQ(next->text(), "next");
  const Statistics counts = pull_.statistics().value();
  EXPECT_EQ(counts.bounds_exceeded, 1u);
  EXPECT_EQ(counts.dropped_excess, 1u);
}

TEST_F(BadPeer, GoesInTheMiddleOfAMessage) {
  {
    RawPeer peer(endpoint_);
    ASSERT_TRUE(peer.send(greeting() + ready("PUSH") + frame("first", true) + "\0\5ha"s));
    wait_for_handshake();
  }
  EXPECT_FALSE(next_end(EventKind::disconnected) == Errc::ok);
}

// --- wrong uses ---

class Misuse : public testing::Test {
 protected:
  Context context_;
};

TEST_F(Misuse, OfEndpointsIsRefused) {
  Socket socket = *context_.socket(SocketType::pull);
  for (const char* text : {"", "tcp", "tcp://", "tcp://127.0.0.1", "tcp://127.0.0.1:99999", "tcp://127.0.0.1:x",
                           "ipc://", "inproc://", "tcp://:5"}) {
    EXPECT_EQ(socket.connect(text).error().code(), Errc::malformed_endpoint) << text;
  }
  EXPECT_EQ(socket.connect("carrier-pigeon://roof").error().code(), Errc::unknown_transport);
  EXPECT_EQ(socket.connect("tcp://127.0.0.1:*").error().code(), Errc::malformed_endpoint);
  EXPECT_EQ(socket.bind("tcp://192.0.2.1:*").error().code(), Errc::address_unavailable);
  EXPECT_EQ(socket.unbind("tcp://127.0.0.1:1").error().code(), Errc::no_such_endpoint);
  EXPECT_EQ(socket.disconnect("tcp://127.0.0.1:1").error().code(), Errc::no_such_endpoint);
}

TEST_F(Misuse, BindingToAPortInUseIsRefused) {
  Socket first = *context_.socket(SocketType::pull);
  Socket second = *context_.socket(SocketType::pull);
  for (const char* text : {"tcp://127.0.0.1:*", "ipc://*", "inproc://taken"}) {
    const auto bound = first.bind(text);
    ASSERT_TRUE(bound) << bound.error().message();
    EXPECT_EQ(second.bind(*bound).error().code(), Errc::address_in_use) << text;
  }
}

TEST_F(Misuse, OfOptionsIsRefused) {
  Socket socket = *context_.socket(SocketType::pull);
  EXPECT_EQ(socket.set("no_such_option", "1").error().code(), Errc::unknown_option);
  EXPECT_EQ(socket.set("send_high_water_mark", "many").error().code(), Errc::invalid_argument);
  EXPECT_EQ(socket.set("send_high_water_mark", "-1").error().code(), Errc::invalid_argument);
  EXPECT_EQ(socket.set(option::routing_id, std::string(256, 'x')).error().code(), Errc::invalid_argument);
  EXPECT_EQ(socket.options()->send_high_water_mark, 1000);
}

TEST_F(Misuse, OfAPatternIsRefused) {
  Socket push = *context_.socket(SocketType::push);
  Socket pull = *context_.socket(SocketType::pull);
  Socket router = *context_.socket(SocketType::router);
  EXPECT_EQ(push.recv().error().code(), Errc::not_supported);
  EXPECT_EQ(pull.send("x").error().code(), Errc::not_supported);
  EXPECT_EQ(push.subscribe("x").error().code(), Errc::not_supported);
  EXPECT_EQ(push.try_send(as_bytes("x")).error().code(), Errc::would_block);
  ASSERT_TRUE(router.send("nobody", More::yes));
  ASSERT_TRUE(router.send("is dropped, and counted"));
  EXPECT_EQ(router.statistics()->dropped, 1U);
  ASSERT_TRUE(router.set(option::router_mandatory, true));
  EXPECT_EQ(router.send("nobody", More::yes).error().code(), Errc::unreachable);
}

TEST_F(Misuse, OfAClosedSocketIsRefused) {
  Socket closed = *context_.socket(SocketType::pair);
  closed.close();
  closed.close();
  Socket empty;
  for (Socket* socket : {&closed, &empty}) {
    EXPECT_EQ(socket->send("x").error().code(), Errc::closed);
    EXPECT_EQ(socket->recv().error().code(), Errc::closed);
    EXPECT_EQ(socket->bind("tcp://127.0.0.1:*").error().code(), Errc::closed);
    EXPECT_EQ(socket->connect("tcp://127.0.0.1:1").error().code(), Errc::closed);
    EXPECT_EQ(socket->set(option::linger, seconds(1)).error().code(), Errc::closed);
    EXPECT_EQ(socket->subscribe("x").error().code(), Errc::closed);
    EXPECT_EQ(socket->next_event(Duration(0)).error().code(), Errc::closed);
  }
}

TEST_F(Misuse, OfAContextThatWasShutDownIsRefused) {
  Socket socket = *context_.socket(SocketType::pair);
  context_.shut_down();
  EXPECT_EQ(socket.send("x").error().code(), Errc::terminated);
  EXPECT_EQ(socket.recv().error().code(), Errc::terminated);
  EXPECT_EQ(context_.socket(SocketType::pair).error().code(), Errc::terminated);
}

}  // namespace
}  // namespace weft
