// SPDX-License-Identifier: MIT
// STREAM and raw ROUTER, against peers that know no protocol and against each other.
#include <map>
#include <set>

#include "tests/conformance/conformance.h"
#include "tests/conformance/wire.h"

namespace weft::conformance {
namespace {

class Stream : public Conformance {
 protected:
  [[nodiscard]] std::unique_ptr<net::Listener> listen() {
    auto listener = net::Listener::open(*net::parse_endpoint(new_endpoint(), true), {});
    EXPECT_TRUE(listener) << listener.error().message();
    return std::move(listener).value();
  }
  // The id of the peer that connects or disconnects next.
  [[nodiscard]] static std::string noticed(Socket& socket) {
    const Texts got = recv(socket);
    EXPECT_EQ(got.size(), 2u);
    EXPECT_EQ(got.back(), "");
    return got.front();
  }
  // The next `size` bytes of one connection, in any number of messages.
  [[nodiscard]] static std::string collect(Socket& socket, const std::string& id, std::size_t size) {
    std::string bytes;
    while (bytes.size() < size && !HasFailure()) {
      const Texts got = recv(socket);
      EXPECT_EQ(got.front(), id);
      EXPECT_FALSE(got.back().empty()) << "the end, after " << bytes.size();
      bytes += got.back();
    }
    return bytes;
  }
  // Bytes of which no two stretches are alike.
  [[nodiscard]] static std::string numbers(std::size_t size) {
    std::string bytes(size, '\0');
    for (std::size_t i = 0; i < size; ++i) {
      bytes[i] = static_cast<char>(i * i * 2'654'435'761U >> 24);
    }
    return bytes;
  }
};
WEFT_TRANSPORTS_WHERE(Stream, without_websocket);
class StreamOverIpc : public Stream {};
WEFT_TRANSPORTS_WHERE(StreamOverIpc, over_ipc);

TEST_P(Stream, TellsOfPeersThatComeAndGoByEmptyMessages) {
  Socket stream = make(SocketType::stream);
  const std::string endpoint = bind(stream);
  std::set<std::string> ids;
  for (int i = 0; i < 20; ++i) {
    std::string id;
    {
      BytePeer peer = BytePeer::dial(endpoint);
      id = noticed(stream);
      EXPECT_EQ(id.size(), 5u);
      EXPECT_EQ(id[0], '\0');
      peer.write("bye");
    }
    EXPECT_EQ(collect(stream, id, 3), "bye");
    EXPECT_EQ(noticed(stream), id);
    EXPECT_EQ(stream.try_send(as_bytes(id), More::yes).error(), Errc::unreachable);
    ids.insert(id);
  }
  EXPECT_EQ(ids.size(), 20u);
}

TEST_P(Stream, BytesGoBothWaysAsTheyAre) {
  Socket stream = make(SocketType::stream);
  BytePeer peer = BytePeer::dial(bind(stream));
  const std::string id = noticed(stream);
  // Bytes that would be malformed as frames, and sizes around the bounds for copying, batching and sending at once.
  for (const std::size_t size :
       {std::size_t{1}, std::size_t{2}, std::size_t{255}, std::size_t{256}, std::size_t{8192}, std::size_t{8193},
        std::size_t{40'000}, std::size_t{300'000}, std::size_t{3'000'000}}) {
    const std::string bytes = "\xff\x7f" + numbers(size);
    std::thread writer([&] { peer.write(bytes); });
    EXPECT_TRUE(collect(stream, id, bytes.size()) == bytes) << size;
    writer.join();
    std::thread sender([&] { send(stream, {id, bytes}); });
    EXPECT_TRUE(peer.read(bytes.size()) == bytes) << size;
    sender.join();
  }
}

TEST_P(Stream, ManySmallMessagesLeaveInOrder) {
  Socket stream = make(SocketType::stream);
  BytePeer peer = BytePeer::dial(bind(stream));
  const std::string id = noticed(stream);
  std::string expected;
  for (int i = 0; i < 20'000; ++i) {
    expected += std::to_string(i) + ",";
  }
  std::thread sender([&] {
    for (int i = 0; i < 20'000; ++i) {
      send(stream, {id, std::to_string(i) + ","});
    }
  });
  EXPECT_TRUE(peer.read(expected.size()) == expected);
  sender.join();
}

TEST_P(Stream, NoMessageIsLongerThanProgramsExpect) {
  Socket stream = make(SocketType::stream);
  BytePeer peer = BytePeer::dial(bind(stream));
  const std::string id = noticed(stream);
  std::thread writer([&] { peer.write(numbers(1'000'000)); });
  for (std::size_t got = 0; got < 1'000'000 && !HasFailure();) {
    const std::string bytes = recv(stream).back();
    EXPECT_LE(bytes.size(), 8192u);
    got += bytes.size();
  }
  writer.join();
}

TEST_P(Stream, TheSizeLimitOfMessagesIsNotForBytes) {
  Socket stream = make(SocketType::stream);
  ASSERT_TRUE(stream.set(option::max_message_size, 10));
  BytePeer peer = BytePeer::dial(bind(stream));
  const std::string id = noticed(stream);
  peer.write(numbers(5000));
  EXPECT_TRUE(collect(stream, id, 5000) == numbers(5000));
}

TEST_P(Stream, SendingToAnUnknownIdIsUnreachableAndTakesNothing) {
  Socket stream = make(SocketType::stream);
  BytePeer peer = BytePeer::dial(bind(stream));
  const std::string id = noticed(stream);
  EXPECT_EQ(stream.send("who", More::yes).error(), Errc::unreachable);
  EXPECT_EQ(stream.send("", More::yes).error(), Errc::unreachable);
  send(stream, {id, "here"});
  EXPECT_EQ(peer.read(4), "here");
}

TEST_P(Stream, PartsComeInPairsWhateverTheirFlags) {
  Socket stream = make(SocketType::stream);
  BytePeer peer = BytePeer::dial(bind(stream));
  const std::string id = noticed(stream);
  ASSERT_TRUE(stream.send(id, More::yes));
  ASSERT_TRUE(stream.send("more ", More::yes));
  send(stream, id);  // an id alone sends no bytes
  send(stream, {id, "follows"});
  EXPECT_EQ(peer.read(12), "more follows");
  EXPECT_EQ(stream.statistics()->dropped, 1u);
}

TEST_P(Stream, AnEmptyPartEndsTheConnectionOnceAllIsSent) {
  Socket stream = make(SocketType::stream);
  const std::string endpoint = bind(stream);
  ASSERT_TRUE(stream.set(option::linger, Duration::zero()));
  for (const std::size_t size : {std::size_t{0}, std::size_t{10}, std::size_t{5'000'000}}) {
    BytePeer peer = BytePeer::dial(endpoint);
    const std::string id = noticed(stream);
    if (size != 0) {
      send(stream, {id, numbers(size)});
    }
    send(stream, {id, ""});
    EXPECT_EQ(stream.try_send(as_bytes(id), More::yes).error(), Errc::unreachable);
    EXPECT_TRUE(peer.read_to_end() == numbers(size)) << size;
  }
  EXPECT_EQ(stream.try_recv().error(), Errc::would_block) << "who ended a connection is not told of its end";
}

TEST_P(Stream, NothingOfAConnectionThatWasEndedIsReceived) {
  Socket stream = make(SocketType::stream);
  const std::string endpoint = bind(stream);
  BytePeer talker = BytePeer::dial(endpoint);
  const std::string id = noticed(stream);
  talker.write("first");
  EXPECT_EQ(collect(stream, id, 5), "first");
  talker.write("second");
  send(stream, {id, ""});
  EXPECT_EQ(talker.read_to_end(), "");
  BytePeer other = BytePeer::dial(endpoint);
  const std::string other_id = noticed(stream);
  EXPECT_NE(other_id, id);
  other.write("hello");
  EXPECT_EQ(collect(stream, other_id, 5), "hello");
}

TEST_P(Stream, APeerThatEndsItsDirectionIsGone) {
  Socket stream = make(SocketType::stream);
  BytePeer peer = BytePeer::dial(bind(stream));
  const std::string id = noticed(stream);
  peer.write("all");
  peer.end_writing();
  EXPECT_EQ(collect(stream, id, 3), "all");
  EXPECT_EQ(noticed(stream), id);
  EXPECT_EQ(peer.read_to_end(), "");
}

TEST_P(Stream, AConnectionThatIsGoneIsKnownUntilTheApplicationWasTold) {
  Socket stream = make(SocketType::stream);
  ASSERT_TRUE(stream.watch_events());
  auto peer = std::make_unique<BytePeer>(BytePeer::dial(bind(stream)));
  const std::string id = noticed(stream);
  peer->write("request");
  EXPECT_EQ(collect(stream, id, 7), "request");
  peer.reset();
  wait_for_event(stream, EventKind::disconnected);
  send(stream, {id, "answer"});
  send(stream, {id, ""});
  EXPECT_EQ(stream.statistics()->dropped, 1u);
  EXPECT_EQ(noticed(stream), id);
  EXPECT_EQ(stream.send(id, More::yes).error(), Errc::unreachable);
}

TEST_P(Stream, WithoutNoticesOnlyBytesArrive) {
  Socket stream = make(SocketType::stream);
  ASSERT_TRUE(stream.set(option::stream_notify, false));
  const std::string endpoint = bind(stream);
  for (int i = 0; i < 10; ++i) {
    BytePeer peer = BytePeer::dial(endpoint);
    peer.write(std::to_string(i));
    EXPECT_EQ(recv(stream).back(), std::to_string(i));
  }
  EXPECT_EQ(stream.try_recv().error(), Errc::would_block);
}

TEST_P(Stream, WithoutNoticesAConnectionThatIsGoneIsUnknown) {
  Socket stream = make(SocketType::stream);
  ASSERT_TRUE(stream.watch_events());
  ASSERT_TRUE(stream.set(option::stream_notify, false));
  auto peer = std::make_unique<BytePeer>(BytePeer::dial(bind(stream)));
  peer->write("x");
  const std::string id = recv(stream).front();
  peer.reset();
  wait_for_event(stream, EventKind::disconnected);
  EXPECT_EQ(stream.send(id, More::yes).error(), Errc::unreachable);
}

TEST_P(Stream, TheConnectingSideKnowsThePeersIdAtOnce) {
  Socket stream = make(SocketType::stream);
  const auto listener = listen();
  EXPECT_EQ(*stream.get(option::routing_id), "");
  connect(stream, listener->bound_endpoint());
  const std::string id = *stream.get(option::routing_id);
  EXPECT_EQ(id.size(), 5u);
  send(stream, {id, "early"});
  BytePeer peer = BytePeer::accept(*listener);
  EXPECT_EQ(peer.read(5), "early");
  EXPECT_EQ(noticed(stream), id);
  peer.write("late");
  EXPECT_EQ(collect(stream, id, 4), "late");
  connect(stream, listener->bound_endpoint());
  EXPECT_NE(*stream.get(option::routing_id), id);
}

TEST_P(Stream, AConnectionThatIsMadeAgainKeepsItsId) {
  Socket stream = make(SocketType::stream);
  const auto listener = listen();
  connect(stream, listener->bound_endpoint());
  const std::string id = *stream.get(option::routing_id);
  for (int i = 0; i < 10; ++i) {
    {
      BytePeer peer = BytePeer::accept(*listener);
      EXPECT_EQ(noticed(stream), id);
      send(stream, {id, "hello"});
      EXPECT_EQ(peer.read(5), "hello");
      peer.write("bye");
    }
    EXPECT_EQ(collect(stream, id, 3), "bye");
    EXPECT_EQ(noticed(stream), id);
  }
}

TEST_P(Stream, AConnectionThatEndedIsNotMadeAgain) {
  Socket stream = make(SocketType::stream);
  ASSERT_TRUE(stream.watch_events());
  const auto listener = listen();
  connect(stream, listener->bound_endpoint());
  BytePeer peer = BytePeer::accept(*listener);
  const std::string id = noticed(stream);
  send(stream, {id, ""});
  EXPECT_EQ(peer.read_to_end(), "");
  connect(stream, listener->bound_endpoint());
  BytePeer next = BytePeer::accept(*listener);
  EXPECT_NE(noticed(stream), id);
  EXPECT_EQ(stream.try_recv().error(), Errc::would_block);
  EXPECT_EQ(listener->try_accept().error(), Errc::would_block);
}

TEST_P(Stream, ThePeerOfAConnectMayBeNamed) {
  Socket stream = make(SocketType::stream);
  const auto listener = listen();
  ASSERT_TRUE(stream.set(option::connect_routing_id, "server"));
  connect(stream, listener->bound_endpoint());
  EXPECT_EQ(*stream.get(option::routing_id), "");
  send(stream, {"server", "hello"});
  BytePeer peer = BytePeer::accept(*listener);
  EXPECT_EQ(peer.read(5), "hello");
  EXPECT_EQ(noticed(stream), "server");
  // A name that is taken: libzmq aborts here.
  ASSERT_TRUE(stream.set(option::connect_routing_id, "server"));
  connect(stream, listener->bound_endpoint());
  BytePeer second = BytePeer::accept(*listener);
  const std::string made_up = noticed(stream);
  EXPECT_EQ(made_up.size(), 5u);
  EXPECT_EQ(*stream.get(option::routing_id), made_up);
  send(stream, {made_up, "two"});
  EXPECT_EQ(second.read(3), "two");
  send(stream, {"server", "one"});
  EXPECT_EQ(peer.read(3), "one");
}

TEST_P(Stream, StreamsTalkToEachOther) {
  Socket server = make(SocketType::stream);
  Socket client = make(SocketType::stream);
  connect(client, bind(server));
  const std::string to_client = noticed(server);
  const std::string to_server = noticed(client);
  const std::string bytes = numbers(10'000'000);
  const auto send_all = [&](Socket& socket, const std::string& id) {
    for (std::size_t at = 0; at < bytes.size(); at += 50'000) {
      send(socket, {id, std::string_view(bytes).substr(at, 50'000)});
    }
  };
  std::thread there([&] { send_all(client, to_server); });
  std::thread back([&] { send_all(server, to_client); });
  std::thread reader([&] { EXPECT_TRUE(collect(client, to_server, bytes.size()) == bytes); });
  EXPECT_TRUE(collect(server, to_client, bytes.size()) == bytes);
  there.join();
  back.join();
  reader.join();
  client.close();
  EXPECT_EQ(noticed(server), to_client);
}

TEST_P(Stream, ManyConnectionsDoNotMix) {
  constexpr std::size_t kPeers = 200;
  Socket stream = make(SocketType::stream);
  ASSERT_TRUE(stream.set(option::backlog, int{kPeers}));
  const std::string endpoint = bind(stream);
  std::vector<BytePeer> peers;
  for (std::size_t i = 0; i < kPeers; ++i) {
    peers.push_back(BytePeer::dial(endpoint));
    peers.back().write("peer " + std::to_string(1000 + i));
  }
  std::map<std::string, std::string> said;
  std::size_t whole = 0;
  while (whole < kPeers && !HasFailure()) {
    const Texts got = recv(stream);
    std::string& text = said[got.front()];
    text += got.back();
    if (text.size() == 9 && !got.back().empty()) {
      ++whole;
      send(stream, {got.front(), "you are " + text});
      send(stream, {got.front(), ""});
    }
  }
  EXPECT_EQ(said.size(), kPeers);
  for (std::size_t i = 0; i < kPeers; ++i) {
    EXPECT_EQ(peers[i].read_to_end(), "you are peer " + std::to_string(1000 + i));
  }
}

TEST_P(Stream, OneThreadReceivesWhileAnotherAnswersAndEnds) {
  constexpr int kClients = 3;
  constexpr int kRounds = 60;
  Socket stream = make(SocketType::stream);
  const std::string endpoint = bind(stream);
  std::vector<std::thread> clients;
  for (int i = 0; i < kClients; ++i) {
    clients.emplace_back([&, i] {
      for (int round = 0; round < kRounds; ++round) {
        BytePeer peer = BytePeer::dial(endpoint);
        peer.write("?");
        // Some do not wait. Over TLS that would reset the connection, since the server's tickets are unread.
        if (round % 3 != i || GetParam().tls) {
          EXPECT_EQ(peer.read_to_end(), "answer");
        }
      }
    });
  }
  Socket asked = make(SocketType::push);
  Socket answering = make(SocketType::pull);
  connect(answering, bind(asked));
  std::thread answerer([&] {
    for (int i = 0; i < kClients * kRounds && !HasFailure(); ++i) {
      const std::string id = recv_text(answering);
      // The receiver may have got the notice meanwhile that this peer is gone.
      for (const std::string_view text : {"answer", ""}) {
        if (const auto begun = stream.send(id, More::yes); begun) {
          EXPECT_TRUE(stream.send(text));
        } else {
          EXPECT_EQ(begun.error(), Errc::unreachable);
        }
      }
    }
  });
  for (int i = 0; i < kClients * kRounds && !HasFailure();) {
    const Texts got = recv(stream);
    if (got.back() == "?") {
      send(asked, got.front());
      ++i;
    }
  }
  answerer.join();
  for (std::thread& client : clients) {
    client.join();
  }
}

TEST_P(StreamOverIpc, UnreportedConnectionsAreBounded) {
  Socket stream = make(SocketType::stream);
  ASSERT_TRUE(stream.watch_events());
  const std::string endpoint = bind(stream);
  // Connects and disconnects a peer; returns the kind of the last event.
  const auto pass = [&] {
    auto peer = std::make_unique<BytePeer>(BytePeer::dial(endpoint));
    wait_for_event(stream, EventKind::accepted);
    peer.reset();
    const auto event = stream.next_event(kLong);
    EXPECT_TRUE(event);
    return event->kind;
  };
  std::size_t passed = 0;
  while (pass() == EventKind::disconnected && passed < 100'000) {
    ++passed;
  }
  EXPECT_LT(passed, 10'000u);
  EXPECT_GT(passed, 1'000u);
  for (std::size_t i = 0; i < 2 * passed && !HasFailure(); ++i) {
    (void)noticed(stream);
  }
  EXPECT_EQ(stream.try_recv().error(), Errc::would_block);
  EXPECT_EQ(pass(), EventKind::disconnected);
}

TEST_P(Stream, APeerThatIsNotReceivedFromIsHeldBack) {
  Socket stream = make(SocketType::stream);
  ASSERT_TRUE(stream.set(option::receive_high_water_mark, 4));
  ASSERT_TRUE(stream.set(option::receive_buffer, 65'536));
  BytePeer peer = BytePeer::dial(bind(stream));
  const std::string bytes = numbers(64 << 20);
  const std::size_t taken = peer.write_until_full(bytes, 300ms);
  EXPECT_LT(taken, std::size_t{16} << 20);
  const std::string id = noticed(stream);
  std::thread sender([&] { peer.write("on"); });  // TLS holds a record of the bytes that it took
  EXPECT_TRUE(collect(stream, id, taken + 2) == bytes.substr(0, taken) + "on");
  sender.join();
}

TEST_P(Stream, ASenderToAPeerThatDoesNotReadIsHeldBack) {
  Socket stream = make(SocketType::stream);
  ASSERT_TRUE(stream.set(option::send_high_water_mark, 4));
  BytePeer peer = BytePeer::dial(bind(stream));
  const std::string id = noticed(stream);
  const std::string bytes = numbers(100'000);
  std::string expected;
  Result<void> sent;
  while ((sent = stream.try_send(as_bytes(id), More::yes)) && expected.size() < (std::size_t{64} << 20)) {
    ASSERT_TRUE(stream.try_send(as_bytes(bytes)));
    expected += bytes;
  }
  EXPECT_EQ(sent.error(), Errc::would_block);
  EXPECT_LT(expected.size(), std::size_t{16} << 20);
  std::thread sender([&] { send(stream, {id, "end"}); });
  EXPECT_TRUE(peer.read(expected.size() + 3) == expected + "end");
  sender.join();
}

TEST_P(Stream, ASenderDoesNotWaitForRoomAtAPeerThatIsGone) {
  Context eco({.wait_mode = WaitMode::eco});  // which sleeps without looking around for a while first
  Socket stream = make_in(eco, SocketType::stream);
  ASSERT_TRUE(stream.set(option::send_high_water_mark, 1));
  auto peer = std::make_unique<BytePeer>(BytePeer::dial(bind(stream)));
  const std::string id = noticed(stream);
  const std::string bytes = numbers(1'000'000);
  while (stream.try_send(as_bytes(id), More::yes)) {
    ASSERT_TRUE(stream.try_send(as_bytes(bytes)));
  }
  std::thread goer([&] {
    while (stream.next_event(50ms)) {  // long enough for the sender to fall asleep
    }
    peer.reset();
  });
  const Instant begin = sys::now();
  while (stream.statistics()->dropped == 0 && !HasFailure()) {
    send(stream, {id, bytes});
  }
  EXPECT_LT(sys::now() - begin, kLong / 2);
  goer.join();
  EXPECT_EQ(noticed(stream), id);
  EXPECT_EQ(stream.send(id, More::yes).error(), Errc::unreachable);
}

TEST_P(Stream, BytesSentBeforeClosingArrive) {
  Socket stream = make(SocketType::stream);
  BytePeer peer = BytePeer::dial(bind(stream));
  const std::string id = noticed(stream);
  send(stream, {id, numbers(3'000'000)});
  stream.close();
  EXPECT_TRUE(peer.read_to_end() == numbers(3'000'000));
}

TEST_P(Stream, ClosingDoesNotWaitForAConnectionThatWasEndedAndIsNotRead) {
  Socket stream = make(SocketType::stream);
  ASSERT_TRUE(stream.set(option::linger, Duration::zero()));
  BytePeer peer = BytePeer::dial(bind(stream));
  const std::string id = noticed(stream);
  send(stream, {id, numbers(20'000'000)});
  send(stream, {id, ""});
  const Instant begin = sys::now();
  stream.close();
  context_.reset();
  EXPECT_LT(sys::now() - begin, kLong / 2);
  EXPECT_LT(peer.read_to_end().size(), 20'000'000u);
}

TEST_P(Stream, TheMonitorTellsOfConnectionsButNotOfHandshakes) {
  Socket stream = make(SocketType::stream);
  ASSERT_TRUE(stream.watch_events());
  const std::string endpoint = bind(stream);
  {
    BytePeer peer = BytePeer::dial(endpoint);
  }
  for (const EventKind kind : {EventKind::listening, EventKind::accepted, EventKind::disconnected}) {
    const auto event = stream.next_event(kLong);
    ASSERT_TRUE(event);
    EXPECT_EQ(event->kind, kind) << event_name(event->kind);
  }
}

TEST_P(Stream, MessagesKnowThePeersAddress) {
  Socket stream = make(SocketType::stream);
  BytePeer peer = BytePeer::dial(bind(stream));
  peer.write("hello");
  for (int i = 0; i < 4; ++i) {  // the notice and the bytes
    const auto part = stream.recv();
    ASSERT_TRUE(part);
    const std::string_view address = (*part).peer_property("Peer-Address");
    const std::string_view transport = GetParam().name;
    EXPECT_TRUE(transport == "ipc"     ? address.starts_with("localhost:")
                : transport == "vsock" ? address == "1"
                                       : address == "127.0.0.1")
        << address;
  }
}

TEST_P(Stream, ARawRouterIsAStreamThatDropsWhatItCannotDeliver) {
  Socket router = make(SocketType::router);
  ASSERT_TRUE(router.set(option::router_raw, true));
  const std::string endpoint = bind(router);
  EXPECT_EQ(router.type(), SocketType::router);
  BytePeer peer = BytePeer::dial(endpoint);
  const std::string id = noticed(router);
  peer.write("hello");
  EXPECT_EQ(collect(router, id, 5), "hello");
  send(router, {"who", "nobody"});
  EXPECT_EQ(router.statistics()->dropped, 1u);
  send(router, {id, "answer"});
  send(router, {id, ""});
  EXPECT_EQ(peer.read_to_end(), "answer");
  ASSERT_TRUE(router.set(option::router_mandatory, true));
  EXPECT_EQ(router.send("who", More::yes).error(), Errc::unreachable);
  // Once there is a connection, the option is refused.
  BytePeer next = BytePeer::dial(endpoint);
  (void)noticed(router);
  EXPECT_EQ(router.set(option::router_raw, false).error(), Errc::invalid_argument);
}

TEST_P(Stream, ARouterThatWasRawForAWhileIsARouter) {
  Socket router = make(SocketType::router);
  ASSERT_TRUE(router.set(option::router_raw, true));
  ASSERT_TRUE(router.set(option::router_raw, false));
  Socket dealer = make(SocketType::dealer);
  connect(dealer, bind(router));
  send(dealer, {"a", "b"});
  EXPECT_EQ(recv(router).size(), 3u);
}

}  // namespace
}  // namespace weft::conformance
