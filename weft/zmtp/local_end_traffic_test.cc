// SPDX-License-Identifier: MIT
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <new>

#include "weft/zmtp/local_end.h"
#include "weft/zmtp/test_support.h"
#include <gtest/gtest.h>

namespace {
std::atomic<std::size_t> g_allocations{0};
}  // namespace

// Counts the allocations of the whole test program, to prove that traffic allocates nothing. Not inlined,
// since GCC would then see free() on memory from new and warn.
[[gnu::noinline]] void* operator new(std::size_t size) {
  g_allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* memory = std::malloc(size); memory != nullptr) {
    return memory;
  }
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace weft::zmtp::test {
namespace {

using enum WireType;
using std::chrono::milliseconds;

void expect_command_fault(const Buffer& body, Errc code, std::string_view text, const Limits& limits = {}) {
  LocalEndConfig config = config_of(xpub);
  config.limits = limits;
  LocalEnd peer = ready_peer(std::move(config), "SUB");
  EXPECT_EQ(peer.handle_command(body, kStart).kind, Event::Kind::none);
  ASSERT_TRUE(peer.fault()) << text;
  EXPECT_EQ(peer.fault()->code, code);
  EXPECT_EQ(peer.fault()->text.c_str(), text);
  EXPECT_TRUE(peer.pending_output().empty());
  EXPECT_EQ(peer.handle_command(wire("04 'PONG'"), kStart).kind, Event::Kind::none) << "worked on after a fault";
  EXPECT_EQ(peer.parse_legacy_subscription(wire("01"), kStart).kind, Event::Kind::none);
}

TEST(PeerTraffic, RefusesMalformedCommands) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"", "malformed command"},
      {"00", "malformed command"},
      {"05 'PING'", "malformed command"},
      {"04 'PING' 00", "malformed PING command"},
      {"04 'PONG' '0123456789abcdefg'", "malformed PONG command"},
      {"05 'ERROR'", "malformed ERROR command"},
      {"05 'ERROR' 02 'x'", "malformed ERROR command"},
      {"05 'READY' 0B 'Socket-Type' 00000003 'SUB'", "peer sent READY twice"},
  };
  for (const auto& [body, text] : cases) {
    expect_command_fault(wire(body), Errc::protocol_error, text);
  }
}

TEST(PeerTraffic, IgnoresUnknownCommandsAndComparesNamesExactly) {
  LocalEnd peer = ready_peer(config_of(xpub), "SUB");
  for (const std::string_view body : {"04 'JOIN' 'group'", "09 'subscribe' 'a'", "01 'X'", "05 'PING ' 00"}) {
    EXPECT_EQ(peer.handle_command(wire(body), kStart).kind, Event::Kind::none) << body;
  }
  EXPECT_FALSE(peer.fault());
}

TEST(PeerTraffic, LegacySubscriptionsBeginWithOneOrZero) {
  LocalEnd peer = ready_peer(config_of(xpub), "SUB");
  const Buffer subscribe = wire("01 'topic'");
  const Event event = peer.parse_legacy_subscription(subscribe, kStart);
  EXPECT_EQ(event.kind, Event::Kind::subscribe);
  EXPECT_EQ(as_text(event.topic_or_context), "topic");
  EXPECT_EQ(peer.parse_legacy_subscription(wire("00"), kStart).kind, Event::Kind::cancel);
  EXPECT_EQ(peer.parse_legacy_subscription(wire("02 'topic'"), kStart).kind, Event::Kind::none);
  EXPECT_EQ(peer.parse_legacy_subscription({}, kStart).kind, Event::Kind::none);
}

TEST(PeerTraffic, BoundsTopicsInBothForms) {
  Limits limits;
  limits.subscription_bytes_max = 3;
  LocalEndConfig config = config_of(xpub);
  config.limits = limits;
  LocalEnd peer = ready_peer(config, "SUB");
  EXPECT_EQ(peer.handle_command(wire("09 'SUBSCRIBE' 'abc'"), kStart).kind, Event::Kind::subscribe);
  EXPECT_EQ(peer.handle_command(wire("06 'CANCEL' 'abc'"), kStart).kind, Event::Kind::cancel);
  EXPECT_EQ(peer.parse_legacy_subscription(wire("01 'abc'"), kStart).kind, Event::Kind::subscribe);
  EXPECT_EQ(peer.parse_legacy_subscription(wire("00 'abcd'"), kStart).kind, Event::Kind::excess);
  for (const std::string_view body : {"09 'SUBSCRIBE' 'abcd'", "06 'CANCEL' 'abcd'"}) {
    EXPECT_EQ(peer.handle_command(wire(body), kStart).kind, Event::Kind::excess);
  }
  EXPECT_FALSE(peer.fault());
}

