// SPDX-License-Identifier: MIT
// Messages at the beginning and the end of a connection: hello, disconnect, hiccup.
#include <utility>

#include "tests/conformance/conformance.h"

namespace weft::conformance {
namespace {

class Greeting : public Conformance {
 protected:
  // The last part of the next message: after the routing id, for types that have one.
  static std::string last_part(Socket& socket) { return recv(socket).back(); }
};
WEFT_EVERY_TRANSPORT(Greeting);
class GreetingOverStreams : public Greeting {};
WEFT_TRANSPORTS_WHERE(GreetingOverStreams, over_streams);

constexpr std::pair<SocketType, SocketType> kPairs[] = {
    {SocketType::router, SocketType::dealer}, {SocketType::dealer, SocketType::router},
    {SocketType::dealer, SocketType::dealer}, {SocketType::server, SocketType::client},
    {SocketType::client, SocketType::server}, {SocketType::peer, SocketType::peer},
};

TEST_P(Greeting, EveryNewPeerGetsAHelloFirst) {
  for (const auto& [bound, connected] : kPairs) {
    Socket server = make(bound);
    Socket client = make(connected);
    ASSERT_TRUE(server.set(option::hello_message, "hello from who was bound"));
    ASSERT_TRUE(client.set(option::hello_message, "hello from who connected"));
    connect(client, bind(server));
    EXPECT_EQ(last_part(client), "hello from who was bound");
    EXPECT_EQ(last_part(server), "hello from who connected");
    EXPECT_EQ(client.try_recv().error(), Errc::would_block);
    EXPECT_EQ(server.try_recv().error(), Errc::would_block);
  }
}

TEST_P(Greeting, AHelloComesBeforeWhatIsSent) {
  Socket server = make(SocketType::server);
  Socket client = make(SocketType::client);
  ASSERT_TRUE(client.set(option::hello_message, "hello"));
  connect(client, bind(server));
  send(client, "first");
  EXPECT_EQ(recv_many(server, 2), (Texts{"hello", "first"}));
}

TEST_P(Greeting, WhenAPeerThatConnectedGoesADisconnectComesFromIt) {
  for (const auto& [bound, connected] : kPairs) {
    Socket server = make(bound);
    Socket client = make(connected);
    const bool takes = bound != SocketType::dealer && bound != SocketType::client;
    ASSERT_TRUE(server.watch_events());
    ASSERT_TRUE(server.set(option::disconnect_message, "gone"));
    ASSERT_TRUE(server.set(option::hiccup_message, "not this one"));
    ASSERT_TRUE(client.set(option::hello_message, "hello"));
    connect(client, bind(server));
    auto got = server.recv_all();
    ASSERT_TRUE(got) << got.error().message();
    EXPECT_EQ(got->back().text(), "hello");
    const std::string id(got->front().text());
    const std::uint32_t routing_id = got->front().routing_id();
    client.close();
    if (GetParam().streams) {
      wait_for_event(server, EventKind::disconnected);
    }
    if (!takes) {
      EXPECT_EQ(server.try_recv().error(), Errc::would_block);
      continue;
    }
    got = server.recv_all();
    ASSERT_TRUE(got) << got.error().message();
    EXPECT_EQ(got->back().text(), "gone");
    EXPECT_EQ(got->front().routing_id(), routing_id);
    EXPECT_EQ(got->size(), bound == SocketType::router ? 2u : 1u);
    if (bound == SocketType::router) {
      EXPECT_EQ(got->front().text(), id);
    }
    EXPECT_EQ(server.try_recv().error(), Errc::would_block);
  }
}

TEST_P(GreetingOverStreams, WhenAConnectionIsLostAHiccupComesAndThenTheHelloOfTheNext) {
  for (const auto& [bound, connected] : kPairs) {
    const std::string endpoint = free_endpoint();
    const bool takes = connected != SocketType::router && connected != SocketType::server;
    Socket client = make(connected);
    ASSERT_TRUE(client.watch_events());
    ASSERT_TRUE(client.set(option::hiccup_message, "hiccup"));
    ASSERT_TRUE(client.set(option::disconnect_message, "not this one"));
    connect(client, endpoint);
    for (int round = 0; round < 2; ++round) {
      Socket server = make(bound);
      ASSERT_TRUE(server.set(option::hello_message, "hello"));
      secure_server(server);
      ASSERT_TRUE(server.bind(endpoint));
      EXPECT_EQ(last_part(client), "hello");
      server.close();
      wait_for_event(client, EventKind::disconnected);
      if (takes) {
        EXPECT_EQ(last_part(client), "hiccup");
      }
      EXPECT_EQ(client.try_recv().error(), Errc::would_block);
    }
  }
}

TEST_P(Greeting, OtherTypesSayNothing) {
  Socket pull = make(SocketType::pull);
  Socket push = make(SocketType::push);
  ASSERT_TRUE(push.set(option::hello_message, "hello"));
  ASSERT_TRUE(pull.set(option::disconnect_message, "gone"));
  connect(push, bind(pull));
  send(push, "first");
  push.close();
  EXPECT_EQ(recv_text(pull), "first");
  EXPECT_EQ(pull.try_recv().error(), Errc::would_block);
}

}  // namespace
}  // namespace weft::conformance
