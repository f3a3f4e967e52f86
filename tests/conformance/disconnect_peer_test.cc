// SPDX-License-Identifier: MIT
// disconnect_peer(): a SERVER or a PEER ends the connection of one peer, and of no other.
#include <atomic>

#include "tests/conformance/conformance.h"

namespace weft::conformance {
namespace {

class DisconnectPeer : public Conformance {
 protected:
  // Connects a client, which sends hello. Returns its routing id.
  [[nodiscard]] static std::uint32_t join(Socket& server, Socket& client, const std::string& endpoint) {
    connect(client, endpoint);
    send(client, "hello");
    return receive(server).routing_id();
  }
};
WEFT_EVERY_TRANSPORT(DisconnectPeer);
class DisconnectPeerStream : public DisconnectPeer {};
WEFT_TRANSPORTS_WHERE(DisconnectPeerStream, over_streams);

TEST_P(DisconnectPeer, ThatPeerIsUnknownAndTheOthersStay) {
  Socket server = make(SocketType::server);
  const std::string endpoint = bind(server);
  Socket one = make(SocketType::client);
  Socket two = make(SocketType::client);
  ASSERT_TRUE(one.set(option::reconnect_interval, Duration(-1)));
  const std::uint32_t first = join(server, one, endpoint);
  const std::uint32_t second = join(server, two, endpoint);
  EXPECT_TRUE(server.disconnect_peer(first));
  EXPECT_EQ(server.disconnect_peer(first).error(), Errc::unreachable);
  EXPECT_EQ(send_to(server, first, "late").error(), Errc::unreachable);
  ASSERT_TRUE(send_to(server, second, "still here"));
  EXPECT_EQ(recv_text(two), "still here");
  send(two, "and back");
  EXPECT_EQ(recv_text(server), "and back");
}

TEST_P(DisconnectPeer, SentMessagesArriveAndUnreadOnesAreDropped) {
  Socket server = make(SocketType::server);
  Socket client = make(SocketType::client);
  const std::string endpoint = bind(server);
  const std::uint32_t id = join(server, client, endpoint);
  send(client, "1");
  send(client, "2");
  EXPECT_EQ(recv_text(server), "1");  // the second may have come as well
  const Texts farewell = numbered("bye", 0, 100);
  for (const std::string& text : farewell) {
    ASSERT_TRUE(send_to(server, id, text));
  }
  ASSERT_TRUE(server.disconnect_peer(id));
  EXPECT_EQ(server.try_recv().error(), Errc::would_block);
  EXPECT_EQ(recv_many(client, farewell.size()), farewell);
}

TEST_P(DisconnectPeerStream, APeerThatDialledComesAgainUnderAnotherNumber) {
  Socket server = make(SocketType::server);
  Socket client = make(SocketType::client);
  ASSERT_TRUE(client.watch_events());
  const std::uint32_t first = join(server, client, bind(server));
  ASSERT_TRUE(server.disconnect_peer(first));
  wait_for_event(client, EventKind::disconnected);
  send(client, "again");
  const Message again = receive(server);
  EXPECT_EQ(again.text(), "again");
  EXPECT_NE(again.routing_id(), first);
  ASSERT_TRUE(send_to(server, again.routing_id(), "welcome"));
  EXPECT_EQ(recv_text(client), "welcome");
}

TEST_P(DisconnectPeer, ASocketThatDialledThePeerDoesNotDialItAgain) {
  Socket one = make(SocketType::peer);
  Socket two = make(SocketType::peer);
  ASSERT_TRUE(two.watch_events());
  const std::string endpoint = bind(one);
  secure_client(two);
  const std::uint32_t id = two.connect_peer(endpoint).value();
  ASSERT_TRUE(send_to(two, id, "hello"));
  const Message hello = receive(one);
  ASSERT_TRUE(two.disconnect_peer(id));
  EXPECT_EQ(two.disconnect(endpoint).error(), Errc::no_such_endpoint);
  EXPECT_EQ(send_to(two, id, "late").error(), Errc::unreachable);
  if (GetParam().streams) {
    const MonitorEvent end = wait_for_event(two, EventKind::disconnected);
    EXPECT_EQ(end.reason, Errc::closed);
    EXPECT_EQ(two.next_event(50ms).error(), Errc::timed_out) << "it dials again";
  }
  const std::uint32_t anew = two.connect_peer(endpoint).value();
  EXPECT_NE(anew, id);
  ASSERT_TRUE(send_to(two, anew, "anew"));
  const Message again = receive(one);
  EXPECT_EQ(again.text(), "anew");
  EXPECT_NE(again.routing_id(), hello.routing_id());
}

TEST_P(DisconnectPeerStream, BothEndsReportTheEndOnce) {
  Socket server = make(SocketType::server);
  Socket client = make(SocketType::client);
  ASSERT_TRUE(client.set(option::reconnect_interval, Duration(-1)));
  ASSERT_TRUE(server.watch_events());
  ASSERT_TRUE(client.watch_events());
  const std::uint32_t id = join(server, client, bind(server));
  ASSERT_TRUE(server.disconnect_peer(id));
  EXPECT_EQ(wait_for_event(server, EventKind::disconnected).reason, Errc::closed);
  wait_for_event(client, EventKind::disconnected);
  EXPECT_EQ(server.next_event(50ms).error(), Errc::timed_out);
}

TEST_P(DisconnectPeer, APeerThatIsNotThereYetIsForgotten) {
  Socket peer = make(SocketType::peer);
  const std::string endpoint = GetParam().streams ? free_endpoint() : new_endpoint();
  secure_client(peer);
  const std::uint32_t id = peer.connect_peer(endpoint).value();
  ASSERT_TRUE(send_to(peer, id, "queued"));
  ASSERT_TRUE(peer.set(option::linger, 0ms));
  ASSERT_TRUE(peer.disconnect_peer(id));
  EXPECT_EQ(send_to(peer, id, "late").error(), Errc::unreachable);
  EXPECT_EQ(peer.disconnect(endpoint).error(), Errc::no_such_endpoint);
}

TEST_P(DisconnectPeer, ASenderThatWaitsForThePeerIsRefused) {
  Socket server = make(SocketType::server);
  Socket client = make(SocketType::client);
  ASSERT_TRUE(server.set(option::send_high_water_mark, 1));
  ASSERT_TRUE(client.set(option::receive_high_water_mark, 1));
  ASSERT_TRUE(client.set(option::linger, 0ms));
  ASSERT_TRUE(server.set(option::linger, 0ms));
  const std::uint32_t id = join(server, client, bind(server));
  std::atomic<bool> full{false};
  std::thread sender([&] {
    const std::string payload(1'000'000, 'x');
    Result<void> sent;
    while (sent) {
      Message message = std::move(Message::copy_of(payload)).value();
      EXPECT_TRUE(message.set_routing_id(id));
      sent = server.try_send(std::move(message));
    }
    full = true;
    while ((sent = send_to(server, id, payload))) {
    }
    EXPECT_EQ(sent.error(), Errc::unreachable);
  });
  while (!full) {
    std::this_thread::yield();
  }
  EXPECT_TRUE(server.disconnect_peer(id));
  sender.join();
}

TEST_P(DisconnectPeer, OfManyThreadsOneEndsThePeer) {
  Socket server = make(SocketType::server);
  const std::string endpoint = bind(server);
  for (int round = 0; round < 20; ++round) {
    Socket client = make(SocketType::client);
    ASSERT_TRUE(client.set(option::reconnect_interval, Duration(-1)));
    const std::uint32_t id = join(server, client, endpoint);
    std::atomic<int> ended{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        const auto done = server.disconnect_peer(id);
        ended += done ? 1 : 0;
        EXPECT_TRUE(done || done.error() == Errc::unreachable);
      });
    }
    for (std::thread& thread : threads) {
      thread.join();
    }
    EXPECT_EQ(ended, 1);
  }
}

TEST_P(DisconnectPeer, OtherTypesRefuseIt) {
  for (const SocketType type : {SocketType::router, SocketType::client, SocketType::dealer, SocketType::stream}) {
    Socket socket = make(type);
    EXPECT_EQ(socket.disconnect_peer(1).error(), Errc::not_supported);
  }
  Socket server = make(SocketType::server);
  EXPECT_EQ(server.disconnect_peer(0).error(), Errc::unreachable);
  server.close();
  EXPECT_EQ(server.disconnect_peer(1).error(), Errc::closed);
}

}  // namespace
}  // namespace weft::conformance