TEST(PeerTraffic, BoundsOtherCommands) {
  Limits limits;
  limits.command_bytes_max = 8;
  LocalEndConfig config = config_of(xpub);
  config.limits = limits;
  LocalEnd peer = ready_peer(config, "SUB");
  EXPECT_EQ(peer.handle_command(wire("04 'PONG' 'abc'"), kStart).kind, Event::Kind::pong);
  for (const std::string_view body : {"04 'PONG' 'abcd'", "03 'FOO' 'abcde'"}) {
    expect_command_fault(wire(body), Errc::message_too_large, "command exceeds its limit", limits);
  }
}

TEST(PeerTraffic, AdmitsFramesUpToTheirLimits) {
  LocalEndConfig config = config_of(xpub);
  config.limits.frame_bytes_max = 1000;
  config.limits.subscription_bytes_max = 1000;
  config.limits.subscription_dropped_max = 2000;
  const auto admits = [&config](std::uint8_t flags, std::uint64_t size) {
    LocalEnd peer = ready_peer(config, config.socket_type == xpub ? "SUB" : "PUSH");
    const bool admitted = peer.admit({flags, 9, size});
    EXPECT_EQ(admitted, !peer.fault());
    EXPECT_TRUE(admitted || peer.fault()->code == Errc::message_too_large);
    return admitted;
  };
  EXPECT_TRUE(admits(0, 1000));
  EXPECT_FALSE(admits(kMore | kLong, 1001));
  EXPECT_TRUE(admits(kCommand | kLong, 2010));
  EXPECT_FALSE(admits(kCommand | kLong, 2011));
  config.socket_type = WireType::pull;  // takes no subscriptions, and so drops none
  EXPECT_TRUE(admits(kCommand | kLong, 1024));
  EXPECT_FALSE(admits(kCommand | kLong, 1025));
  config.limits.command_bytes_max = 3000;
  EXPECT_TRUE(admits(kCommand | kLong, 3000));
  EXPECT_FALSE(admits(kCommand | kLong, 3001));
  config.limits.frame_bytes_max = Limits{}.frame_bytes_max;
  EXPECT_TRUE(admits(kLong, kFrameBodySizeMax));
}

TEST(PeerTraffic, AFloodOfCommandsOfOneKindIsAFault) {
  LocalEndConfig config = config_of(radio);
  config.limits.pings = config.limits.pongs = config.limits.subscriptions = config.limits.unknown_commands = {4, 2};
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"04 'PING' 0000", "more PING commands than the limit"},
      {"04 'PONG'", "more PONG commands than the limit"},
      {"09 'SUBSCRIBE' 'a'", "more subscriptions and cancellations than the limit"},
      {"06 'CANCEL' 'a'", "more subscriptions and cancellations than the limit"},
      {"04 'JOIN' 'a'", "more JOIN and LEAVE commands than the limit"},
      {"03 'FOO'", "more unknown commands than the limit"},
  };
  for (const auto& [text, fault] : cases) {
    const Buffer body = wire(text);
    LocalEnd peer = ready_peer(config, "DISH");
    for (int i = 0; i < 4; ++i) {
      (void)peer.handle_command(body, kStart);
    }
    for (int second = 1; second <= 5; ++second) {
      (void)peer.handle_command(body, kStart + std::chrono::seconds(second));
      (void)peer.handle_command(body, kStart + std::chrono::seconds(second));
    }
    EXPECT_FALSE(peer.fault()) << text;
    EXPECT_EQ(peer.handle_command(body, kStart + std::chrono::seconds(5)).kind, Event::Kind::none);
    ASSERT_TRUE(peer.fault()) << text;
    EXPECT_EQ(peer.fault()->text.c_str(), fault);
  }
}

TEST(PeerTraffic, AFloodOfOldSubscriptionsIsAFault) {
  LocalEndConfig config = config_of(xpub);
  config.limits.subscriptions = {2, 1};
  LocalEnd peer = ready_peer(config, "SUB");
  EXPECT_EQ(peer.parse_legacy_subscription(wire("01 'a'"), kStart).kind, Event::Kind::subscribe);
  EXPECT_EQ(peer.parse_legacy_subscription(wire("00 'a'"), kStart).kind, Event::Kind::cancel);
  EXPECT_EQ(peer.parse_legacy_subscription(wire("02 'a'"), kStart).kind, Event::Kind::none);
  EXPECT_FALSE(peer.fault()) << "a message";
  EXPECT_EQ(peer.parse_legacy_subscription(wire("01 'a'"), kStart).kind, Event::Kind::none);
  EXPECT_TRUE(peer.fault());
}

