// SPDX-License-Identifier: MIT
// A socket at ws://, and a peer that writes HTTP and WebSocket frames by hand: a browser, and a program that imitates
// one.
#include <sys/socket.h>

#include <atomic>
#include <thread>

#include "tests/conformance/conformance.h"
#include "tests/conformance/wire.h"
#include "tests/support/sanitized.h"
#include "weft/net/ws/accept_key.h"
#include "weft/net/ws/test_frames.h"

namespace weft::conformance {
namespace {

using net::ws::test::frame;
using net::ws::test::message;

std::string as_key(const zmtp::CurveKey& key) { return std::string(as_text(key)); }

constexpr std::string_view kRequest =
    "GET /any HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: ZWS2.0\r\nSec-WebSocket-Version: 13\r\n"
    "Origin: http://h\r\nSec-WebSocket-Extensions: permessage-deflate\r\n\r\n";
constexpr std::string_view kAnswer =
    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\nSec-WebSocket-Protocol: ZWS2.0\r\n\r\n";
const std::string kNoIdentity = message(true, 0, "");

class WebSocket : public Conformance {
 protected:
  // A peer of `socket` that has only tcp.
  BytePeer dial(Socket& socket) {
    if (endpoint_.empty()) {
      EXPECT_TRUE(socket.watch_events());
      endpoint_ = bind(socket);
    }
    return BytePeer::dial("tcp" + endpoint_.substr(2, endpoint_.rfind('/') - 2));
  }
  // The same after the upgrade of the sub-protocol ZWS2.0, as a browser makes it.
  BytePeer browse(Socket& socket) {
    BytePeer peer = dial(socket);
    peer.write(std::string(kRequest) + kNoIdentity);
    EXPECT_EQ(peer.read(kAnswer.size() + 3), std::string(kAnswer) + message(false, 0, ""));
    return peer;
  }
  void expect_end(Socket& socket, EventKind kind, Errc code, std::string_view text) {
    const MonitorEvent event = wait_for_event(socket, kind);
    EXPECT_EQ(event.reason.code(), code);
    EXPECT_EQ(event.reason.text() == nullptr ? "" : event.reason.text(), text);
  }

