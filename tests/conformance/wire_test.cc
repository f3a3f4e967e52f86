// SPDX-License-Identifier: MIT
// Against a peer that speaks the protocol by hand: messages cut in the middle, commands between parts, silence.
#include "tests/conformance/wire.h"

#include <array>
#include <atomic>
#include <thread>

#include "tests/conformance/conformance.h"

namespace weft::conformance {
namespace {

using zmtp::kMore;

class Wire : public Conformance {};
WEFT_TRANSPORTS_WHERE(Wire, in_the_clear);
class WireWithoutWebSocket : public Wire {};
WEFT_TRANSPORTS_WHERE(WireWithoutWebSocket, without_websocket);

TEST_P(Wire, OfAPeerThatDiesInTheMiddleOfAMessageOnlyWholeMessagesArrive) {
  Socket pull = make(SocketType::pull);
  ASSERT_TRUE(pull.watch_events());
  const std::string endpoint = bind(pull);
  const std::string whole = wire_frame(kMore, "whole 1") + wire_frame(0, "whole 2");
  const std::string cut =
      wire_frame(kMore, "cut 1") + wire_frame(kMore, std::string(5000, 'c')) + wire_frame(0, "cut 3");
  for (const std::size_t sent : {std::size_t{1}, std::size_t{7}, std::size_t{8}, std::size_t{100}, cut.size() - 1}) {
    {
      WirePeer peer = WirePeer::dial(endpoint, zmtp::WireType::push);
      peer.write(whole + cut.substr(0, sent));
    }
    EXPECT_EQ(recv(pull), (Texts{"whole 1", "whole 2"}));
    wait_for_event(pull, EventKind::disconnected);
    EXPECT_EQ(pull.try_recv().error(), Errc::would_block) << "after " << sent << " bytes";
  }
  WirePeer peer = WirePeer::dial(endpoint, zmtp::WireType::push);
  peer.write(wire_frame(0, "next"));
  EXPECT_EQ(recv_text(pull), "next");
}

// A receiver that waits keeps reading a large frame, but must not read from its peer alone.
TEST_P(Wire, APeerThatDribblesALargeFrameDoesNotHoldUpTheOthers) {
  constexpr int kCount = 2000;
  Socket pull = make(SocketType::pull);
  const std::string endpoint = bind(pull);
  const std::string large = wire_frame(0, std::string(1'000'000, 'l'));
  WirePeer slow = WirePeer::dial(endpoint, zmtp::WireType::push);
  WirePeer other = WirePeer::dial(endpoint, zmtp::WireType::push);
  slow.write(std::string_view(large).substr(0, 500'000));
  std::size_t written = 500'000;
  std::atomic<bool> enough{false};
  std::thread dribbler([&] {
    while (!enough.load(std::memory_order_relaxed) && written + 1 < large.size()) {
      slow.write(std::string_view(large).substr(written++, 1));
    }
  });
  for (int i = 0; i < kCount; ++i) {
    other.write(wire_frame(0, std::to_string(i)));
    EXPECT_EQ(recv_text(pull), std::to_string(i));
  }
  enough.store(true, std::memory_order_relaxed);
  dribbler.join();
  slow.write(std::string_view(large).substr(written));
  EXPECT_TRUE(recv_text(pull) == std::string(1'000'000, 'l'));
}

// The time to live of a PING counts, also for a socket that sends no heartbeats.
TEST_P(Wire, APeerThatIsSilentForLongerThanItSaidIsCutOff) {
  Socket pull = make(SocketType::pull);
  ASSERT_TRUE(pull.set(option::heartbeat_interval, 0ms));
  ASSERT_TRUE(pull.watch_events());
  const std::string endpoint = bind(pull);
  WirePeer peer = WirePeer::dial(endpoint, zmtp::WireType::push);
  std::array<std::uint8_t, zmtp::kPingFrameMax> ping;
  const Instant before = sys::now();
  peer.write(as_text(Bytes(ping.data(), zmtp::write_ping(ping.data(), 1, {}))));
  wait_for_event(pull, EventKind::disconnected);
  EXPECT_GE(sys::now() - before, 100ms);
}

// So if a program got a message of its last subscription, the publisher has all of them.
TEST_P(Wire, ANewConnectionHearsTheSubscriptionsInTheOrderInWhichTheyWereMade) {
  auto listener = net::Listener::open(*net::parse_endpoint(new_endpoint(), true), {});
  ASSERT_TRUE(listener) << listener.error().message();
  Socket sub = make(SocketType::sub);
  std::vector<std::string> topics;
  for (int i = 0; i < 50; ++i) {
    topics.push_back(std::to_string(i * 7919 % 50));
    ASSERT_TRUE(sub.subscribe(topics.back()));
  }
  ASSERT_TRUE(sub.unsubscribe(topics[3]));
  ASSERT_TRUE(sub.subscribe(topics[3]));  // makes it the last subscription
  std::rotate(topics.begin() + 3, topics.begin() + 4, topics.end());
  connect(sub, (*listener)->bound_endpoint());
  WirePeer peer = WirePeer::accept(**listener, zmtp::WireType::pub);
  for (const std::string& topic : topics) {
    EXPECT_EQ(peer.read_frame().body, subscription(GetParam(), true, topic));
  }
}

TEST_P(Wire, AMessageThatComesWithTheEndOfTheStreamArrives) {
  Socket pull = make(SocketType::pull);
  ASSERT_TRUE(pull.set(option::receive_high_water_mark, 1));
  const std::string endpoint = bind(pull);
  for (int round = 0; round < 20; ++round) {
    {
      WirePeer peer = WirePeer::dial(endpoint, zmtp::WireType::push);
      std::string bytes;
      for (int i = 0; i < 50; ++i) {
        bytes += wire_frame(0, std::to_string(i));
      }
      peer.write(bytes);
    }
    EXPECT_EQ(recv_many(pull, 50), numbered("", 0, 50));
  }
}

TEST_P(Wire, TheNextConnectionGetsNoPartsOfAMessageThatTheLastOneGotTheBeginningOf) {
  auto listener = net::Listener::open(*net::parse_endpoint(new_endpoint(), true), {});
  ASSERT_TRUE(listener) << listener.error().message();
  Socket push = make(SocketType::push);
  ASSERT_TRUE(push.set(option::send_buffer, 16'384));
  ASSERT_TRUE(push.set(option::linger, 0ms));
  connect(push, (*listener)->bound_endpoint());
  constexpr int kParts = 100;
  const std::string small(100, '.');
  const std::string large(50'000, '.');  // a message is more than the kernel's buffers hold
  for (const std::size_t taken : {1u, 10u, 50'000u, 60'000u, 1'000'000u}) {
    for (int message = 0; message < 3; ++message) {
      for (int part = 0; part < kParts; ++part) {
        ASSERT_TRUE(push.send(std::to_string(part) + (part % 2 == 0 ? small : large),
                              part + 1 < kParts ? More::yes : More::no));
      }
    }
    WirePeer peer = WirePeer::accept(**listener, zmtp::WireType::pull);
    const WirePeer::Frame first = peer.read_frame();
    EXPECT_EQ(first.body, "0" + small) << "before " << taken << " bytes were taken";
    EXPECT_EQ(first.flags, kMore);
    peer.read_bytes(taken);
  }
}

TEST_P(Wire, CommandsMayStandBetweenThePartsOfAMessage) {
  Socket pull = make(SocketType::pull);
  WirePeer peer = WirePeer::dial(bind(pull), zmtp::WireType::push);
  std::uint8_t ping[zmtp::kPingFrameMax];
  const std::string command(as_text(Bytes(ping, zmtp::write_ping(ping, 0, as_bytes("context")))));
  peer.write(wire_frame(kMore, "a") + command + wire_frame(kMore, "b") + command + wire_frame(0, "c"));
  EXPECT_EQ(recv(pull), (Texts{"a", "b", "c"}));
  for (int i = 0; i < 2; ++i) {
    const WirePeer::Frame pong = peer.read_frame();
    EXPECT_EQ(pong.flags, zmtp::kCommand);
    EXPECT_EQ(pong.body, std::string("\4PONG") + "context");
  }
}

// The application's thread reads both, and takes the message.
TEST_P(Wire, APingBehindTheLastMessageIsAnsweredThoughTheApplicationReceivesNoMore) {
  Socket pull = make(SocketType::pull);
  ASSERT_TRUE(pull.set(option::heartbeat_interval, 0ms));
  WirePeer peer = WirePeer::dial(bind(pull), zmtp::WireType::push);
  std::uint8_t ping[zmtp::kPingFrameMax];
  const std::string command(as_text(Bytes(ping, zmtp::write_ping(ping, 0, {}))));
  const std::string part(300, 'p');
  for (int i = 0; i < 3; ++i) {  // the first may arrive before the I/O thread leaves reading to the application
    peer.write(wire_frame(0, "last") + command);
    EXPECT_EQ(recv_text(pull), "last");
    EXPECT_EQ(peer.read_frame().body, "\4PONG");
    peer.write(wire_frame(kMore, part) + wire_frame(0, part) + command);
    EXPECT_EQ(recv(pull), (Texts{part, part}));
    EXPECT_EQ(peer.read_frame().body, "\4PONG");
  }
}

TEST_P(WireWithoutWebSocket, ASilentPeerIsPingedAndThenLeft) {
  Socket pull = make(SocketType::pull);
  ASSERT_TRUE(pull.watch_events());
  ASSERT_TRUE(pull.set(option::heartbeat_interval, 10ms));
  ASSERT_TRUE(pull.set(option::heartbeat_timeout, 30ms));
  WirePeer peer = WirePeer::dial(bind(pull), zmtp::WireType::push);
  const WirePeer::Frame ping = peer.read_frame();
  EXPECT_EQ(ping.flags, zmtp::kCommand);
  EXPECT_EQ(ping.body.substr(0, 5), "\4PING");
  EXPECT_EQ(wait_for_event(pull, EventKind::disconnected).reason, Errc::timed_out);
}

TEST_P(WireWithoutWebSocket, APeerThatAnswersIsKept) {
  Socket pull = make(SocketType::pull);
  ASSERT_TRUE(pull.watch_events());
  ASSERT_TRUE(pull.set(option::heartbeat_interval, 5ms));
  ASSERT_TRUE(pull.set(option::heartbeat_timeout, kLong));
  WirePeer peer = WirePeer::dial(bind(pull), zmtp::WireType::push);
  wait_for_peers(pull);
  for (int i = 0; i < 5; ++i) {
    const WirePeer::Frame ping = peer.read_frame();
    ASSERT_EQ(ping.body.substr(0, 5), "\4PING");
    peer.write(wire_frame(zmtp::kCommand, "\4PONG"));
  }
  EXPECT_EQ(pull.next_event(0ms).error(), Errc::timed_out);
  peer.write(wire_frame(0, "alive"));
  EXPECT_EQ(recv_text(pull), "alive");
}

TEST_P(Wire, ASocketThatOnlySendsDropsIncomingMessagesAndStillAnswersPings) {
  Socket push = make(SocketType::push);
  ASSERT_TRUE(push.set(option::receive_high_water_mark, 10));
  WirePeer peer = WirePeer::dial(bind(push), zmtp::WireType::pull);
  std::string flood;
  for (int i = 0; i < 5000; ++i) {
    flood += wire_frame(i % 2 == 0 ? kMore : 0, std::string(100, 'f'));
  }
  std::uint8_t ping[zmtp::kPingFrameMax];
  peer.write(flood + std::string(as_text(Bytes(ping, zmtp::write_ping(ping, 0, {})))));
  EXPECT_EQ(peer.read_frame().body, "\4PONG");
  send(push, "still works");
  EXPECT_EQ(peer.read_frame().body, "still works");
}

}  // namespace
}  // namespace weft::conformance
