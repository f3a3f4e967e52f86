// SPDX-License-Identifier: MIT
// Sockets against peers that speak ZMTP 2.0 and 1.0 by hand, as in RFC 15 and RFC 13.
#include "tests/conformance/conformance.h"
#include "tests/conformance/wire.h"
#include "weft/zmtp/frame_v1.h"

namespace weft::conformance {
namespace {

constexpr int kVersions[] = {2, 1};

std::string signature(std::string_view our_identity) {
  std::string bytes("\xFF\0\0\0\0\0\0\0\0\x7F", 10);
  bytes[8] = static_cast<char>(our_identity.size() + 1);
  return bytes;
}

// OldPeer: the other end, of version 1 or 2.
class OldPeer {
 public:
  OldPeer(WirePeer peer, int version) : peer_(std::move(peer)), version_(version) {}

  // Both sides' part of the handshake.
  void greet(SocketType type, std::string_view identity, SocketType theirs, std::string_view their_identity) {
    if (version_ == 1) {
      peer_.write(frame(false, identity));
      EXPECT_EQ(peer_.read(10 + their_identity.size()), signature(their_identity).append(their_identity));
      return;
    }
    peer_.write(signature(identity));
    EXPECT_EQ(peer_.read(11), signature(their_identity) + '\3') << "or more than every version understands";
    peer_.write(std::string{'\1', static_cast<char>(type)} + frame(false, identity));
    EXPECT_EQ(peer_.read(1), std::string(1, static_cast<char>(theirs)));
    expect({std::string(their_identity)});
  }

  void send(std::initializer_list<std::string_view> parts) {
    std::string bytes;
    std::size_t left = parts.size();
    for (const std::string_view part : parts) {
      bytes += frame(--left > 0, part);
    }
    peer_.write(bytes);
  }
  void expect(const Texts& parts) {
    std::size_t left = parts.size();
    for (const std::string& part : parts) {
      const std::string whole = frame(--left > 0, part);
      EXPECT_EQ(peer_.read(whole.size()), whole);
    }
  }
  void expect_end() { EXPECT_EQ(peer_.read(1'000'000).size(), 0u); }
  [[nodiscard]] WirePeer& wire() noexcept { return peer_; }

 private:
  [[nodiscard]] std::string frame(bool more, std::string_view body) const {
    std::uint8_t header[zmtp::kFrameHeaderSizeMaxV1];
    const std::uint8_t flags = more ? zmtp::kMore : 0;
    const std::size_t size = version_ == 1 ? zmtp::write_frame_header_v1(header, flags, body.size())
                                           : zmtp::write_frame_header(header, flags, body.size());
    return std::string(as_text(Bytes(header, size))).append(body);
  }

  WirePeer peer_;
  int version_;
};

class Old : public Conformance {
 protected:
  // An old peer that connects to `socket`.
  [[nodiscard]] OldPeer dial(Socket& socket, int version, SocketType type, std::string_view identity, SocketType theirs,
                             std::string_view their_identity = {}) {
    OldPeer peer(WirePeer::dial(bind(socket)), version);
    peer.greet(type, identity, theirs, their_identity);
    return peer;
  }
  // An old peer that `socket` connects to.
  [[nodiscard]] OldPeer accept(Socket& socket, int version, SocketType type, std::string_view identity,
                               SocketType theirs, std::string_view their_identity = {}) {
    listen();
    connect(socket, listener_->bound_endpoint());
    OldPeer peer(WirePeer::accept(*listener_), version);
    peer.greet(type, identity, theirs, their_identity);
    return peer;
  }
  void listen() {
    auto listener = net::Listener::open(*net::parse_endpoint(new_endpoint(), true), {});
    ASSERT_TRUE(listener) << listener.error().message();
    listener_ = std::move(listener).value();
  }

