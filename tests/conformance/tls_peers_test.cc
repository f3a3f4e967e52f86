// SPDX-License-Identifier: MIT
// tls+tcp and peers that break the handshake or the records.
#ifdef WEFT_HAVE_OPENSSL

#include "tests/conformance/test_tls_sockets.h"

namespace weft::conformance {
namespace {

class TlsPeers : public Tls {
 protected:
  // Expects the end of a client that sends no more after `cut` bytes, or after the handshake of TLS. A slow machine
  // gets a longer time-out, until the client has sent that much.
  template <typename Bind>
  void expect_time_out(std::size_t cut, const Bind& bind_it) {
    bool said = false;
    for (Duration patience = 50ms; !said && patience < kLong; patience *= 4) {
      Socket pull = make(SocketType::pull);
      ASSERT_TRUE(pull.set(option::handshake_timeout, patience));
      std::size_t passes = cut;
      const auto client = wrap_cut(bind_it(pull), passes, 1 << 20);
      said = shake_hands(*client, passes);
      expect_refused(pull, "handshake took too long", Errc::timed_out);
      EXPECT_EQ(pull.statistics()->handshakes_failed, 1u);
    }
    EXPECT_TRUE(said);
  }
};

TEST_F(TlsPeers, APeerInTheClearIsRefused) {
  Socket pull = make(SocketType::pull);
  const std::string endpoint = bind(pull);
  Socket push = make(SocketType::push);
  ASSERT_TRUE(push.connect(endpoint.substr(endpoint.find("tcp://"))));
  const MonitorEvent event = wait_for(pull, EventKind::handshake_failed);
  EXPECT_EQ(event.reason.code(), Errc::protocol_error) << event.reason.message();
  (void)wait_for(push, EventKind::handshake_failed);
  expect_serves(pull, endpoint);
}

TEST_F(TlsPeers, AServerInTheClearIsRefused) {
  Socket pull = make(SocketType::pull);
  ASSERT_TRUE(pull.set(option::handshake_timeout, 100ms));
  const auto bound = pull.bind("tcp://127.0.0.1:*");
  ASSERT_TRUE(bound);
  Socket push = make(SocketType::push);
  connect(push, "tls+" + *bound);
  const MonitorEvent event = wait_for(push, EventKind::handshake_failed);
  EXPECT_FALSE(event.reason.code() == Errc::ok);
  (void)wait_for(pull, EventKind::handshake_failed);
}

TEST_F(TlsPeers, GarbageIsRefused) {
  Socket pull = make(SocketType::pull);
  const std::string endpoint = bind(pull);
  for (const std::string& garbage : {std::string(1000, '\0'), std::string("GET / HTTP/1.1\r\n\r\n"),
                                     std::string("\x16\x03\x01\xff\xff", 5) + std::string(5, 'x'),
                                     std::string("\x16\x03\x01\x00\x05\x01\xff\xff\xff\xff", 10)}) {
    BytePeer peer = dial_plain(endpoint);
    peer.write(garbage);
    peer.end_writing();
    const MonitorEvent event = wait_for(pull, EventKind::handshake_failed);
    EXPECT_TRUE(event.reason.code() == Errc::protocol_error || event.reason.code() == Errc::connection_closed);
    EXPECT_FALSE(reason_of(event).empty());
    (void)peer.read_to_end();
  }
  EXPECT_EQ(pull.statistics()->handshakes_failed, 4u);
  expect_serves(pull, endpoint);
}

TEST_F(TlsPeers, AHandshakeThatNeverComesEndsInTime) {
  Socket pull = make(SocketType::pull);
  ASSERT_TRUE(pull.set(option::handshake_timeout, 50ms));
  const std::string endpoint = bind(pull);
  BytePeer silent = dial_plain(endpoint);
  expect_refused(pull, "handshake took too long", Errc::timed_out);
  for (const std::size_t cut : {std::size_t{100}, std::size_t{1} << 20}) {  // half a ClientHello, and TLS without ZMTP
    expect_time_out(cut, [this](Socket& socket) { return bind(socket); });
  }
}

TEST_F(TlsPeers, AServerThatSaysNothingIsLeftInTimeAndTriedAgain) {
  auto listener = net::Listener::open(*net::parse_endpoint("tcp://127.0.0.1:*", true), {}).value();
  Socket push = make(SocketType::push);
  ASSERT_TRUE(push.set(option::handshake_timeout, 50ms));
  connect(push, "tls+" + listener->bound_endpoint());
  expect_refused(push, "handshake took too long", Errc::timed_out);
  (void)wait_for(push, EventKind::connected);
}

TEST_F(TlsPeers, ACloseInTheMiddleOfAHandshakeDoesNotWait) {
  auto listener = net::Listener::open(*net::parse_endpoint("tcp://127.0.0.1:*", true), {}).value();
  Socket pull = make(SocketType::pull);
  ASSERT_TRUE(pull.set(option::handshake_timeout, kLong));
  const std::string endpoint = bind(pull);
  BytePeer silent = dial_plain(endpoint);
  (void)wait_for(pull, EventKind::accepted);
  Socket push = make(SocketType::push);
  ASSERT_TRUE(push.set(option::handshake_timeout, kLong));
  connect(push, "tls+" + listener->bound_endpoint());
  ASSERT_TRUE(push.send("never"));
  (void)wait_for(push, EventKind::connected);
  const Instant begin = sys::now();
  pull.close();
  push.close();
  context_ = Context();
  EXPECT_LT(sys::now() - begin, kLong / 2);
}

TEST_F(TlsPeers, AHandshakeCutAtAnyByteEndsTheConnectionOnly) {
  Socket pull = make(SocketType::pull);
  const std::string endpoint = bind(pull);
  std::uint64_t cut_off = 0;
  for (std::size_t cut = 1; cut < 400; cut += 7) {
    std::size_t passes = cut;
    auto stream = dial_cut(endpoint, passes, 1000);
    stream.reset();
    const MonitorEvent event = wait_for(pull, EventKind::handshake_failed);
    EXPECT_FALSE(event.reason.code() == Errc::ok);
    ++cut_off;
  }
  EXPECT_EQ(pull.statistics()->handshakes_failed, cut_off);
  expect_serves(pull, endpoint);
}

// The greeting of ZMTP in one record, cut at each byte.
TEST_F(TlsPeers, ARecordCutAtEachByteEndsTheConnectionOnly) {
  Socket pull = make(SocketType::pull);
  const std::string endpoint = bind(pull);
  std::uint8_t greeting[zmtp::kGreetingSize];
  zmtp::Greeting ours;
  ours.set_mechanism("NULL");
  zmtp::write_greeting(greeting, ours, 0);
  const std::size_t record = sizeof(greeting) + 22;  // header, type and tag
  for (std::size_t cut = 1; cut < record; ++cut) {
    std::size_t passes = 1 << 20;
    auto stream = dial_cut(endpoint, passes, 1 << 20);
    passes = cut;
    const Bytes from(greeting);
    EXPECT_EQ(stream->write({&from, 1}).bytes, sizeof(greeting));
    EXPECT_EQ(passes, 0u);
    stream.reset();
    const MonitorEvent event = wait_for(pull, EventKind::handshake_failed);
    EXPECT_EQ(event.reason.code(), Errc::connection_closed) << event.reason.message();
  }
  expect_serves(pull, endpoint);
}

TEST_F(TlsPeers, AByteAtATimeIsAsGoodAsAll) {
  Socket pull = make(SocketType::pull);
  const std::string endpoint = bind_mutual(pull);
  std::size_t passes = 1 << 20;
  const auto stream = dial_cut(endpoint, passes, 1);
  zmtp::LocalEndConfig config;
  config.socket_type = zmtp::WireType::push;
  zmtp::LocalEnd end(config);
  end.start(sys::now());
  std::string input;
  const auto write = [&](Bytes bytes) {
    while (!bytes.empty()) {
      const sys::IoResult result = stream->write({&bytes, 1});
      ASSERT_NE(result.status, Status::failed);
      bytes = bytes.subspan(result.bytes);
    }
    while (stream->state().unsent) {
      ASSERT_NE(stream->write({}).status, Status::failed);
    }
  };
  while (!end.ready() || !end.pending_output().empty()) {
    write(end.pending_output());
    end.consume_output(end.pending_output().size());
    if (end.ready()) {
      break;
    }
    std::uint8_t bytes[1];
    MutableBytes into(bytes);
    const sys::IoResult result = stream->read({&into, 1});
    if (result.status == Status::would_block) {
      ASSERT_TRUE(wait_fd(stream->fd(), sys::Interest::readable));
    }
    input.append(as_text(Bytes(bytes).first(result.bytes)));
    input.erase(0, end.handle_input(as_bytes(input), sys::now()));
    ASSERT_FALSE(end.fault());
  }
  write(as_bytes(wire_frame(0, std::string(500, 'x'))));
  const auto got = pull.recv();
  ASSERT_TRUE(got);
  EXPECT_EQ(got->size(), 500u);
}

TEST_F(TlsPeers, APeerThatStopsInTheMiddleOfARecordLosesOnlyItsOwnMessage) {
  Socket pull = make(SocketType::pull);
  const std::string endpoint = bind_mutual(pull);
  WirePeer peer = WirePeer::dial(endpoint, zmtp::WireType::push);
  peer.write(wire_frame(0, "whole"));
  peer.write(wire_frame(0, std::string(20'000, 'x')).substr(0, 10'000));
  EXPECT_EQ(pull.recv()->text(), "whole");
  expect_serves(pull, endpoint);
  sys::shutdown_write(peer.stream().fd());
  MonitorEvent event = wait_for(pull, EventKind::disconnected);
  if (reason_of(event).empty()) {  // that of the good peer, which announced its end
    event = wait_for(pull, EventKind::disconnected);
  }
  EXPECT_EQ(event.reason.code(), Errc::connection_closed) << event.reason.message();
  EXPECT_EQ(reason_of(event), "the stream ended without the end of its TLS");
  EXPECT_EQ(pull.try_recv().error(), Errc::would_block);
}

TEST_F(TlsPeers, EveryEndOfAConnectionIsAnnounced) {
  Socket pull = make(SocketType::pull);
  const std::string endpoint = bind(pull);
  const auto expect_announced = [](BytePeer& peer) {
    (void)peer.read_to_end();
    EXPECT_EQ(peer.stream().state().failure, Errc::ok) << peer.stream().state().failure.message();
    EXPECT_TRUE(peer.stream().state().ended);
  };
  WirePeer first = WirePeer::dial(endpoint, zmtp::WireType::push);
  first.end_writing();
  expect_announced(first);
  BytePeer faulty = BytePeer::dial(endpoint);
  faulty.write(std::string(100, 'g'));  // no greeting
  expect_announced(faulty);
  WirePeer last = WirePeer::dial(endpoint, zmtp::WireType::push);
  pull.close();  // without linger
  expect_announced(last);
}

TEST_F(TlsPeers, TheEventOfAStreamSaysThatItWasCut) {
  Socket stream = make(SocketType::stream);
  const std::string endpoint = bind(stream);
  for (const bool cut : {false, true}) {
    BytePeer peer = BytePeer::dial(endpoint);
    peer.write("bytes");
    cut ? sys::shutdown_write(peer.stream().fd()) : peer.end_writing();
    const MonitorEvent event = wait_for(stream, EventKind::disconnected);
    EXPECT_EQ(reason_of(event), cut ? "the stream ended without the end of its TLS" : "");
  }
}

TEST_F(TlsPeers, AForgedRecordEndsTheConnection) {
  Socket pull = make(SocketType::pull);
  const std::string endpoint = bind(pull);
  std::size_t passes = 1 << 20;
  auto stream = dial_cut(endpoint, passes, 1 << 20);
  const std::string forged = std::string("\x17\x03\x03\x00\x20", 5) + std::string(32, 'f');
  const int fd = stream->fd();
  EXPECT_EQ(sys::write_some(fd, as_bytes(forged)).bytes, forged.size());
  const MonitorEvent event = wait_for(pull, EventKind::handshake_failed);
  EXPECT_EQ(event.reason.code(), Errc::protocol_error);
  EXPECT_EQ(reason_of(event), "decryption failed or bad record mac");
}

// --- wss: the same below a WebSocket ---

class WssPeers : public TlsPeers {
 protected:
  [[nodiscard]] std::string bind_wss(Socket& socket) {
    give_certificate(socket);
    const auto bound = socket.bind("wss://127.0.0.1:*");
    EXPECT_TRUE(bound) << bound.error().message();
    return bound ? *bound : std::string();
  }
  [[nodiscard]] static BytePeer dial_clear(const std::string& endpoint) {
    return BytePeer::dial("tcp" + endpoint.substr(3, endpoint.rfind('/') - 3));
  }
};

TEST_F(WssPeers, GarbageAndARequestInTheClearAreRefused) {
  Socket pull = make(SocketType::pull);
  const std::string endpoint = bind_wss(pull);
  for (const std::string& garbage : {std::string(1000, '\xFF'), std::string("GET / HTTP/1.1\r\nHost: h\r\n\r\n"),
                                     std::string("\x16\x03\x01\x00\x05\x01\xff\xff\xff\xff", 10)}) {
    BytePeer peer = dial_clear(endpoint);
    peer.write(garbage);
    peer.end_writing();
    EXPECT_FALSE(reason_of(wait_for(pull, EventKind::handshake_failed)).empty());
    (void)peer.read_to_end();
  }
  EXPECT_EQ(pull.statistics()->handshakes_failed, 3u);
  expect_serves(pull, endpoint);
}

TEST_F(WssPeers, ACertificateOfAnotherAuthorityIsTheReasonAndNotAnErrorOfTheSystem) {
  Socket pull = make(SocketType::pull);
  const std::string endpoint = bind_wss(pull);
  const TestAuthority other("other");
  Socket push = make(SocketType::push);
  ASSERT_TRUE(push.set(option::tls_authorities, other.file()));
  ASSERT_TRUE(push.connect(endpoint));
  const MonitorEvent event = wait_for(push, EventKind::handshake_failed);
  EXPECT_EQ(event.reason.code(), Errc::protocol_error) << event.reason.message();
  EXPECT_NE(reason_of(event).find("certificate"), std::string_view::npos) << event.reason.message();
}

TEST_F(WssPeers, HalfAHandshakeOfTlsAndHalfAnUpgradeEndInTime) {
  for (const std::size_t cut : {std::size_t{100}, std::size_t{1} << 20}) {  // half a ClientHello, and TLS without HTTP
    expect_time_out(cut, [this](Socket& socket) { return bind_wss(socket); });
  }
}

TEST_F(WssPeers, APeerThatLeavesInTheMiddleOfTlsIsAFailureWithAReason) {
  Socket pull = make(SocketType::pull);
  const std::string endpoint = bind_wss(pull);
  {
    std::size_t passes = 100;
    const auto half = dial_cut(endpoint, passes, 1000);
  }
  EXPECT_FALSE(reason_of(wait_for(pull, EventKind::handshake_failed)).empty());
  EXPECT_EQ(pull.statistics()->handshakes_failed, 1u);
  expect_serves(pull, endpoint);
}

}  // namespace
}  // namespace weft::conformance

#endif