  std::string endpoint_;
};
bool plain_websocket(const Transport& transport) { return transport.websocket() && !transport.tls; }
WEFT_TRANSPORTS_WHERE(WebSocket, plain_websocket);

TEST_P(WebSocket, ABrowserSubscribesAndGetsWhatIsPublished) {
  Socket publisher = make(SocketType::xpub);
  BytePeer peer = browse(publisher);
  peer.write(message(true, 0, "\1news"));
  EXPECT_EQ(recv_text(publisher), "\1news");
  send(publisher, {"news", "today"});
  EXPECT_EQ(peer.read(15), message(false, 1, "news") + message(false, 0, "today"));
}

TEST_P(WebSocket, AByteAtATimeIsAsGoodAsAll) {
  Socket pull = make(SocketType::pull);
  BytePeer peer = dial(pull);
  for (const char byte : std::string(kRequest) + kNoIdentity + message(true, 0, "slow") + frame(true, 0x02, "\1fr") +
                             frame(true, 0x89, "ping") + frame(true, 0x80, "agments") + message(true, 0, "")) {
    peer.write(std::string_view(&byte, 1));
  }
  EXPECT_EQ(recv_text(pull), "slow");
  EXPECT_EQ(recv(pull), (Texts{"fragments", ""}));
  EXPECT_EQ(peer.read(kAnswer.size() + 9).substr(kAnswer.size()), message(false, 0, "") + frame(false, 0x8A, "ping"));
}

TEST_P(WebSocket, ABadUpgradeIsAnsweredAndTold) {
  Socket pull = make(SocketType::pull);
  const struct {
    std::string_view request;
    std::string_view status;
    std::string_view why;
  } cases[] = {
      {"GET / HTTP/1.1\r\nHost: h\r\n\r\n", "426", "the request asks for no WebSocket"},
      {"\xFF\1\1\1\1\1\1\1\1\x7F\3", "400", "the request for a WebSocket is no HTTP"},
      {"GET / HTTP/1.1\r\nHost: h\r\nUpgrade: \xC3(\r\n\r\n", "400",
       "a header of the WebSocket's upgrade is not UTF-8"},
  };
  for (const auto& [request, status, why] : cases) {
    BytePeer peer = dial(pull);
    peer.write(request);
    EXPECT_EQ(peer.read_to_end().substr(0, 12), "HTTP/1.1 " + std::string(status));
    const MonitorEvent event = wait_for_event(pull, EventKind::handshake_failed);
    EXPECT_EQ(event.reason.code(), Errc::protocol_error);
    EXPECT_EQ(event.reason.text(), why);
    EXPECT_EQ(event.detail, static_cast<std::uint32_t>(zmtp::Breach::websocket));
  }
  EXPECT_EQ(pull.statistics()->handshakes_failed, std::size(cases));
}

TEST_P(WebSocket, FragmentsOfAPeerThatDoesNotShakeHandsEndItsConnection) {
  Socket pull = make(SocketType::pull);
  BytePeer peer = dial(pull);
  std::string request(kRequest);
  request.replace(request.find("ZWS2.0"), 6, "ZWS2.0/NULL");
  peer.write(request + frame(true, 0x02, std::string(32'768, '\0')).substr(0, 8 + 11 * 1024));
  EXPECT_TRUE(peer.read_to_end().ends_with(frame(false, 0x88, "\x03\xF1")));
  expect_end(pull, EventKind::handshake_failed, Errc::message_too_large,
             "a WebSocket message in fragments exceeds its limit");
}

TEST_P(WebSocket, AMessageInFragmentsMayFollowTheHandshakeAtOnce) {
  Socket pull = make(SocketType::pull);
  BytePeer peer = dial(pull);
  const std::string half(500'000, 'x');
  peer.write(std::string(kRequest) + kNoIdentity + frame(true, 0x02, '\0' + half) + frame(true, 0x80, half));
  EXPECT_TRUE(recv_text(pull) == half + half);
}

TEST_P(WebSocket, ASlowUpgradeEndsInTime) {
  Socket pull = make(SocketType::pull);
  ASSERT_TRUE(pull.set(option::handshake_timeout, 30ms));
  BytePeer peer = dial(pull);
  peer.write(kRequest.substr(0, 40));
  EXPECT_EQ(peer.read_to_end(), "");
  expect_end(pull, EventKind::handshake_failed, Errc::timed_out, "handshake took too long");
}

TEST_P(WebSocket, ABrokenFrameEndsTheConnectionWithAStatusAndAReason) {
  Socket pull = make(SocketType::pull);
  ASSERT_TRUE(pull.set(option::heartbeat_interval, 0ms));  // the silence after the fault does not end it
  const struct {
    std::string bytes;
    std::string_view status;
    std::string_view why;
  } cases[] = {
      {frame(true, 0x81, "text"), "\x03\xEB", "a WebSocket text message"},
      {frame(false, 0x82, "x"), "\x03\xEA", "a WebSocket client's frame without a mask"},
      {frame(true, 0x09, ""), "\x03\xEA", "a fragmented WebSocket control frame"},
      {frame(true, 0xC2, "x"), "\x03\xEA", "a WebSocket frame with a reserved bit"},
      {frame(true, 0x80, "x"), "\x03\xEA", "a WebSocket continuation of no message"},
  };
  for (const auto& [bytes, status, why] : cases) {
    BytePeer peer = browse(pull);
    peer.write(message(true, 0, "good") + bytes + message(true, 0, "never"));
    EXPECT_EQ(recv_text(pull), "good");
    EXPECT_EQ(peer.read(4), frame(false, 0x88, status));
    expect_end(pull, EventKind::disconnected, Errc::protocol_error, why);
  }
}

TEST_P(WebSocket, AMessageBeyondTheSocketsLimitEndsTheConnection) {
  Socket pull = make(SocketType::pull);
  ASSERT_TRUE(pull.set(option::max_message_size, 10));
  BytePeer peer = browse(pull);
  peer.write(message(true, 0, "0123456789") + message(true, 0, "0123456789+"));
  EXPECT_EQ(recv_text(pull), "0123456789");
  EXPECT_EQ(pull.try_recv().error(), Errc::would_block);  // the frame after it is decoded by the next call
  expect_end(pull, EventKind::disconnected, Errc::message_too_large, "message exceeds its limit");
  BytePeer other = browse(pull);
  other.write(frame(true, 0x02, std::string(1, '\0')) + frame(true, 0x80, "0123456789+"));
  expect_end(pull, EventKind::disconnected, Errc::message_too_large, "message exceeds its limit");
}

TEST_P(WebSocket, ACloseIsAnsweredAndTheEnd) {
  Socket pull = make(SocketType::pull);
  ASSERT_TRUE(pull.set(option::heartbeat_interval, 0ms));  // the silence after the end does not end it
  BytePeer peer = browse(pull);
  peer.write(message(true, 0, "last") + frame(true, 0x88, "\x03\xE9"));
  EXPECT_EQ(recv_text(pull), "last");
  EXPECT_EQ(peer.read_to_end(), frame(false, 0x88, "\x03\xE9"));
}

TEST_P(WebSocket, ASocketThatClosesSaysClose) {
  Socket push = make(SocketType::push);
  BytePeer peer = browse(push);
  send(push, {"last"});
  push.close();
  EXPECT_EQ(peer.read(7 + 4), message(false, 0, "last") + frame(false, 0x88, "\x03\xE8"));
}

TEST_P(WebSocket, HeartbeatsArePings) {
  Socket pull = make(SocketType::pull);
  ASSERT_TRUE(pull.set(option::heartbeat_interval, 20ms));
  ASSERT_TRUE(pull.set(option::heartbeat_timeout, kLong));
  BytePeer peer = browse(pull);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(peer.read(2), frame(false, 0x89, ""));
    peer.write(frame(true, 0x8A, ""));
  }
}

TEST_P(WebSocket, SilenceEndsTheConnection) {
  Socket pull = make(SocketType::pull);
  ASSERT_TRUE(pull.set(option::heartbeat_interval, 20ms));
  const BytePeer peer = browse(pull);
  expect_end(pull, EventKind::disconnected, Errc::timed_out, "peer is silent");
}

// A peer that sends PINGs without pause, which bring the application nothing.
class PingFlood {
 public:
  explicit PingFlood(BytePeer peer) : peer_(std::move(peer)), thread_([this] { run(); }) {}
  PingFlood(const PingFlood&) = delete;
  PingFlood& operator=(const PingFlood&) = delete;
  ~PingFlood() {
    over_.store(true, std::memory_order_relaxed);
    thread_.join();
  }

 private:
  void run() {
    std::string pings;
    while (pings.size() < 1 << 20) {
      pings += frame(true, 0x89, "");
    }
    int stopped = 0;  // in a row: the connection has ended, or the reader does not read
    for (std::string_view rest; stopped < 2 && !over_.load(std::memory_order_relaxed);) {
      rest = rest.empty() ? std::string_view(pings) : rest;
      const std::size_t written = peer_.write_until_full(rest, 20ms);
      stopped = written == 0 ? stopped + 1 : 0;
      rest.remove_prefix(written);
    }
  }

  std::atomic<bool> over_{false};
  BytePeer peer_;
  std::thread thread_;
};

constexpr std::string_view kFlooded = "more WebSocket control frames and empty fragments than the limit";

TEST_P(WebSocket, AFloodOfPingsBeforeTheHandshakeIsOverEndsTheConnection) {
  Socket pull = make(SocketType::pull);
  BytePeer first = dial(pull);
  BytePeer second = dial(pull);
  first.write(kRequest);
  second.write(kRequest);
  const PingFlood flood(std::move(first));
  const PingFlood other(std::move(second));
  expect_end(pull, EventKind::handshake_failed, Errc::protocol_error, kFlooded);
  expect_end(pull, EventKind::handshake_failed, Errc::protocol_error, kFlooded);
}

TEST_P(WebSocket, AFloodOfPingsHoldsUpNoCallAndNoOtherPeer) {
  Socket pull = make(SocketType::pull);
  const PingFlood flood(browse(pull));
  const PingFlood other(browse(pull));
  expect_end(pull, EventKind::disconnected, Errc::protocol_error, kFlooded);
  expect_end(pull, EventKind::disconnected, Errc::protocol_error, kFlooded);
  ASSERT_TRUE(pull.set(option::receive_timeout, 50ms));
  const Instant begun = sys::now();
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(pull.try_recv().error(), Errc::would_block);
    EXPECT_EQ(pull.recv().error(), Errc::timed_out);
  }
  EXPECT_LT(sys::now() - begun, kLong / 2);  // the floods do not end
  ASSERT_TRUE(pull.set(option::receive_timeout, kLong));
  BytePeer peer = browse(pull);
  peer.write(message(true, 0, "heard"));
  EXPECT_EQ(recv_text(pull), "heard");
}

TEST_P(WebSocket, TheRefusedClientTriesAgain) {
  auto listener = net::Listener::open(*net::parse_endpoint("tcp://127.0.0.1:*", true), {}).value();
  Socket push = make(SocketType::push);
  connect(push, "ws" + listener->bound_endpoint().substr(3) + "/where?q");
  for (int i = 0; i < 2; ++i) {
    BytePeer peer = BytePeer::accept(*listener);
    EXPECT_EQ(peer.read(25), "GET /where?q HTTP/1.1\r\nHo");
    peer.write("HTTP/1.1 503 Busy\r\n\r\n");
  }
}

// A server by hand, which a socket connects to. It answers the request with the sub-protocol that it chose and
// `behind`, in one write.
class ByHand {
 public:
  explicit ByHand(Socket& client) { EXPECT_TRUE(client.connect("ws" + listener_->bound_endpoint().substr(3))); }
  BytePeer accept(std::string_view protocol, std::string_view behind) {
    constexpr std::string_view kKeyField = "Sec-WebSocket-Key: ";
    BytePeer peer = BytePeer::accept(*listener_);
    std::string request;
    while (!request.ends_with("\r\n\r\n")) {
      const std::string byte = peer.read(1);
      EXPECT_FALSE(byte.empty());
      if (byte.empty()) {
        return peer;
      }
      request += byte;
    }
    EXPECT_NE(request.find("Sec-WebSocket-Protocol: ZWS2.0/NULL,ZWS2.0\r\n"), std::string::npos);
    const std::size_t key = request.find(kKeyField) + kKeyField.size();
    peer.write(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: " +
        net::ws::accept_key(request.substr(key, net::ws::kKeySize)) +
        "\r\nSec-WebSocket-Protocol: " + std::string(protocol) + "\r\n\r\n" + std::string(behind));
    return peer;
  }

 private:
  std::unique_ptr<net::Listener> listener_ =
      net::Listener::open(*net::parse_endpoint("tcp://127.0.0.1:*", true), {}).value();
};

const std::string kTwo = message(false, 0, "one") + message(false, 0, "two");
const std::string kGoodbye = frame(false, 0x88, "\x03\xE8");

TEST_P(WebSocket, OurClientSpeaksTheSubProtocolThatTheServerChose) {
  const std::string ready = message(false, 2, std::string("\5READY\13Socket-Type\0\0\0\4PUSH", 26));
  const std::string identity = message(false, 0, "");
  const std::pair<std::string_view, std::string> cases[] = {
      {"ZWS2.0", identity}, {"ZWS2.0", message(false, 0, "id")}, {"ZWS2.0/NULL", ready}, {"ZWS2.0/NULL", identity}};
  for (const auto& [protocol, begin] : cases) {
    Socket pull = make(SocketType::pull);
    ByHand server(pull);
    const BytePeer peer = server.accept(protocol, begin + kTwo);
    EXPECT_EQ(recv_text(pull), "one");
    EXPECT_EQ(recv_text(pull), "two");
  }
}

TEST_P(WebSocket, WhatComesTogetherWithTheUpgradeAndTheCloseIsReceived) {
  Socket connects = make(SocketType::pull);
  ByHand server(connects);
  const BytePeer leaves = server.accept("ZWS2.0", message(false, 0, "") + kTwo + kGoodbye);
  EXPECT_EQ(recv_text(connects), "one");
  EXPECT_EQ(recv_text(connects), "two");

  Socket binds = make(SocketType::pull);
  BytePeer peer = dial(binds);
  peer.write(std::string(kRequest) + kNoIdentity + message(true, 0, "one") + frame(true, 0x88, "\x03\xE8"));
  EXPECT_EQ(recv_text(binds), "one");
}

// More than a peer may have in fragments before the handshake, which our end cannot finish any more.
TEST_P(WebSocket, ALongMessageInFragmentsOfAPeerThatLeftIsReceived) {
  const std::string half(12'000, 'f');  // both together fit into the other end's kernel: a reset drops the rest
  Socket pull = make(SocketType::pull);
  ByHand server(pull);
  {
    BytePeer leaves = server.accept(
        "ZWS2.0", message(false, 0, "") + frame(false, 0x02, '\0' + half) + frame(false, 0x80, half) + kGoodbye);
    const ::linger none{.l_onoff = 1, .l_linger = 0};  // a reset: each further write of the other end fails
    ASSERT_EQ(::setsockopt(leaves.stream().fd(), SOL_SOCKET, SO_LINGER, &none, sizeof none), 0);
  }
  const auto got = pull.recv();
  ASSERT_TRUE(got) << got.error().message();
  EXPECT_EQ(got->size(), 2 * half.size());
}

TEST_P(WebSocket, EveryMechanismWorks) {
  for (const bool curve : {false, true}) {
#ifndef WEFT_HAVE_SODIUM
    if (curve) {
      continue;
    }
#endif
    Socket pull = make(SocketType::pull);
    Socket push = make(SocketType::push);
    if (curve) {
      const auto ours = zmtp::make_curve_key_pair().value();
      ASSERT_TRUE(pull.set(option::curve_secret_key, as_key(server_keys().secret_key)));
      ASSERT_TRUE(pull.set(option::curve_server, true));
      ASSERT_TRUE(push.set(option::curve_public_key, as_key(ours.public_key)));
      ASSERT_TRUE(push.set(option::curve_secret_key, as_key(ours.secret_key)));
      ASSERT_TRUE(push.set(option::curve_server_key, as_key(server_keys().public_key)));
      ASSERT_TRUE(push.set(option::heartbeat_interval, 1ms));  // in the clear, as libzmq sends it
      ASSERT_TRUE(pull.set(option::heartbeat_interval, 1ms));
      ASSERT_TRUE(pull.set(option::heartbeat_timeout, kLong));
      ASSERT_TRUE(push.set(option::heartbeat_timeout, kLong));
    }
    connect(push, bind(pull));
    constexpr std::size_t kStep = kSanitized ? 389 : 97;  // up to 97,000 bytes
    for (std::size_t size = 0; size < 97'000; size += kStep) {
      send(push, {std::to_string(size), std::string(size, 'x')});
    }
    for (std::size_t size = 0; size < 97'000; size += kStep) {
      EXPECT_EQ(recv(pull), (Texts{std::to_string(size), std::string(size, 'x')}));
    }
  }
}

// The authenticator of this context, which has one password.
class PasswordCheck {
 public:
  explicit PasswordCheck(Socket handler) : handler_(std::move(handler)) {
    EXPECT_TRUE(handler_.bind("inproc://zeromq.zap.01"));
    thread_ = std::thread([this] { run(); });
  }
  PasswordCheck(const PasswordCheck&) = delete;
  PasswordCheck& operator=(const PasswordCheck&) = delete;
  ~PasswordCheck() {
    handler_.close();
    thread_.join();
  }

 private:
  void run() {
    while (const auto parts = handler_.recv_all()) {
      ASSERT_EQ(parts->size(), 8u);
      EXPECT_EQ((*parts)[5].text(), "PLAIN");
      const bool good = (*parts)[6].text() == "alice" && (*parts)[7].text() == "secret";
      const std::string id((*parts)[1].text());
      const std::string reply[] = {"1.0", id, good ? "200" : "400", "", good ? "alice" : "", ""};
      for (std::size_t i = 0; i < std::size(reply); ++i) {
        ASSERT_TRUE(handler_.send(reply[i], i + 1 < std::size(reply) ? More::yes : More::no));
      }
    }
  }

  Socket handler_;
  std::thread thread_;
};

TEST_P(WebSocket, PlainLetsInWhoKnowsThePasswordAndNobodyElse) {
  const PasswordCheck check(make(SocketType::rep));
  Socket pull = make(SocketType::pull);
  ASSERT_TRUE(pull.set(option::plain_server, true));
  ASSERT_TRUE(pull.watch_events());
  const std::string endpoint = bind(pull);
  const auto client = [&](std::string_view password) {
    Socket push = make(SocketType::push);
    EXPECT_TRUE(push.set(option::plain_username, "alice"));
    EXPECT_TRUE(push.set(option::plain_password, std::string(password)));
    connect(push, endpoint);
    return push;
  };
  Socket good = client("secret");
  send(good, {"hello"});
  EXPECT_EQ(recv_text(pull), "hello");
  Socket bad = client("guess");
  expect_end(pull, EventKind::handshake_failed, Errc::handshake_refused, "the peer was not authenticated");
  Socket nobody = make(SocketType::push);  // NULL: the sub-protocols differ
  connect(nobody, endpoint);
  for (const Instant end = sys::now() + kLong;;) {  // the bad one comes again, as often as it is refused
    ASSERT_LT(sys::now(), end);
    const MonitorEvent event = wait_for_event(pull, EventKind::handshake_failed);
    if (event.reason == Errc::protocol_error) {
      EXPECT_STREQ(event.reason.text(), "the client offers no WebSocket sub-protocol of ours");
      break;
    }
  }
  EXPECT_GE(pull.statistics()->handshakes_failed, 2u);
  EXPECT_EQ(pull.try_recv().error(), Errc::would_block);
}

TEST_P(WebSocket, ARawSocketHasNoWebSocket) {
  Socket raw = make(SocketType::stream);
  EXPECT_EQ(raw.bind("ws://127.0.0.1:*").error().code(), Errc::incompatible_peer);
  EXPECT_EQ(raw.connect("ws://127.0.0.1:1").error().code(), Errc::incompatible_peer);
}

TEST_P(WebSocket, TheEndpointHasItsPathAndIsUnboundByIt) {
  Socket pull = make(SocketType::pull);
  const auto exact = pull.bind("ws://localhost:*/a/b");
  ASSERT_TRUE(exact);
  EXPECT_TRUE(exact->starts_with("ws://127.0.0.1:") && exact->ends_with("/a/b")) << *exact;
  EXPECT_FALSE(pull.unbind(exact->substr(0, exact->size() - 4)));
  EXPECT_TRUE(pull.unbind("ws://localhost" + exact->substr(14)));
}

}  // namespace
}  // namespace weft::conformance