  std::unique_ptr<net::Listener> listener_;
};
WEFT_TRANSPORTS_WHERE(Old, without_websocket);

TEST_P(Old, PushesToAPull) {
  for (const int version : kVersions) {
    Socket pull = make(SocketType::pull);
    OldPeer push = dial(pull, version, SocketType::push, "", SocketType::pull);
    const std::string big(300'000, 'b');
    push.send({"one"});
    push.send({"", std::string(253, 'x'), std::string(254, 'y'), std::string(255, 'z'), big});
    EXPECT_EQ(recv(pull), Texts{"one"});
    EXPECT_EQ(recv(pull), (Texts{"", std::string(253, 'x'), std::string(254, 'y'), std::string(255, 'z'), big}));
  }
}

TEST_P(Old, PullsFromAPushThatConnects) {
  for (const int version : kVersions) {
    Socket push = make(SocketType::push);
    const Texts many = numbered("message ", 0, 500);
    const std::string big(300'000, 'b');
    OldPeer pull = accept(push, version, SocketType::pull, "", SocketType::push);
    send(push, {"", std::string(253, 'x'), std::string(254, 'y'), std::string(255, 'z'), big});
    for (const std::string& text : many) {
      send(push, text);
    }
    pull.expect({"", std::string(253, 'x'), std::string(254, 'y'), std::string(255, 'z'), big});
    for (const std::string& text : many) {
      pull.expect({text});
    }
  }
}

TEST_P(Old, ComesAgain) {
  for (const int version : kVersions) {
    Socket pull = make(SocketType::pull);
    (void)accept(pull, version, SocketType::push, "", SocketType::pull);
    OldPeer again(WirePeer::accept(*listener_), version);
    again.greet(SocketType::push, "", SocketType::pull, "");
    again.send({"again"});
    EXPECT_EQ(recv_text(pull), "again");
  }
}

TEST_P(Old, MayBeReplacedByANewOne) {
  Socket pull = make(SocketType::pull);
  (void)accept(pull, 2, SocketType::push, "", SocketType::pull);
  WirePeer modern = WirePeer::accept(*listener_, zmtp::WireType::push);
  modern.write(wire_frame(0, "new"));
  EXPECT_EQ(recv_text(pull), "new");
}

// After a ZMTP 3 peer the socket sends its whole greeting at once, which an old peer does not understand.
TEST_P(Old, MayReplaceANewOne) {
  for (const int version : kVersions) {
    for (const bool silent : {false, true}) {
      Socket pull = make(SocketType::pull);
      ASSERT_TRUE(pull.set(option::reconnect_stop, silent ? 0 : 2));  // being greeted again is not a failure
      listen();
      connect(pull, listener_->bound_endpoint());
      (void)WirePeer::accept(*listener_, zmtp::WireType::push);
      {
        WirePeer first = WirePeer::accept(*listener_);
        EXPECT_EQ(first.read(64).size(), 64u);
        if (!silent) {
          first.write(version == 1 ? std::string("\1\0", 2) : signature("") + std::string("\1\10", 2));
          EXPECT_EQ(first.read(1), "");
        }
      }
      OldPeer push(WirePeer::accept(*listener_), version);
      push.greet(SocketType::push, "", SocketType::pull, "");
      push.send({"text"});
      EXPECT_EQ(recv_text(pull), "text");
    }
  }
}

TEST_P(Old, AndNewPeersShareASocket) {
  Socket push = make(SocketType::push);
  ASSERT_TRUE(push.watch_events());
  const std::string endpoint = bind(push);
  OldPeer first(WirePeer::dial(endpoint), 1);
  first.greet(SocketType::pull, "", SocketType::push, "");
  wait_for_peers(push);
  OldPeer second(WirePeer::dial(endpoint), 2);
  second.greet(SocketType::pull, "", SocketType::push, "");
  wait_for_peers(push);
  WirePeer third = WirePeer::dial(endpoint, zmtp::WireType::pull);
  wait_for_peers(push);
  for (int i = 0; i < 3; ++i) {
    send(push, {"part", std::string(255, 'p')});
  }
  first.expect({"part", std::string(255, 'p')});
  second.expect({"part", std::string(255, 'p')});
  EXPECT_EQ(third.read_frame().body, "part");
  EXPECT_EQ(third.read_frame().body, std::string(255, 'p'));
}

TEST_P(Old, SubscribesWithMessages) {
  Socket xpub = make(SocketType::xpub);
  OldPeer sub = dial(xpub, 2, SocketType::sub, "", SocketType::pub);
  sub.send({"\1a"});
  EXPECT_EQ(recv_text(xpub), "\1a");
  send(xpub, "b");
  send(xpub, "a1");
  sub.expect({"a1"});
  sub.send({std::string_view("\0a", 2)});
  EXPECT_EQ(recv_text(xpub), std::string("\0a", 2));
}

TEST_P(Old, OfVersion1GetsWhateverIsPublished) {
  Socket xpub = make(SocketType::xpub);
  OldPeer sub = dial(xpub, 1, SocketType::sub, "", SocketType::pub);
  EXPECT_EQ(recv_text(xpub), "\1");
  send(xpub, {"any", "thing"});
  sub.expect({"any", "thing"});
}

TEST_P(Old, PublishesToASubscriber) {
  for (const int version : kVersions) {
    Socket sub = make(SocketType::sub);
    ASSERT_TRUE(sub.subscribe("a"));
    OldPeer pub = accept(sub, version, SocketType::pub, "", SocketType::sub);
    pub.expect({"\1a"});
    ASSERT_TRUE(sub.subscribe(std::string(300, 'b')));
    pub.expect({"\1" + std::string(300, 'b')});
    ASSERT_TRUE(sub.unsubscribe(std::string(300, 'b')));
    pub.expect({std::string(1, '\0') + std::string(300, 'b')});
    pub.send({"c"});
    pub.send({"a", "body"});
    EXPECT_EQ(recv(sub), (Texts{"a", "body"}));
  }
}

TEST_P(Old, RequestsAndReplies) {
  for (const int version : kVersions) {
    Socket rep = make(SocketType::rep);
    OldPeer req = dial(rep, version, SocketType::req, "", SocketType::rep);
    req.send({"", "hello"});
    EXPECT_EQ(recv_text(rep), "hello");
    send(rep, "world");
    req.expect({"", "world"});

    Socket asking = make(SocketType::req);
    OldPeer answering = accept(asking, version, SocketType::rep, "", SocketType::req);
    send(asking, {"two", "parts"});
    answering.expect({"", "two", "parts"});
    answering.send({"", "reply"});
    EXPECT_EQ(recv_text(asking), "reply");
  }
}

TEST_P(Old, IsRoutedToByItsIdentity) {
  for (const int version : kVersions) {
    Socket router = make(SocketType::router);
    OldPeer dealer = dial(router, version, SocketType::dealer, "name", SocketType::router);
    dealer.send({"hello"});
    EXPECT_EQ(recv(router), (Texts{"name", "hello"}));
    send(router, {"name", "and", "back"});
    dealer.expect({"and", "back"});
  }
}

TEST_P(Old, SeesOurIdentity) {
  for (const int version : kVersions) {
    Socket bound = make(SocketType::dealer);
    ASSERT_TRUE(bound.set(option::routing_id, "me"));
    OldPeer router = dial(bound, version, SocketType::router, "", SocketType::dealer, "me");
    send(bound, "hello");
    router.expect({"hello"});

    Socket connected = make(SocketType::dealer);
    ASSERT_TRUE(connected.set(option::routing_id, "me too"));
    OldPeer other = accept(connected, version, SocketType::router, "", SocketType::dealer, "me too");
    other.send({"hello"});
    EXPECT_EQ(recv_text(connected), "hello");
  }
}

TEST_P(Old, GetsNoHeartbeats) {
  for (const int version : kVersions) {
    Socket push = make(SocketType::push);
    ASSERT_TRUE(push.watch_events());
    ASSERT_TRUE(push.set(option::heartbeat_interval, 1ms));
    ASSERT_TRUE(push.set(option::heartbeat_timeout, 1ms));
    OldPeer pull = dial(push, version, SocketType::pull, "", SocketType::push);
    wait_for_peers(push);
    EXPECT_EQ(push.next_event(30ms).error(), Errc::timed_out) << "heartbeats ended the connection";
    send(push, "first");
    pull.expect({"first"});
  }
}

TEST_P(Old, IsRefusedWhereThereIsSecurity) {
  for (const int version : kVersions) {
    Socket domain = make(SocketType::pull);
    ASSERT_TRUE(domain.set(option::zap_domain, "global"));
    Socket plain = make(SocketType::pull);
    ASSERT_TRUE(plain.set(option::plain_server, true));
    for (Socket* socket : {&domain, &plain}) {
      ASSERT_TRUE(socket->watch_events());
      OldPeer push(WirePeer::dial(bind(*socket)), version);
      EXPECT_EQ(push.wire().read(64).size(), 64u);
      push.wire().write(version == 1 ? std::string("\1\0", 2) : signature("") + std::string("\1\10\0\0", 4));
      push.expect_end();
      wait_for_event(*socket, EventKind::handshake_failed);
    }
  }
}

TEST_P(Old, OfTheWrongTypeIsRefused) {
  Socket pull = make(SocketType::pull);
  ASSERT_TRUE(pull.watch_events());
  OldPeer pub(WirePeer::dial(bind(pull)), 2);
  pub.wire().write(signature("") + std::string("\1\1", 2));
  wait_for_event(pull, EventKind::handshake_failed);
}

// The time-out counts the handshakes of the layers below, too. A slow machine gets a longer one, until all is written.
TEST_P(Old, ThatGreetsAndSaysNoMoreRunsOutOfTime) {
  for (const std::string& said : {std::string("\5\0id", 4), signature(""), signature("") + std::string("\1\10\0", 3)}) {
    bool out = false;
    for (Duration patience = 20ms; !out && patience < kLong; patience *= 4) {
      Socket pull = make(SocketType::pull);
      ASSERT_TRUE(pull.watch_events());
      ASSERT_TRUE(pull.set(option::handshake_timeout, patience));
      WirePeer peer = WirePeer::dial(bind(pull));
      out = peer.write_until_full(said, kLong) == said.size();
      const MonitorEvent failed = wait_for_event(pull, EventKind::handshake_failed);
      EXPECT_EQ(failed.reason, Errc::timed_out);
    }
    EXPECT_TRUE(out);
  }
}

}  // namespace
}  // namespace weft::conformance
