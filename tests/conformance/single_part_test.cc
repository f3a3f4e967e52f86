// SPDX-License-Identifier: MIT
// The types whose messages are of one part: SCATTER and GATHER (RFC 49), CHANNEL (RFC 52), CLIENT and
// SERVER (RFC 41), PEER (RFC 51).
#include <algorithm>
#include <atomic>

#include "tests/conformance/conformance.h"
#include "tests/conformance/wire.h"

namespace weft::conformance {
namespace {

using zmtp::kMore;

class SinglePart : public Conformance {
 protected:
  // A peer of type `theirs` that speaks the protocol by hand sends messages of one part and of several. Expects that
  // the socket discards and counts those of several.
  void expect_single_parts_only(SocketType ours, zmtp::WireType theirs) {
    Socket socket = make(ours);
    WirePeer peer = WirePeer::dial(bind(socket), theirs);
    const std::string large(5000, 'l');
    peer.write(wire_frame(0, "1") + wire_frame(kMore, "a") + wire_frame(0, "b") + wire_frame(0, "2") +
               wire_frame(kMore, large) + wire_frame(kMore, "") + wire_frame(0, large) + wire_frame(0, large));
    EXPECT_EQ(recv_many(socket, 3), (Texts{"1", "2", large}));
    EXPECT_EQ(socket.statistics()->dropped, 2u);
    peer.write(wire_frame(kMore, "cut"));
  }
};
WEFT_EVERY_TRANSPORT(SinglePart);
class SinglePartWire : public SinglePart {};
WEFT_TRANSPORTS_WHERE(SinglePartWire, in_the_clear);

TEST_P(SinglePart, ScatterGivesToItsGathersInTurn) {
  Socket scatter = make(SocketType::scatter);
  Socket first = make(SocketType::gather);
  Socket second = make(SocketType::gather);
  connect(scatter, bind(first));
  connect(scatter, bind(second));
  for (int i = 0; i < 10; ++i) {
    send(scatter, std::to_string(i));
  }
  EXPECT_EQ(recv_many(first, 5), (Texts{"0", "2", "4", "6", "8"}));
  EXPECT_EQ(recv_many(second, 5), (Texts{"1", "3", "5", "7", "9"}));
}

TEST_P(SinglePart, GatherTakesFromItsScattersInTurn) {
  Socket gather = make(SocketType::gather);
  const std::string endpoint = bind(gather);
  std::vector<Socket> scatters;
  Texts sent;
  for (int i = 0; i < 3; ++i) {
    scatters.push_back(make(SocketType::scatter));
    connect(scatters.back(), endpoint);
    send(scatters.back(), std::to_string(i));
    sent.push_back(std::to_string(i));
  }
  Texts got = recv_many(gather, 3);
  std::sort(got.begin(), got.end());
  EXPECT_EQ(got, sent);
}

TEST_P(SinglePart, ScatterWaitsForRoomAndLosesNothing) {
  Socket gather = make(SocketType::gather);
  Socket scatter = make(SocketType::scatter);
  ASSERT_TRUE(gather.set(option::receive_high_water_mark, 2));
  ASSERT_TRUE(scatter.set(option::send_high_water_mark, 2));
  connect(scatter, bind(gather));
  const Texts sent = numbered("m", 0, 500);
  std::thread sender([&] {
    for (const std::string& text : sent) {
      send(scatter, text);
    }
  });
  EXPECT_EQ(recv_many(gather, sent.size()), sent);
  sender.join();
}

TEST_P(SinglePart, ScatterRefusesSeveralPartsAndStaysAsItWas) {
  Socket gather = make(SocketType::gather);
  Socket scatter = make(SocketType::scatter);
  connect(scatter, bind(gather));
  EXPECT_EQ(scatter.send("first", More::yes).error(), Errc::invalid_argument);
  EXPECT_EQ(scatter.try_recv().error(), Errc::not_supported);
  EXPECT_EQ(gather.send("back").error(), Errc::not_supported);
  send(scatter, "whole");
  EXPECT_EQ(recv_text(gather), "whole");
}

TEST_P(SinglePartWire, GatherDiscardsWhatIsOfSeveralParts) {
  expect_single_parts_only(SocketType::gather, zmtp::WireType::scatter);
}

TEST_P(SinglePart, ChannelsTalkBothWays) {
  Socket one = make(SocketType::channel);
  Socket two = make(SocketType::channel);
  connect(two, bind(one));
  send(two, "ping");
  EXPECT_EQ(recv_text(one), "ping");
  send(one, "pong");
  EXPECT_EQ(recv_text(two), "pong");
  EXPECT_EQ(one.send("first", More::yes).error(), Errc::invalid_argument);
  send(one, "whole");
  EXPECT_EQ(recv_text(two), "whole");
}

TEST_P(SinglePart, AChannelWithoutAPeerDoesNotSend) {
  Socket channel = make(SocketType::channel);
  EXPECT_EQ(channel.try_send(as_bytes("nobody")).error(), Errc::would_block);
  EXPECT_EQ(channel.try_recv().error(), Errc::would_block);
}

TEST_P(SinglePart, AChannelHasOnePeerAndRefusesTheNext) {
  Socket channel = make(SocketType::channel);
  ASSERT_TRUE(channel.watch_events());
  const std::string endpoint = bind(channel);
  Socket first = make(SocketType::channel);
  connect(first, endpoint);
  send(first, "first");
  EXPECT_EQ(recv_text(channel), "first");
  Socket second = make(SocketType::channel);
  ASSERT_TRUE(second.set(option::linger, 0ms));
  connect(second, endpoint);
  if (GetParam().streams) {
    wait_for_event(channel, EventKind::handshake_failed);
  }
  send(channel, "to the first");
  EXPECT_EQ(recv_text(first), "to the first");
  EXPECT_EQ(second.try_recv().error(), Errc::would_block);
}

TEST_P(SinglePartWire, AChannelDiscardsWhatIsOfSeveralParts) {
  expect_single_parts_only(SocketType::channel, zmtp::WireType::channel);
}

TEST_P(SinglePart, AServerAnswersEachClientByItsRoutingId) {
  Socket server = make(SocketType::server);
  const std::string endpoint = bind(server);
  std::vector<Socket> clients;
  std::vector<std::uint32_t> ids;
  const std::string large(5000, 'l');
  for (int i = 0; i < 3; ++i) {
    clients.push_back(make(SocketType::client));
    connect(clients.back(), endpoint);
    send(clients.back(), std::to_string(i) + large);
    const Message got = receive(server);
    EXPECT_EQ(got.text(), std::to_string(i) + large);
    EXPECT_NE(got.routing_id(), 0u);
    EXPECT_EQ(std::count(ids.begin(), ids.end(), got.routing_id()), 0);
    ids.push_back(got.routing_id());
  }
  for (std::size_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(send_to(server, ids[i], "to " + std::to_string(i)));
    ASSERT_TRUE(send_to(server, ids[i], large));
  }
  for (std::size_t i = 0; i < 3; ++i) {
    const Message got = receive(clients[i]);
    EXPECT_EQ(got.text(), "to " + std::to_string(i));
    EXPECT_EQ(got.routing_id(), 0u);
    EXPECT_EQ(recv_text(clients[i]), large);
  }
}

TEST_P(SinglePart, AReceivedMessageCanBeSentBackAsItIs) {
  Socket server = make(SocketType::server);
  Socket client = make(SocketType::client);
  connect(client, bind(server));
  for (const std::size_t size : {0u, 1u, 48u, 49u, 112u, 113u, 5000u, 100'000u}) {
    send(client, std::string(size, 'x'));
    EXPECT_TRUE(server.send(receive(server)));
    EXPECT_EQ(recv_text(client), std::string(size, 'x'));
  }
}

TEST_P(SinglePart, AServerCannotSendWithoutAPeerAndKeepsTheMessage) {
  Socket server = make(SocketType::server);
  Socket client = make(SocketType::client);
  ASSERT_TRUE(server.watch_events());
  connect(client, bind(server));
  EXPECT_EQ(server.send("without a routing id").error(), Errc::unreachable);
  send(client, "hello");
  Message message = receive(server);
  const std::uint32_t id = message.routing_id();
  EXPECT_EQ(send_to(server, id + 1, "to nobody").error(), Errc::unreachable);
  EXPECT_EQ(server.send(std::move(message), More::yes).error(), Errc::invalid_argument);
  EXPECT_EQ(message.text(), "hello");  // NOLINT(bugprone-use-after-move): a refused message stays the caller's
  EXPECT_EQ(message.routing_id(), id);
  EXPECT_EQ(client.send("first", More::yes).error(), Errc::invalid_argument);
  client.close();
  if (GetParam().streams) {
    wait_for_event(server, EventKind::disconnected);
  }
  EXPECT_EQ(server.send(std::move(message)).error(), Errc::unreachable);
}

TEST_P(SinglePart, AServerWaitsForRoomAndLosesNothing) {
  Socket server = make(SocketType::server);
  Socket client = make(SocketType::client);
  ASSERT_TRUE(client.set(option::receive_high_water_mark, 2));
  ASSERT_TRUE(server.set(option::send_high_water_mark, 2));
  connect(client, bind(server));
  send(client, "hello");
  const std::uint32_t id = receive(server).routing_id();
  const Texts sent = numbered("m", 0, 500);
  std::thread sender([&] {
    for (const std::string& text : sent) {
      EXPECT_TRUE(send_to(server, id, text));
    }
  });
  EXPECT_EQ(recv_many(client, sent.size()), sent);
  sender.join();
}

TEST_P(SinglePart, ASenderThatWaitsForRoomAtAPeerLearnsThatThePeerWent) {
  Socket server = make(SocketType::server);
  Socket client = make(SocketType::client);
  ASSERT_TRUE(server.set(option::send_high_water_mark, 1));
  ASSERT_TRUE(client.set(option::receive_high_water_mark, 1));
  ASSERT_TRUE(client.set(option::linger, 0ms));
  connect(client, bind(server));
  send(client, "hello");
  const std::uint32_t id = receive(server).routing_id();
  std::atomic<bool> full{false};
  std::thread sender([&] {
    const std::string payload(1'000'000, 'x');
    Message message = std::move(Message::copy_of(payload)).value();
    EXPECT_TRUE(message.set_routing_id(id));
    Result<void> sent;
    while (sent) {
      Message copy = message.share();
      sent = server.try_send(std::move(copy));
    }
    EXPECT_EQ(sent.error(), Errc::would_block);
    full = true;
    while ((sent = send_to(server, id, payload))) {
    }
    EXPECT_EQ(sent.error(), Errc::unreachable);
  });
  while (!full) {
    std::this_thread::yield();
  }
  EXPECT_EQ(server.recv_until(sys::now() + 20ms).error(), Errc::timed_out);  // the sender waits by now, or soon
  const Instant end = sys::now() + kLong / 2;
  client.close();
  sender.join();
  EXPECT_LT(sys::now(), end) << "found out when its time was over";
}

TEST_P(SinglePartWire, ClientsServersAndPeersDiscardWhatIsOfSeveralParts) {
  expect_single_parts_only(SocketType::server, zmtp::WireType::client);
  expect_single_parts_only(SocketType::client, zmtp::WireType::server);
  expect_single_parts_only(SocketType::peer, zmtp::WireType::peer);
}

TEST_P(SinglePart, PeersNameEachOtherAndTheConnectingOneMaySpeakFirst) {
  Socket one = make(SocketType::peer);
  Socket two = make(SocketType::peer);
  const std::string endpoint = bind(one);
  secure_client(two);
  const auto id = two.connect_peer(endpoint);
  ASSERT_TRUE(id) << id.error().message();
  EXPECT_NE(*id, 0u);
  ASSERT_TRUE(send_to(two, *id, "first"));
  const Message first = receive(one);
  EXPECT_EQ(first.text(), "first");
  ASSERT_TRUE(send_to(one, first.routing_id(), "second"));
  const Message second = receive(two);
  EXPECT_EQ(second.text(), "second");
  EXPECT_EQ(second.routing_id(), *id);
}

TEST_P(SinglePart, APeerDistinguishesThePeersItConnectedTo) {
  Socket peer = make(SocketType::peer);
  std::vector<Socket> others;
  std::vector<std::uint32_t> ids;
  secure_client(peer);
  for (int i = 0; i < 3; ++i) {
    others.push_back(make(SocketType::peer));
    ids.push_back(peer.connect_peer(bind(others.back())).value());
  }
  for (std::size_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(send_to(peer, ids[i], std::to_string(i)));
  }
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(recv_text(others[i]), std::to_string(i));
  }
}

TEST_P(SinglePart, ConnectPeerRefusesMisuse) {
  Socket peer = make(SocketType::peer);
  Socket client = make(SocketType::client);
  const std::string endpoint = bind(peer);
  EXPECT_EQ(client.connect_peer(endpoint).error(), Errc::not_supported);
  Socket other = make(SocketType::peer);
  EXPECT_EQ(other.connect_peer("nonsense").error(), Errc::malformed_endpoint);
  ASSERT_TRUE(other.set(option::immediate, true));
  EXPECT_EQ(other.connect_peer(endpoint).error(), Errc::invalid_state);
}

TEST_P(SinglePart, SeveralThreadsMaySendAndReceiveAtOnce) {
  Socket gather = make(SocketType::gather);
  Socket scatter = make(SocketType::scatter);
  connect(scatter, bind(gather));
  constexpr int kEach = 300;
  std::vector<std::thread> threads;
  std::atomic<int> sum{0};
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&] {
      for (int n = 1; n <= kEach; ++n) {
        EXPECT_TRUE(scatter.send(std::to_string(n)));
      }
    });
    threads.emplace_back([&] {
      for (int n = 0; n < kEach; ++n) {
        const auto got = gather.recv();
        ASSERT_TRUE(got) << got.error().message();
        sum += std::stoi(std::string(got->text()));
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(sum, kEach * (kEach + 1));
}

}  // namespace
}  // namespace weft::conformance
