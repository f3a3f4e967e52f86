// SPDX-License-Identifier: MIT
// Publishers that take no subscriptions: they cost a subscriber a bounded amount of memory, and nothing else.
#include <map>

#include "tests/conformance/conformance.h"
#include "tests/conformance/wire.h"
#include "weft/msg/connection/send_side.h"

namespace weft::conformance {
namespace {

constexpr std::size_t kTopic = 60'000;
constexpr std::size_t kShown = 10;  // of a topic, when a test fails
constexpr std::string_view kReason = "the peer does not read our subscriptions";

class SilentPublisher : public Conformance {
 protected:
  void SetUp() override { listener_ = net::Listener::open(*net::parse_endpoint(new_endpoint(), true), {}).value(); }
  // A connection of `socket` to a publisher that shakes hands and then reads nothing.
  [[nodiscard]] WirePeer accept(zmtp::WireType type = zmtp::WireType::pub) {
    return WirePeer::accept(*listener_, type);
  }
  [[nodiscard]] Socket make_subscriber(SocketType type) {
    Socket socket = make(type);
    EXPECT_TRUE(socket.watch_events());
    connect(socket, listener_->bound_endpoint());
    return socket;
  }
  // Subscribes and cancels until the connection ends, for much longer than the bound allows.
  static void flood(Socket& socket) {
    const std::string topic(kTopic, 'f');
    for (std::size_t bytes = 0; bytes < 2 * msg::SendSide::kSubscriptionBytesMax; bytes += 2 * kTopic) {
      ASSERT_TRUE(socket.subscribe(topic));
      ASSERT_TRUE(socket.unsubscribe(topic));
    }
    const MonitorEvent event = wait_for_event(socket, EventKind::disconnected);
    EXPECT_EQ(event.reason.code(), Errc::connection_failed);
    EXPECT_EQ(event.reason.text(), kReason);
  }
  // How the topics begin that a publisher learns up to the topic "end", and how often each was subscribed to.
  [[nodiscard]] static std::map<std::string, int> learn(WirePeer& peer) {
    std::map<std::string, int> learnt;
    for (;;) {
      const std::string body = peer.read_frame().body;
      const std::string before = subscription(GetParam(), true, "");
      EXPECT_EQ(body.substr(0, before.size()), before);
      if (HasFailure() || body.substr(before.size()) == "end") {
        return learnt;
      }
      ++learnt[body.substr(before.size(), kShown)];
    }
  }

  std::unique_ptr<net::Listener> listener_;
};
WEFT_TRANSPORTS_WHERE(SilentPublisher, in_the_clear);

TEST_P(SilentPublisher, ManySubscriptionsEndItsConnectionAndTheNextBeginsWithAll) {
  Socket sub = make_subscriber(SocketType::sub);
  ASSERT_TRUE(sub.subscribe("a"));
  {
    const WirePeer deaf = accept();
    wait_for_peers(sub);
    flood(sub);
  }
  ASSERT_TRUE(sub.subscribe("b"));
  WirePeer peer = accept();
  ASSERT_TRUE(sub.subscribe("end"));
  EXPECT_EQ(learn(peer), (std::map<std::string, int>{{"a", 1}, {"b", 1}}));
}

TEST_P(SilentPublisher, OthersGetTheirSubscriptionsMeanwhile) {
  Socket pub = make(SocketType::pub);
  Socket sub = make_subscriber(SocketType::sub);
  connect(sub, bind(pub));
  const WirePeer deaf = accept();
  wait_for_peers(sub, 2);
  flood(sub);
  synchronize(pub, sub);
}

// Its kernel takes some of the first bytes of each connection. The rest must not wait for the next connection as well.
TEST_P(SilentPublisher, OneThatComesAgainAndAgainGetsEachSubscriptionOnce) {
  Socket sub = make_subscriber(SocketType::sub);
  std::map<std::string, int> all;
  for (int i = 0; i < 200; ++i) {
    const std::string topic = std::to_string(i) + std::string(kTopic, 't');
    ASSERT_TRUE(sub.subscribe(topic));
    all[topic.substr(0, kShown)] = 1;
  }
  for (int round = 0; round < 3; ++round) {
    {
      const WirePeer deaf = accept();
      wait_for_peers(sub);  // an end inside the handshake is another event
    }
    (void)wait_for_event(sub, EventKind::disconnected);
  }
  WirePeer peer = accept();
  ASSERT_TRUE(sub.subscribe("end"));
  EXPECT_EQ(learn(peer), all);
}

TEST_P(SilentPublisher, ADishIsBoundedToo) {
  Socket dish = make_subscriber(SocketType::dish);
  const WirePeer deaf = accept(zmtp::WireType::radio);
  wait_for_peers(dish);
  const std::string group(250, 'g');
  for (std::size_t bytes = 0; bytes < 2 * msg::SendSide::kSubscriptionBytesMax; bytes += 2 * group.size()) {
    ASSERT_TRUE(dish.join(group));
    ASSERT_TRUE(dish.leave(group));
  }
  EXPECT_EQ(wait_for_event(dish, EventKind::disconnected).reason.text(), kReason);
}

// An XSUB sends messages, which wait between subscriptions: they stay for the next connection.
TEST_P(SilentPublisher, TheMessagesOfAnXsubWaitForTheNextConnection) {
  Socket xsub = make_subscriber(SocketType::xsub);
  send(xsub,
       "\x01"
       "a");
  {
    WirePeer first = accept(zmtp::WireType::xpub);
    EXPECT_EQ(first.read_frame().body, subscription(GetParam(), true, "a"));
    wait_for_peers(xsub);
    flood(xsub);
  }
  WirePeer next = accept(zmtp::WireType::xpub);
  EXPECT_EQ(next.read_frame().body, subscription(GetParam(), true, "a"));
  wait_for_peers(xsub);
  send(xsub, "upstream");
  EXPECT_EQ(next.read_frame().body, "upstream");
}

}  // namespace
}  // namespace weft::conformance
