// SPDX-License-Identifier: MIT
// The behaviour of each pattern with its peers, over every transport.
#include <algorithm>
#include <map>
#include <set>

#include "tests/conformance/conformance.h"

namespace weft::conformance {
namespace {

// The contract that every socket type keeps, whatever it does with its messages. A new pattern is a line here.
struct Pair {
  SocketType from;
  SocketType to;
};
// clang-format off: a line per pair
constexpr Pair kPairs[] = {
    {SocketType::push, SocketType::pull},
    {SocketType::pub, SocketType::sub},
    {SocketType::xpub, SocketType::xsub},
    {SocketType::req, SocketType::rep},
    {SocketType::req, SocketType::router},
    {SocketType::dealer, SocketType::router},
    {SocketType::dealer, SocketType::dealer},
    {SocketType::pair, SocketType::pair},
    {SocketType::scatter, SocketType::gather},
    {SocketType::client, SocketType::server},
    {SocketType::channel, SocketType::channel},
};
// clang-format on

class Contract : public Conformance {
 protected:
  // Sends until the receiver's peer, its handshake and its subscription are there. True once `to` received the text.
  static bool arrives(Socket& from, Socket& to, const std::string& text) {
    for (int i = 0; i < 2000; ++i) {
      const auto sent = from.try_send(as_bytes(text));
      EXPECT_TRUE(sent || sent.error() == Errc::would_block || sent.error() == Errc::invalid_state)
          << sent.error().message();
      for (auto got = to.recv_until(sys::now() + 5ms); got; got = to.try_recv()) {
        if (got->text() == text) {
          return true;
        }
      }
    }
    return false;
  }
  static void expect_closed(Socket& socket) {
    socket.close();
    socket.close();
    EXPECT_EQ(socket.try_send(as_bytes("late")).error(), Errc::closed);
    EXPECT_EQ(socket.try_recv().error(), Errc::closed);
    EXPECT_EQ(socket.bind("inproc://late").error(), Errc::closed);
  }
};
WEFT_EVERY_TRANSPORT(Contract);

TEST_P(Contract, AMessageArrivesWhicheverSideBindsAndEitherSideMayCloseFirst) {
  for (const Pair& pair : kPairs) {
    SCOPED_TRACE(static_cast<int>(pair.from));
    for (const bool receiver_binds : {true, false}) {
      Socket from = make(pair.from);
      Socket to = make(pair.to);
      Socket& bound = receiver_binds ? to : from;
      Socket& connected = receiver_binds ? from : to;
      connect(connected, bind(bound));
      (void)to.subscribe("");  // not_supported where peers do not subscribe
      EXPECT_TRUE(arrives(from, to, "m"));
      expect_closed(receiver_binds ? from : to);
      expect_closed(receiver_binds ? to : from);
    }
  }
}

TEST_P(Contract, CallsThatATypeDoesNotHaveSaySoAndChangeNothing) {
  for (const Pair& pair : kPairs) {
    SCOPED_TRACE(static_cast<int>(pair.from));
    Socket from = make(pair.from);
    Socket to = make(pair.to);
    for (Socket* socket : {&from, &to}) {
      const auto joined = socket->join("group");
      EXPECT_TRUE(joined || joined.error() == Errc::not_supported);
      const Error nothing = socket->try_recv().error();
      EXPECT_TRUE(nothing == Errc::would_block || nothing == Errc::not_supported || nothing == Errc::invalid_state);
    }
    connect(from, bind(to));
    (void)to.subscribe("");
    EXPECT_TRUE(arrives(from, to, "still works"));
  }
}

class Pipeline : public Conformance {};
WEFT_EVERY_TRANSPORT(Pipeline);

TEST_P(Pipeline, MessagesArriveInOrderAndUnchanged) {
  Socket pull = make(SocketType::pull);
  Socket push = make(SocketType::push);
  connect(push, bind(pull));
  const Texts sent = numbered("m", 0, 2000);
  std::thread sender([&] {
    for (const std::string& text : sent) {
      send(push, text);
    }
  });
  EXPECT_EQ(recv_many(pull, sent.size()), sent);
  sender.join();
}

TEST_P(Pipeline, MessagesOfEverySizeArriveUnchanged) {
  Socket pull = make(SocketType::pull);
  Socket push = make(SocketType::push);
  connect(push, bind(pull));
  // Around every size at which something is done differently: inline, long frames, slices, big parts, blocks.
  std::vector<std::size_t> sizes;
  for (const std::size_t edge : {0u, 48u, 112u, 255u, 4096u, 8192u, 32768u, 131072u, 262144u, 1048576u, 3000000u}) {
    for (const std::size_t size : {edge - (edge > 0 ? 1 : 0), edge, edge + 1}) {
      sizes.push_back(size);
    }
  }
  const auto body = [](std::size_t size) {
    std::string text(size, '\0');
    for (std::size_t i = 0; i < size; ++i) {
      text[i] = static_cast<char>((i * 31 + size) % 251);
    }
    return text;
  };
  std::thread sender([&] {
    for (const std::size_t size : sizes) {
      EXPECT_TRUE(push.send(as_bytes(body(size))));
      EXPECT_TRUE(push.send(std::move(Message::copy_of(body(size))).value()));
    }
  });
  for (const std::size_t size : sizes) {
    ASSERT_TRUE(recv_text(pull) == body(size)) << "bytes of " << size;
    ASSERT_TRUE(recv_text(pull) == body(size)) << "a message of " << size;
  }
  sender.join();
}

TEST_P(Pipeline, MultipartMessagesArriveWhole) {
  Socket pull = make(SocketType::pull);
  Socket push = make(SocketType::push);
  connect(push, bind(pull));
  const std::string big(200'000, 'b');
  send(push, {"a", "", big, "c"});
  send(push, {"", ""});
  send(push, {big, big});
  EXPECT_EQ(recv(pull), (Texts{"a", "", big, "c"}));
  EXPECT_EQ(recv(pull), (Texts{"", ""}));
  EXPECT_EQ(recv(pull), (Texts{big, big}));
}

TEST_P(Pipeline, PartsThatWereNotFollowedByTheLastDoNotShow) {
  Socket pull = make(SocketType::pull);
  Socket push = make(SocketType::push);
  connect(push, bind(pull));
  ASSERT_TRUE(push.send("whole"));
  ASSERT_TRUE(push.send("first of two", More::yes));
  EXPECT_EQ(recv_text(pull), "whole");
  EXPECT_EQ(pull.try_recv().error(), Errc::would_block);
  ASSERT_TRUE(push.send("second of two"));
  EXPECT_EQ(recv(pull), (Texts{"first of two", "second of two"}));
}

TEST_P(Pipeline, AMessageOfManyPartsArrivesWhole) {
  Socket pull = make(SocketType::pull);
  Socket push = make(SocketType::push);
  connect(push, bind(pull));
  constexpr int kParts = 5000;
  for (int i = 0; i < kParts; ++i) {
    ASSERT_TRUE(push.send(std::to_string(i), i + 1 < kParts ? More::yes : More::no));
  }
  EXPECT_EQ(recv(pull), numbered("", 0, kParts));
}

TEST_P(Pipeline, PushGivesToItsPullsInTurn) {
  Socket push = make(SocketType::push);
  std::vector<Socket> pulls;
  for (int i = 0; i < 3; ++i) {
    pulls.push_back(make(SocketType::pull));
    connect(push, bind(pulls.back()));
  }
  for (int i = 0; i < 30; ++i) {
    send(push, std::to_string(i));
  }
  for (std::size_t i = 0; i < 3; ++i) {
    const Texts got = recv_many(pulls[i], 10);
    for (std::size_t k = 0; k < got.size(); ++k) {
      EXPECT_EQ(got[k], std::to_string(3 * k + i));
    }
  }
}

TEST_P(Pipeline, PushGivesWholeMultipartMessagesToItsPullsInTurn) {
  Socket push = make(SocketType::push);
  Socket first = make(SocketType::pull);
  Socket second = make(SocketType::pull);
  connect(push, bind(first));
  connect(push, bind(second));
  for (const std::string_view text : {"0", "1", "2", "3"}) {
    send(push, {text, "end"});
  }
  EXPECT_EQ(recv(first), (Texts{"0", "end"}));
  EXPECT_EQ(recv(first), (Texts{"2", "end"}));
  EXPECT_EQ(recv(second), (Texts{"1", "end"}));
  EXPECT_EQ(recv(second), (Texts{"3", "end"}));
}

TEST_P(Pipeline, ABoundPushGivesToTheOnesThatConnectedInTurn) {
  Socket push = make(SocketType::push);
  ASSERT_TRUE(push.watch_events());
  const std::string endpoint = bind(push);
  std::vector<Socket> pulls;
  for (int i = 0; i < 3; ++i) {
    pulls.push_back(make(SocketType::pull));
    connect(pulls.back(), endpoint);
  }
  wait_for_peers(push, 3);
  for (int i = 0; i < 30; ++i) {
    send(push, std::to_string(i));
  }
  std::set<std::string> all;
  for (Socket& pull : pulls) {
    const Texts got = recv_many(pull, 10);
    all.insert(got.begin(), got.end());
    EXPECT_EQ(pull.try_recv().error(), Errc::would_block);
  }
  EXPECT_EQ(all.size(), 30u);
}

TEST_P(Pipeline, PullTakesFromItsPushesInTurn) {
  constexpr int kPushes = 4;
  constexpr int kEach = 50;
  Socket pull = make(SocketType::pull);
  ASSERT_TRUE(pull.watch_events());
  const std::string endpoint = bind(pull);
  std::vector<Socket> pushes;
  for (int i = 0; i < kPushes; ++i) {
    pushes.push_back(make(SocketType::push));
    connect(pushes.back(), endpoint);
  }
  wait_for_peers(pull, kPushes);
  for (int i = 0; i < kPushes; ++i) {
    for (int k = 0; k < kEach; ++k) {
      send(pushes[static_cast<std::size_t>(i)], std::to_string(i));
    }
  }
  std::map<std::string, int> first_half;
  std::map<std::string, int> all;
  for (int k = 0; k < kPushes * kEach; ++k) {
    const std::string from = recv_text(pull);
    ++all[from];
    if (k < kPushes * kEach / 2) {
      ++first_half[from];
    }
  }
  for (int i = 0; i < kPushes; ++i) {
    EXPECT_EQ(all[std::to_string(i)], kEach);
  }
  if (!GetParam().streams) {  // over streams the kernel decides when a message arrives
    for (int i = 0; i < kPushes; ++i) {
      EXPECT_EQ(first_half[std::to_string(i)], kEach / 2) << "from " << i;
    }
  }
}

TEST_P(Pipeline, ABusyPushDoesNotStarveAQuietOne) {
  Socket pull = make(SocketType::pull);
  ASSERT_TRUE(pull.watch_events());
  const std::string endpoint = bind(pull);
  Socket busy = make(SocketType::push);
  Socket quiet = make(SocketType::push);
  connect(busy, endpoint);
  connect(quiet, endpoint);
  wait_for_peers(pull, 2);
  std::atomic<bool> stop{false};
  ASSERT_TRUE(busy.set(option::send_timeout, 1ms));
  std::thread sender([&] {
    while (!stop.load()) {
      (void)busy.send("busy");
    }
  });
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(recv_text(pull), "busy");
  }
  send(quiet, "quiet");
  const Instant end = sys::now() + kLong;
  while (recv_text(pull) != "quiet") {
    ASSERT_LT(sys::now(), end);
  }
  stop = true;
  sender.join();
}

TEST_P(Pipeline, SendingAndReceivingTheWrongWayIsRefused) {
  Socket push = make(SocketType::push);
  Socket pull = make(SocketType::pull);
  connect(push, bind(pull));
  EXPECT_EQ(push.recv().error(), Errc::not_supported);
  EXPECT_EQ(push.try_recv().error(), Errc::not_supported);
  EXPECT_EQ(pull.send("x").error(), Errc::not_supported);
  EXPECT_EQ(pull.subscribe("x").error(), Errc::not_supported);
}

TEST_P(Pipeline, ReceivingIntoASmallTargetTruncatesAndSaysSo) {
  Socket push = make(SocketType::push);
  Socket pull = make(SocketType::pull);
  connect(push, bind(pull));
  send(push, {"0123456789", "abc"});
  send(push, std::string(100'000, 'x'));
  std::uint8_t target[4] = {};
  const auto first = pull.recv_into(target);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->size, 10u);
  EXPECT_TRUE(first->truncated);
  EXPECT_TRUE(first->more);
  EXPECT_EQ(as_text(target), "0123");
  const auto second = pull.recv_into(target);
  ASSERT_TRUE(second);
  EXPECT_EQ(second->size, 3u);
  EXPECT_FALSE(second->truncated);
  EXPECT_FALSE(second->more);
  EXPECT_EQ(as_text(Bytes(target).first(3)), "abc");
  const auto third = pull.recv_into(target);
  ASSERT_TRUE(third);
  EXPECT_EQ(third->size, 100'000u);
  EXPECT_TRUE(third->truncated);
}

class PairPattern : public Conformance {};
WEFT_EVERY_TRANSPORT(PairPattern);

TEST_P(PairPattern, BothSidesSendAndReceive) {
  Socket one = make(SocketType::pair);
  Socket two = make(SocketType::pair);
  connect(two, bind(one));
  send(two, {"from", "two"});
  EXPECT_EQ(recv(one), (Texts{"from", "two"}));
  send(one, "from one");
  EXPECT_EQ(recv_text(two), "from one");
}

TEST_P(PairPattern, ASecondPeerIsRefusedAndTheFirstIsNotDisturbed) {
  Socket bound = make(SocketType::pair);
  ASSERT_TRUE(bound.watch_events());
  const std::string endpoint = bind(bound);
  Socket first = make(SocketType::pair);
  connect(first, endpoint);
  send(first, "hello");
  EXPECT_EQ(recv_text(bound), "hello");
  Socket second = make(SocketType::pair);
  ASSERT_TRUE(second.set(option::linger, 0ms));
  connect(second, endpoint);
  if (GetParam().streams) {
    wait_for_event(bound, EventKind::handshake_failed);
  }
  (void)second.try_send(as_bytes("intruder"));
  for (int i = 0; i < 10; ++i) {
    send(bound, std::to_string(i));
    EXPECT_EQ(recv_text(first), std::to_string(i));
  }
  send(first, "still here");
  EXPECT_EQ(recv_text(bound), "still here");
  EXPECT_EQ(second.try_recv().error(), Errc::would_block);
}

TEST_P(PairPattern, ANewPeerMayComeWhenTheFirstIsGone) {
  Socket bound = make(SocketType::pair);
  ASSERT_TRUE(bound.watch_events());
  const std::string endpoint = bind(bound);
  for (const std::string_view text : {"one", "two", "three"}) {
    Socket peer = make(SocketType::pair);
    connect(peer, endpoint);
    send(peer, text);
    EXPECT_EQ(recv_text(bound), text);
    send(bound, "reply");
    EXPECT_EQ(recv_text(peer), "reply");
    peer.close();
    if (GetParam().streams) {
      wait_for_event(bound, EventKind::disconnected);
    }
  }
}

}  // namespace
}  // namespace weft::conformance