TEST(PeerTraffic, ASubscriberWithManyTopicsStaysWithinTheRate) {
  LocalEnd peer = ready_peer(config_of(xpub), "SUB");
  const Buffer subscribe = wire("09 'SUBSCRIBE' 'a'");
  for (int i = 0; i < 200'000; ++i) {
    ASSERT_EQ(peer.handle_command(subscribe, kStart).kind, Event::Kind::subscribe) << i;
  }
}

TEST(PeerTraffic, AFloodOfPingsIsAFault) {
  LocalEndConfig config = config_of(rep);
  config.limits.pings = {3, 3};
  LocalEnd peer = ready_peer(config, "REQ");
  const Buffer ping = wire("04 'PING' 0000");
  Instant now = kStart;
  for (int second = 0; second < 3; ++second, now += std::chrono::seconds(1)) {
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(peer.handle_command(ping, now + milliseconds(999)).kind, Event::Kind::ping);
    }
  }
  EXPECT_EQ(peer.handle_command(ping, now - milliseconds(2)).kind, Event::Kind::none);
  ASSERT_TRUE(peer.fault());
  EXPECT_STREQ(peer.fault()->text, "more PING commands than the limit");
}

TEST(PeerTraffic, OnlyARadioIsJoined) {
  const Buffer join = wire("04 'JOIN' 'group'");
  const Buffer leave = wire("05 'LEAVE'");
  LocalEnd peer = ready_peer(config_of(radio), "DISH");
  Event event = peer.handle_command(join, kStart);
  EXPECT_EQ(event.kind, Event::Kind::join);
  EXPECT_EQ(as_text(event.topic_or_context), "group");
  event = peer.handle_command(leave, kStart);
  EXPECT_EQ(event.kind, Event::Kind::leave);
  EXPECT_TRUE(event.topic_or_context.empty());
  LocalEnd publisher = ready_peer(config_of(pub), "SUB");
  EXPECT_EQ(publisher.handle_command(join, kStart).kind, Event::Kind::none);
  EXPECT_FALSE(publisher.fault());
}

TEST(PeerTraffic, BoundsGroups) {
  LocalEnd peer = ready_peer(config_of(radio), "DISH");
  Buffer join = wire("04 'JOIN'");
  join.insert(join.end(), 255, 'g');
  EXPECT_EQ(peer.handle_command(join, kStart).kind, Event::Kind::join);
  join.push_back('g');
  EXPECT_EQ(peer.handle_command(join, kStart).kind, Event::Kind::none);
  ASSERT_TRUE(peer.fault());
  EXPECT_EQ(peer.fault()->code, Errc::protocol_error);
}

TEST(PeerTraffic, AnErrorAfterTheHandshakeIsReportedNotObeyed) {
  LocalEnd peer = ready_peer(config_of(rep), "REQ");
  const Buffer body = wire("05 'ERROR' 04 'busy'");
  const Event event = peer.handle_command(body, kStart);
  EXPECT_EQ(event.kind, Event::Kind::error);
  EXPECT_EQ(as_text(event.topic_or_context), "busy");
  EXPECT_FALSE(peer.fault());
}

TEST(PeerTraffic, AllocatesNothing) {
  LocalEndConfig config = config_of(xpub);
  config.heartbeat_interval = milliseconds(1);
  LocalEnd peer = ready_peer(config, "SUB");
  const Buffer stream = wire("04 0B 09 'SUBSCRIBE' 'a' 04 07 04 'PING' 0001 00 02 00 'a' 00 03 'abc' 04 05 04 'PONG'");
  Instant now = kStart;
  int events = 0;
  const std::size_t before = g_allocations.load();
  for (int round = 0; round < 100; ++round, now += milliseconds(1)) {
    for (Bytes rest(stream); !rest.empty();) {
      ZmtpFrameHeader header;
      if (parse_frame_header(rest, header) != ParseStatus::complete || !peer.admit(header)) {
        break;
      }
      const Bytes body = rest.subspan(header.header_size, header.body_size);
      const bool command = (header.flags & kCommand) != 0;
      const Event event = command ? peer.handle_command(body, now) : peer.parse_legacy_subscription(body, now);
      events += event.kind != Event::Kind::none ? 1 : 0;
      rest = rest.subspan(header.header_size + header.body_size);
    }
    std::uint8_t frame[kPingFrameMax];
    if (peer.handle_time(now, now) == TimeAction::send_ping) {
      (void)write_ping(frame, peer.ping_ttl_deciseconds(), {});
    }
  }
  EXPECT_EQ(g_allocations.load(), before);
  EXPECT_EQ(events, 400);
  EXPECT_FALSE(peer.fault());
}

}  // namespace
}  // namespace weft::zmtp::test
