// SPDX-License-Identifier: MIT
// Bounds on messages and subscriptions. The sender's own call fails with them, and a peer that exceeds one loses that
// subscription or message alone. An endpoint that ends its connections, or is absent, is never tried in a quick loop.
#include "tests/conformance/conformance.h"
#include "tests/conformance/wire.h"
#include "weft/msg/socket/socket_core.h"

namespace weft::conformance {
namespace {

constexpr std::size_t kTopicMax = 65'536;

class Bounds : public Conformance {};
WEFT_EVERY_TRANSPORT(Bounds);

TEST_P(Bounds, ATopicThatAPublisherWouldDropIsRefusedToTheSubscriber) {
  Socket pub = make(SocketType::pub);
  Socket sub = make(SocketType::sub);
  Socket xsub = make(SocketType::xsub);
  ASSERT_TRUE(sub.watch_events());
  const std::string endpoint = bind(pub);
  const std::string long_topic(kTopicMax + 1, 'x');
  EXPECT_EQ(sub.subscribe(long_topic).error(), Errc::invalid_argument);
  connect(sub, endpoint);
  EXPECT_EQ(sub.subscribe(long_topic).error(), Errc::invalid_argument);
  EXPECT_EQ(xsub.send(note(true, long_topic)).error(), Errc::invalid_argument);
  EXPECT_TRUE(xsub.send(note(true, long_topic.substr(1))));
  EXPECT_TRUE(sub.subscribe(long_topic.substr(1)));
  synchronize(pub, sub);
  send(pub, long_topic);
  EXPECT_EQ(recv_text(sub), long_topic);
  EXPECT_EQ(sub.statistics()->disconnected, 0u);
}

TEST_P(Bounds, ASubscriptionBeyondSubscriptionsMaxIsRefused) {
  for (const SocketType type : {SocketType::sub, SocketType::xsub}) {
    Socket sub = make(type);
    ASSERT_TRUE(sub.set(option::subscriptions_max, 2));
    EXPECT_TRUE(sub.subscribe("a"));
    EXPECT_TRUE(sub.subscribe(Filter::exact("b").value()));
    EXPECT_TRUE(sub.subscribe("a"));  // is there already
    EXPECT_EQ(sub.subscribe("c").error(), Errc::invalid_argument);
    EXPECT_EQ(sub.subscribe(Filter::exact("c").value()).error(), Errc::invalid_argument);
    EXPECT_TRUE(sub.unsubscribe("a"));
    EXPECT_TRUE(sub.unsubscribe("a"));
    EXPECT_TRUE(sub.subscribe("c"));
  }
  Socket dish = make(SocketType::dish);
  ASSERT_TRUE(dish.set(option::subscriptions_max, 1));
  EXPECT_TRUE(dish.join("a"));
  EXPECT_EQ(dish.join("b").error(), Errc::invalid_argument);
}

TEST_P(Bounds, APartBeyondMessagePartsMaxIsRefusedAndTheMessageCanEnd) {
  const std::pair<SocketType, SocketType> pairs[] = {{SocketType::push, SocketType::pull},
                                                     {SocketType::dealer, SocketType::dealer},
                                                     {SocketType::pair, SocketType::pair},
                                                     {SocketType::req, SocketType::rep}};
  for (const auto& [from_type, to_type] : pairs) {
    Socket from = make(from_type);
    Socket to = make(to_type);
    ASSERT_TRUE(from.set(option::message_parts_max, 3));
    ASSERT_TRUE(to.set(option::message_parts_max, 3));
    connect(from, bind(to));
    EXPECT_TRUE(from.send("1", More::yes));
    EXPECT_TRUE(from.send("2", More::yes));
    EXPECT_EQ(from.send("3", More::yes).error(), Errc::message_too_large);
    EXPECT_TRUE(from.send("3"));
    EXPECT_EQ(recv(to), (Texts{"1", "2", "3"}));
  }
}

TEST_P(Bounds, APartBeyondMaxSendSizeIsRefused) {
  Socket push = make(SocketType::push);
  Socket pull = make(SocketType::pull);
  ASSERT_TRUE(push.set(option::max_send_size, 1000));
  connect(push, bind(pull));
  EXPECT_EQ(push.send(std::string(1001, 'x')).error(), Errc::message_too_large);
  send(push, std::string(1000, 'x'));
  EXPECT_EQ(recv_text(pull).size(), 1000u);
}

TEST_P(Bounds, AMessageOfAHundredThousandPartsArrives) {
  constexpr std::size_t kParts = 100'000;
  Socket push = make(SocketType::push);
  Socket pull = make(SocketType::pull);
  connect(push, bind(pull));
  for (std::size_t i = 0; i < kParts; ++i) {
    ASSERT_TRUE(push.send("p", i + 1 < kParts ? More::yes : More::no));
  }
  EXPECT_EQ(recv(pull).size(), kParts);
}

class PeerBounds : public Conformance {};
WEFT_TRANSPORTS_WHERE(PeerBounds, in_the_clear);

TEST_P(PeerBounds, ATooLongTopicOfAPeerIsDroppedAndThePeerStays) {
  Socket pub = make(SocketType::pub);
  ASSERT_TRUE(pub.watch_events());
  WirePeer peer = WirePeer::dial(bind(pub), zmtp::WireType::sub);
  const std::uint8_t flags = GetParam().websocket() ? 0 : zmtp::kCommand;
  for (const std::size_t size : {kTopicMax + 1, std::size_t{1} << 20}) {
    const std::string topic(size, 'x');
    peer.write(wire_frame(flags, subscription(GetParam(), true, topic)));
    peer.write(wire_frame(0, note(true, topic)));
  }
  peer.write(wire_frame(flags, subscription(GetParam(), true, "short")));
  const Instant end = sys::now() + kLong;
  while (pub.core()->subscribers().value_or(0) == 0) {
    ASSERT_LT(sys::now(), end);
    std::this_thread::yield();
  }
  send(pub, std::string(kTopicMax + 1, 'x'));
  send(pub, "short news");
  EXPECT_EQ(peer.read_frame().body, "short news");
  const Statistics counts = pub.statistics().value();
  EXPECT_EQ(counts.bounds_exceeded, 4u);
  EXPECT_EQ(counts.disconnected, 0u);
  EXPECT_STREQ(wait_for_event(pub, EventKind::bound_exceeded).reason.text(), "subscription exceeds its limit");
  while (const auto event = pub.next_event(Duration::zero())) {
    EXPECT_NE(event->kind, EventKind::bound_exceeded) << "one event a connection, so that others have room";
  }
}

TEST_P(PeerBounds, AMessageOfTooManyPartsIsDroppedAndThePeerStays) {
  for (const SocketType type : {SocketType::pull, SocketType::dealer, SocketType::router}) {
    Socket socket = make(type);
    ASSERT_TRUE(socket.set(option::message_parts_max, 3));
    ASSERT_TRUE(socket.watch_events());
    WirePeer peer =
        WirePeer::dial(bind(socket), type == SocketType::pull ? zmtp::WireType::push : zmtp::WireType::dealer);
    std::string bytes;
    for (int i = 0; i < 100; ++i) {
      bytes += wire_frame(i < 99 ? zmtp::kMore : 0, "part");
    }
    peer.write(bytes + wire_frame(zmtp::kMore, "next") + wire_frame(0, "end"));
    EXPECT_EQ(wait_for_event(socket, EventKind::bound_exceeded).reason, Errc::message_too_large);
    const Texts texts = recv(socket);
    EXPECT_EQ(texts[texts.size() - 2], "next");
    EXPECT_EQ(texts.back(), "end");
    const Statistics counts = socket.statistics().value();
    EXPECT_EQ(counts.dropped_excess, 1u);
    EXPECT_EQ(counts.bounds_exceeded, 1u);
    EXPECT_EQ(counts.disconnected, 0u);
  }
}

TEST_P(PeerBounds, APeerThatEndsEachConnectionIsTriedLessAndLessOften) {
  constexpr Duration kSettled = 2s;  // after a connection that lasted for so long, the delays begin anew
  std::vector<Duration> delays;
  // A machine that stops this test for so long makes such a connection. Then all begins anew.
  for (const Instant end = sys::now() + kLong; delays.size() < 4;) {
    ASSERT_LT(sys::now(), end);
    delays.clear();
    auto listener = net::Listener::open(*net::parse_endpoint(new_endpoint(), true), {});
    ASSERT_TRUE(listener) << listener.error().message();
    Socket sub = make(SocketType::sub);
    ASSERT_TRUE(sub.watch_events());
    connect(sub, (*listener)->bound_endpoint());
    for (bool short_ones = true; short_ones && delays.size() < 4;) {
      const Instant begin = sys::now();
      (void)WirePeer::accept(**listener, zmtp::WireType::pub);  // and ends it
      const Duration delay = wait_for_event(sub, EventKind::connect_retried).delay;
      short_ones = sys::now() - begin < kSettled;
      if (short_ones) {
        delays.push_back(delay);
      }
    }
  }
  Duration ceiling = 20ms;
  for (const Duration delay : delays) {
    EXPECT_GE(delay, ceiling / 2);
    EXPECT_LT(delay, ceiling);
    ceiling *= 2;
  }
}

class AbsentPeer : public Conformance {};
INSTANTIATE_TEST_SUITE_P(Tcp, AbsentPeer, testing::Values(kTransports[1]),
                         [](const auto& row) { return std::string(row.param.name); });

TEST_P(AbsentPeer, NoIntervalMakesAQuickLoop) {
  for (const Duration interval : {0ms, 1ms}) {
    Socket push = make(SocketType::push);
    ASSERT_TRUE(push.set(option::reconnect_interval, interval));
    ASSERT_TRUE(push.set(option::reconnect_interval_max, 0ms));
    ASSERT_TRUE(push.watch_events());
    connect(push, free_endpoint());
    Duration delay{0};
    for (int i = 0; i < 39; ++i) {
      delay = wait_for_event(push, EventKind::connect_retried).delay;
    }
    EXPECT_GE(delay, 100ms);
  }
}

}  // namespace
}  // namespace weft::conformance
