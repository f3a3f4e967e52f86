// SPDX-License-Identifier: MIT
#include <chrono>

#include "weft/zmtp/local_end.h"
#include "weft/zmtp/test_support.h"
#include <gtest/gtest.h>

namespace weft::zmtp::test {
namespace {

using namespace std::chrono_literals;
using enum WireType;

constexpr Duration kTick{1};

LocalEndConfig heartbeats(Duration interval, Duration timeout = Duration(-1)) {
  LocalEndConfig config = config_of(rep);
  config.heartbeat_interval = interval;
  config.heartbeat_timeout = timeout;
  return config;
}

void expect_expired(LocalEnd& peer, Instant now, Instant last_input, std::string_view text) {
  EXPECT_EQ(peer.next_deadline(last_input), now);
  EXPECT_EQ(peer.handle_time(now - kTick, last_input), TimeAction::none);
  EXPECT_EQ(peer.handle_time(now, last_input), TimeAction::expired);
  ASSERT_TRUE(peer.fault());
  EXPECT_EQ(peer.fault()->code, Errc::timed_out);
  EXPECT_EQ(peer.fault()->text.c_str(), text);
  EXPECT_EQ(peer.next_deadline(last_input), kNever);
  EXPECT_EQ(peer.handle_time(now + 1h, last_input), TimeAction::none);
}

TEST(PeerTime, AHandshakeHasADeadline) {
  LocalEnd peer = started(config_of(rep));
  expect_expired(peer, kStart + 30s, kStart, "handshake took too long");
}

TEST(PeerTime, ATrickleOfInputDoesNotMoveTheHandshakeDeadline) {
  LocalEnd peer = started(config_of(rep));
  EXPECT_EQ(peer.handle_input(greeting_bytes(3, 1), kStart + 20s), 64U);
  expect_expired(peer, kStart + 30s, kStart + 29s, "handshake took too long");
}

TEST(PeerTime, ZeroMeansNoHandshakeDeadline) {
  LocalEndConfig config = config_of(rep);
  config.handshake_timeout = Duration::zero();
  LocalEnd peer = started(config);
  EXPECT_EQ(peer.next_deadline(kStart), kNever);
  EXPECT_EQ(peer.handle_time(kStart + 24h, kStart), TimeAction::none);
}

TEST(PeerTime, AReadyPeerWithoutHeartbeatsHasNoDeadline) {
  LocalEnd peer = ready_peer(config_of(rep), "REQ");
  EXPECT_EQ(peer.next_deadline(kStart), kNever);
  EXPECT_EQ(peer.handle_time(kStart + 24h, kStart), TimeAction::none);
  EXPECT_FALSE(peer.fault());
}

TEST(PeerTime, PingsComeAtEveryIntervalWhileThePeerIsAlive) {
  LocalEnd peer = ready_peer(heartbeats(10s), "REQ");
  for (int i = 1; i <= 5; ++i) {
    const Instant due = kStart + i * 10s;
    EXPECT_EQ(peer.next_deadline(due - 1s), due);
    EXPECT_EQ(peer.handle_time(due - kTick, due - 1s), TimeAction::none);
    EXPECT_EQ(peer.handle_time(due, due - 1s), TimeAction::send_ping);
    EXPECT_EQ(peer.handle_time(due, due - 1s), TimeAction::none) << "one PING, not two";
  }
  EXPECT_FALSE(peer.fault());
}

TEST(PeerTime, AnUnansweredPingExpiresAfterTheInterval) {
  LocalEnd peer = ready_peer(heartbeats(10s), "REQ");
  EXPECT_EQ(peer.handle_time(kStart + 10s, kStart), TimeAction::send_ping);
  expect_expired(peer, kStart + 20s, kStart, "peer is silent");
}

TEST(PeerTime, WithATimeoutOfZeroSilenceIsForever) {
  LocalEnd peer = ready_peer(heartbeats(10s, 0s), "REQ");
  EXPECT_EQ(peer.handle_time(kStart + 10s, kStart), TimeAction::send_ping);
  EXPECT_EQ(peer.handle_time(kStart + 1h, kStart), TimeAction::send_ping);
  EXPECT_FALSE(peer.fault());
}

TEST(PeerTime, AShortTimeoutExpiresBeforeTheNextPing) {
  LocalEnd peer = ready_peer(heartbeats(10s, 2s), "REQ");
  EXPECT_EQ(peer.handle_time(kStart + 10s, kStart + 10s - kTick), TimeAction::send_ping);
  expect_expired(peer, kStart + 12s, kStart + 10s - kTick, "peer is silent");
}

TEST(PeerTime, ALongTimeoutCountsFromTheFirstUnansweredPing) {
  LocalEnd peer = ready_peer(heartbeats(10s, 25s), "REQ");
  EXPECT_EQ(peer.handle_time(kStart + 10s, kStart), TimeAction::send_ping);
  EXPECT_EQ(peer.handle_time(kStart + 20s, kStart), TimeAction::send_ping);
  EXPECT_EQ(peer.handle_time(kStart + 30s, kStart), TimeAction::send_ping);
  expect_expired(peer, kStart + 35s, kStart, "peer is silent");
}

TEST(PeerTime, AnyInputAnswersAPing) {
  LocalEnd peer = ready_peer(heartbeats(10s, 5s), "REQ");
  EXPECT_EQ(peer.handle_time(kStart + 10s, kStart), TimeAction::send_ping);
  EXPECT_EQ(peer.next_deadline(kStart + 11s), kStart + 20s);
  EXPECT_EQ(peer.handle_time(kStart + 15s, kStart + 11s), TimeAction::none);
  EXPECT_EQ(peer.handle_time(kStart + 20s, kStart + 11s), TimeAction::send_ping);
  expect_expired(peer, kStart + 25s, kStart + 11s, "peer is silent");
}

TEST(PeerTime, InputAtTheInstantOfThePingCountsAsItsAnswer) {
  LocalEnd peer = ready_peer(heartbeats(10s, 1s), "REQ");
  EXPECT_EQ(peer.handle_time(kStart + 10s, kStart + 10s), TimeAction::send_ping);
  EXPECT_EQ(peer.next_deadline(kStart + 10s), kStart + 20s);
}

TEST(PeerTime, ALateCallerSendsOnePingAndDoesNotBlameThePeer) {
  LocalEnd peer = ready_peer(heartbeats(10s), "REQ");
  EXPECT_EQ(peer.handle_time(kStart + 1h, kStart), TimeAction::send_ping);
  EXPECT_EQ(peer.next_deadline(kStart), kStart + 1h + 10s);
}

TEST(PeerTime, HeartbeatsStartWhenTheHandshakeIsOver) {
  LocalEnd peer = started(heartbeats(10s));
  const Buffer input = greeting_bytes(3, 1) + ready_frame("REQ");
  EXPECT_EQ(peer.handle_input(input, kStart + 7s), input.size());
  EXPECT_EQ(peer.next_deadline(kStart + 7s), kStart + 17s);
}

TEST(PeerTime, ThePeersTtlEndsASilentConnection) {
  LocalEnd peer = ready_peer(config_of(rep), "REQ");
  EXPECT_EQ(peer.handle_command(wire("04 'PING' 0005"), kStart + 1s).ttl_deciseconds, 5);
  EXPECT_EQ(peer.next_deadline(kStart + 9s), kStart + 9s + 500ms);
  expect_expired(peer, kStart + 1s + 500ms, kStart + 1s, "peer is silent");
}

TEST(PeerTime, ATtlDoesNotCountSilenceFromBeforeTheConnection) {
  LocalEnd peer = ready_peer(config_of(rep), "REQ");
  EXPECT_EQ(peer.handle_command(wire("04 'PING' 0005"), kStart).kind, Event::Kind::ping);
  EXPECT_EQ(peer.next_deadline(kStart - 1h), kStart + 500ms);
}

TEST(PeerTime, TheLastPingDecidesTheTtlAndZeroLiftsIt) {
  LocalEnd peer = ready_peer(config_of(rep), "REQ");
  EXPECT_EQ(peer.handle_command(wire("04 'PING' 0005"), kStart).kind, Event::Kind::ping);
  EXPECT_EQ(peer.handle_command(wire("04 'PING' FFFF"), kStart).kind, Event::Kind::ping);
  EXPECT_EQ(peer.next_deadline(kStart), kStart + 65535 * 100ms) << "no 16-bit milliseconds";
  EXPECT_EQ(peer.handle_command(wire("04 'PING' 0000"), kStart).kind, Event::Kind::ping);
  EXPECT_EQ(peer.next_deadline(kStart), kNever);
}

TEST(PeerTime, StartForgetsTtlAndUnansweredPings) {
  LocalEnd peer = ready_peer(heartbeats(10s), "REQ");
  EXPECT_EQ(peer.handle_command(wire("04 'PING' 0001"), kStart + 10s).kind, Event::Kind::ping);
  EXPECT_EQ(peer.handle_time(kStart + 10s, kStart + 10s), TimeAction::send_ping);
  peer.start(kStart + 1h);
  const Buffer input = greeting_bytes(3, 1) + ready_frame("REQ");
  EXPECT_EQ(peer.handle_input(input, kStart + 1h), input.size());
  const Instant before_the_ping = kStart + 9s;
  EXPECT_EQ(peer.next_deadline(before_the_ping), kStart + 1h + 10s);
}

TEST(PeerTime, OurTtlIsRoundedUpToDecisecondsAndClamped) {
  const std::pair<Duration, int> cases[] = {{0ms, 0},
                                            {1ns, 1},
                                            {100ms, 1},
                                            {101ms, 2},
                                            {65535 * 100ms, 65535},
                                            {24h, 65535},
                                            {-1s, 0},
                                            {Duration::max(), 65535}};
  for (const auto& [ttl, deciseconds] : cases) {
    LocalEndConfig config = config_of(rep);
    config.heartbeat_ttl = ttl;
    EXPECT_EQ(LocalEnd(config).ping_ttl_deciseconds(), deciseconds);
  }
}

}  // namespace
}  // namespace weft::zmtp::test
