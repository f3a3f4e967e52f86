// SPDX-License-Identifier: MIT
// Filters on the wire: the bytes that a publisher of another library gets, and the bounds on peers that lie or flood.
#include "tests/conformance/conformance.h"
#include "tests/conformance/wire.h"
#include "tests/support/sanitized.h"
#include "tests/support/thread_time.h"

namespace weft::conformance {
namespace {

using namespace std::string_literals;  // NOLINT(google-build-using-namespace)

std::string command(std::string_view name, std::string_view data) {
  return wire_frame(zmtp::kCommand,
                    std::string(1, static_cast<char>(name.size())) + std::string(name) + std::string(data));
}
std::string filter(FilterKind kind, std::string_view text, std::string_view name = "FILTER") {
  return command(name, std::string(1, static_cast<char>(kind)) + std::string(text));
}

class FilterWire : public Conformance {
 protected:
  static std::string told(bool subscribes, std::string_view topic) {
    return subscription(GetParam(), subscribes, topic);
  }
  // Shakes hands as a peer of another library, which announces no filters.
  static void shake_hands_plainly(WirePeer& peer, std::string_view type) {
    peer.write("\xff"s + std::string(8, '\0') + "\x7f\x03\x01NULL"s + std::string(48, '\0'));
    std::string ready = "\x0bSocket-Type"s + std::string(3, '\0');
    ready += static_cast<char>(type.size());
    peer.write(command("READY", ready + std::string(type)));
    EXPECT_EQ(peer.read(64).size(), 64u);
    EXPECT_EQ(peer.read_frame().flags, zmtp::kCommand);
  }
  static WirePeer plain(const std::string& endpoint) {
    WirePeer peer = WirePeer::dial(endpoint);
    shake_hands_plainly(peer, "SUB");
    return peer;
  }
  // The publisher's reason for the end of a peer.
  static std::string reason_of_end(Socket& publisher) {
    return wait_for_event(publisher, EventKind::disconnected).reason.text();
  }
};
WEFT_TRANSPORTS_WHERE(FilterWire, in_the_clear);

TEST_P(FilterWire, APublisherOfAnotherLibraryGetsLiteralHeads) {
  auto listener = net::Listener::open(*net::parse_endpoint(new_endpoint(), true), {});
  ASSERT_TRUE(listener) << listener.error().message();
  Socket sub = make(SocketType::sub);
  connect(sub, (*listener)->bound_endpoint());
  ASSERT_TRUE(sub.subscribe(*Filter::glob("a:*:b")));
  WirePeer peer = WirePeer::accept(**listener);
  shake_hands_plainly(peer, "PUB");
  EXPECT_EQ(peer.read_frame().body, told(true, "a:"));
  ASSERT_TRUE(sub.subscribe(*Filter::glob("a:*:c")));  // the same head
  EXPECT_EQ(peer.read_frame().body, told(true, "a:"));
  ASSERT_TRUE(sub.subscribe("a:"));
  EXPECT_EQ(peer.read_frame().body, told(true, "a:"));
  ASSERT_TRUE(sub.unsubscribe("a:"));
  ASSERT_TRUE(sub.unsubscribe(*Filter::glob("a:*:c")));
  for (const std::string_view topic : {"a:x:c", "b", "a:x:b"}) {  // a publisher may send more than it was asked for
    peer.write(wire_frame(0, topic));
  }
  EXPECT_EQ(recv_text(sub), "a:x:b");
  ASSERT_TRUE(sub.unsubscribe(*Filter::glob("a:*:b")));  // nothing needs the head any more
  EXPECT_EQ(peer.read_frame().body, told(false, "a:"));
  ASSERT_TRUE(sub.subscribe(*Filter::parse("px.*.last")));
  EXPECT_EQ(peer.read_frame().body, told(true, "px."));
  ASSERT_TRUE(sub.subscribe(*Filter::exact("px.1")));
  EXPECT_EQ(peer.read_frame().body, told(true, "px.1"));
}

TEST_P(FilterWire, AWeftPublisherGetsTheFilter) {
  auto listener = net::Listener::open(*net::parse_endpoint(new_endpoint(), true), {});
  ASSERT_TRUE(listener) << listener.error().message();
  Socket sub = make(SocketType::sub);
  connect(sub, (*listener)->bound_endpoint());
  ASSERT_TRUE(sub.subscribe(*Filter::glob("a:*:b")));
  WirePeer peer = WirePeer::accept(**listener, zmtp::WireType::pub);
  EXPECT_EQ(peer.read_frame().body,
            "\x6"
            "FILTER\4a:*:b");
  ASSERT_TRUE(sub.unsubscribe(*Filter::glob("a:*:b")));
  EXPECT_EQ(peer.read_frame().body, "\x8UNFILTER\4a:*:b");
  ASSERT_TRUE(sub.subscribe(*Filter::prefix("p")));
  EXPECT_EQ(peer.read_frame().body, told(true, "p"));
  peer.write(wire_frame(0, "a:x:b"));
  peer.write(wire_frame(0, "pq"));
  EXPECT_EQ(recv_text(sub), "pq");
}

TEST_P(FilterWire, APeerThatAnnouncedNoFiltersMayNotSendOne) {
  Socket pub = make(SocketType::pub);
  (void)pub.watch_events();
  WirePeer peer = plain(bind(pub));
  peer.write(filter(FilterKind::glob, "a*"));
  EXPECT_EQ(reason_of_end(pub), "a filter from a peer that announced none");
}

TEST_P(FilterWire, AFilterThatBreaksItsRulesEndsTheConnection) {
  Socket pub = make(SocketType::pub);
  (void)pub.watch_events();
  const std::string endpoint = bind(pub);
  const std::string bad[] = {
      filter(static_cast<FilterKind>(0), "a"),
      filter(static_cast<FilterKind>(5), "a"),
      filter(FilterKind::glob, "a["),
      filter(FilterKind::glob, "a\\"),
      filter(FilterKind::glob, std::string(256, 'a')),
      filter(FilterKind::exact, std::string(256, 'a')),
      filter(FilterKind::tokens, "a.b"),
      filter(FilterKind::tokens, "*.*.*.*.*"),
      filter(FilterKind::tokens, "a..*"),
      filter(FilterKind::glob, "a[", "UNFILTER"),
      command("FILTER", ""),
  };
  for (const std::string& bytes : bad) {
    WirePeer peer = WirePeer::dial(endpoint, zmtp::WireType::sub);
    peer.write(bytes);
    EXPECT_EQ(reason_of_end(pub), "malformed FILTER or UNFILTER command");
  }
}

TEST_P(FilterWire, AnUnfilterOfNothingChangesNothing) {
  Socket xpub = make(SocketType::xpub);
  WirePeer peer = WirePeer::dial(bind(xpub), zmtp::WireType::sub);
  peer.write(filter(FilterKind::glob, "a*", "UNFILTER"));
  peer.write(filter(FilterKind::glob, "a*"));
  peer.write(filter(FilterKind::tokens, "a.*", "UNFILTER"));
  EXPECT_EQ(recv_text(xpub), "\1a");
  EXPECT_EQ(xpub.topics().value(), 1u);
  send(xpub, "b");
  send(xpub, "ab");
  EXPECT_EQ(peer.read_frame().body, "ab");
}

TEST_P(FilterWire, APeerOfTooManyFiltersLosesTheLastOnesAndStays) {
  Socket pub = make(SocketType::pub);
  ASSERT_TRUE(pub.set(option::subscriptions_max, 3));
  ASSERT_TRUE(pub.watch_events());
  WirePeer peer = WirePeer::dial(bind(pub), zmtp::WireType::sub);
  for (int i = 0; i <= 3; ++i) {
    peer.write(filter(FilterKind::exact, std::to_string(i)));
  }
  EXPECT_STREQ(wait_for_event(pub, EventKind::bound_exceeded).reason.text(), "too many subscriptions");
  send(pub, "3");
  send(pub, "2");
  EXPECT_EQ(peer.read_frame().body, "2");
}

TEST_P(FilterWire, AFilterOfTheOtherSideIsAnUnknownCommand) {
  auto listener = net::Listener::open(*net::parse_endpoint(new_endpoint(), true), {});
  ASSERT_TRUE(listener) << listener.error().message();
  Socket sub = make(SocketType::sub);
  ASSERT_TRUE(sub.subscribe("a"));
  connect(sub, (*listener)->bound_endpoint());
  WirePeer peer = WirePeer::accept(**listener, zmtp::WireType::pub);
  peer.write(filter(FilterKind::glob, "["));
  peer.write(wire_frame(0, "a"));
  EXPECT_EQ(recv_text(sub), "a");
}

// The suite measures, so it runs alone.
class QuietFilterWire : public FilterWire {};
INSTANTIATE_TEST_SUITE_P(QuietTcp, QuietFilterWire, testing::Values(kTransports[1]),
                         [](const auto& row) { return std::string(row.param.name); });

// Globs that each take thousands of steps: the peer gets the topics that its bound cannot decide, and no other peer
// does.
TEST_P(QuietFilterWire, CostlyGlobsOfAPeerDoNotSlowThePublisher) {
  Socket pub = make(SocketType::pub);
  const std::string endpoint = bind(pub);
  WirePeer hostile = WirePeer::dial(endpoint, zmtp::WireType::sub);
  std::string bytes;
  for (int i = 0; i < 20'000; ++i) {
    bytes += filter(FilterKind::glob, "*" + std::to_string(i) + std::string(100, 'a') + "b*");
  }
  hostile.write(bytes + filter(FilterKind::exact, "settled"));
  Socket honest = make(SocketType::sub);
  connect(honest, endpoint);
  ASSERT_TRUE(honest.subscribe(*Filter::glob("*:hot")));
  synchronize(pub, honest);
  for (const Instant end = sys::now() + kLong; pub.topics().value() < 20'002;) {
    ASSERT_LT(sys::now(), end);
    std::this_thread::yield();
  }
  const std::string topic(240, 'a');
  const Duration bound = kSanitized ? 2s : 400ms;  // 1 ms or 200 us each
  const auto publish = [&] {
    const Duration begin = thread_time();
    for (int i = 0; i < 2000; ++i) {
      send(pub, topic + std::to_string(10'000 + i));
    }
    return thread_time() - begin;
  };
  EXPECT_LT(shortest_time(bound, publish), bound);
  send(pub, "a:hot");
  EXPECT_EQ(recv_text(honest), "a:hot");
  EXPECT_EQ(honest.statistics().value().dropped_unexpected, 0u);
}

}  // namespace
}  // namespace weft::conformance
