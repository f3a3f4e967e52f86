// SPDX-License-Identifier: MIT
// DEALER and ROUTER: identities, and the order in which peers are served.
#include <set>

#include "tests/conformance/conformance.h"
#include "weft/base/endian.h"

namespace weft::conformance {
namespace {

class Routing : public Conformance {
 protected:
  // Lets the router learn of the dealer's id.
  std::string introduce(Socket& dealer, Socket& router) {
    send(dealer, "hello");
    const Texts got = recv(router);
    EXPECT_EQ(got.size(), 2u);
    EXPECT_EQ(got.back(), "hello");
    return got.front();
  }
};
WEFT_EVERY_TRANSPORT(Routing);

TEST_P(Routing, DealersTalkBothWays) {
  Socket one = make(SocketType::dealer);
  Socket two = make(SocketType::dealer);
  connect(two, bind(one));
  send(two, {"a", "b"});
  EXPECT_EQ(recv(one), (Texts{"a", "b"}));
  send(one, "c");
  EXPECT_EQ(recv_text(two), "c");
}

TEST_P(Routing, DealerSendsToItsPeersInTurn) {
  Socket dealer = make(SocketType::dealer);
  Socket one = make(SocketType::dealer);
  Socket two = make(SocketType::dealer);
  connect(dealer, bind(one));
  connect(dealer, bind(two));
  for (int i = 0; i < 10; ++i) {
    send(dealer, std::to_string(i));
  }
  EXPECT_EQ(recv_many(one, 5), (Texts{"0", "2", "4", "6", "8"}));
  EXPECT_EQ(recv_many(two, 5), (Texts{"1", "3", "5", "7", "9"}));
}

TEST_P(Routing, TheRouterPutsTheSendersIdentityInFront) {
  Socket router = make(SocketType::router);
  Socket dealer = make(SocketType::dealer);
  ASSERT_TRUE(dealer.set(option::routing_id, "the dealer"));
  connect(dealer, bind(router));
  send(dealer, {"a", "", "c"});
  EXPECT_EQ(recv(router), (Texts{"the dealer", "a", "", "c"}));
  send(router, {"the dealer", "back"});
  EXPECT_EQ(recv_text(dealer), "back");
}

TEST_P(Routing, AnIdentityMayBe255BytesWithZeros) {
  Socket router = make(SocketType::router);
  Socket dealer = make(SocketType::dealer);
  std::string id(255, 'i');
  id[100] = '\0';
  ASSERT_TRUE(dealer.set(option::routing_id, id));
  EXPECT_EQ(dealer.set(option::routing_id, id + "x").error(), Errc::invalid_argument);
  connect(dealer, bind(router));
  EXPECT_EQ(introduce(dealer, router), id);
  send(router, {id, "back"});
  EXPECT_EQ(recv_text(dealer), "back");
}

TEST_P(Routing, PeersWithoutIdentityGetOneOfFiveBytesThatBeginsWithZero) {
  Socket router = make(SocketType::router);
  const std::string endpoint = bind(router);
  std::set<std::string> ids;
  std::vector<Socket> dealers;
  for (int i = 0; i < 5; ++i) {
    dealers.push_back(make(SocketType::dealer));
    connect(dealers.back(), endpoint);
    const std::string id = introduce(dealers.back(), router);
    EXPECT_EQ(id.size(), 5u);
    EXPECT_EQ(id[0], '\0');
    ids.insert(id);
    send(router, {id, std::to_string(i)});
  }
  EXPECT_EQ(ids.size(), 5u);
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(recv_text(dealers[i]), std::to_string(i));
  }
}

TEST_P(Routing, ANameThatTheApplicationChoseIsNotGivenToAPeerWithoutIdentity) {
  Socket router = make(SocketType::router);
  Socket first = make(SocketType::dealer);
  connect(router, bind(first));
  std::string next = introduce(first, router);
  std::uint32_t number = load_big_endian<std::uint32_t>(as_bytes(next).data() + 1) + 1;
  store_big_endian(reinterpret_cast<std::uint8_t*>(next.data() + 1), number);
  Socket named = make(SocketType::dealer);
  ASSERT_TRUE(router.set(option::connect_routing_id, next));
  connect(router, bind(named));
  send(router, {next, "to the chosen name"});
  EXPECT_EQ(recv_text(named), "to the chosen name");
  Socket second = make(SocketType::dealer);
  connect(router, bind(second));
  EXPECT_NE(introduce(second, router), next);
  send(router, {next, "once more"});
  EXPECT_EQ(recv_text(named), "once more");
}

TEST_P(Routing, AnIdentityThatBeginsWithZeroIsRefused) {
  Socket dealer = make(SocketType::dealer);
  EXPECT_EQ(dealer.set(option::routing_id, std::string("\0x", 2)).error(), Errc::invalid_argument);
}

// Also when the sender disconnects between the two calls.
TEST_P(Routing, TheReceiverOfAnIdGetsTheRestOfTheMessage) {
  for (const std::size_t size : {std::size_t{5}, std::size_t{100}, std::size_t{5'000}}) {
    Socket dealer = make(SocketType::dealer);
    const std::string endpoint = bind(dealer);
    Socket router = make(SocketType::router);
    connect(router, endpoint);
    const std::string body(size, 'b');
    send(dealer, "first");
    send(dealer, body);
    EXPECT_EQ(recv(router).back(), "first");
    auto id = router.recv();
    ASSERT_TRUE(id);
    EXPECT_TRUE(id->more());
    ASSERT_TRUE(router.disconnect(endpoint));
    const auto got = router.recv();
    ASSERT_TRUE(got);
    EXPECT_EQ(got->text(), body);
    EXPECT_FALSE(got->more());
  }
}

TEST_P(Routing, TheIdOfTheLastPeerIsForgottenWithThePeer) {
  Socket router = make(SocketType::router);
  ASSERT_TRUE(router.set(option::router_mandatory, true));
  const std::string endpoint = bind(router);
  for (int i = 0; i < 2; ++i) {
    Socket dealer = make(SocketType::dealer);
    ASSERT_TRUE(dealer.set(option::routing_id, "the same"));
    connect(dealer, endpoint);
    EXPECT_EQ(introduce(dealer, router), "the same");
    for (const std::string_view text : {"one", "two"}) {
      send(router, {"the same", text});
      EXPECT_EQ(recv_text(dealer), text);
    }
    dealer.close();
    // Sends until the router has noticed the peer's end; before that it refuses or drops the message.
    while (router.send("the same", More::yes)) {
      ASSERT_TRUE(router.send("lost"));
    }
  }
}

TEST_P(Routing, AMessageToAnUnknownIdentityIsACountedDrop) {
  Socket router = make(SocketType::router);
  Socket dealer = make(SocketType::dealer);
  connect(dealer, bind(router));
  const std::string id = introduce(dealer, router);
  EXPECT_EQ(router.statistics()->dropped, 0u);
  send(router, {"nobody", "lost"});
  send(router, {"nobody", "also", "lost"});
  EXPECT_EQ(router.statistics()->dropped, 2u);
  send(router, {id, "found"});
  EXPECT_EQ(recv_text(dealer), "found");
  EXPECT_EQ(router.statistics()->dropped, 2u);
}

TEST_P(Routing, WithMandatoryAnUnknownIdentityIsRefusedAtTheFirstPart) {
  Socket router = make(SocketType::router);
  ASSERT_TRUE(router.set(option::router_mandatory, true));
  Socket dealer = make(SocketType::dealer);
  connect(dealer, bind(router));
  const std::string id = introduce(dealer, router);
  EXPECT_EQ(router.send("nobody", More::yes).error(), Errc::unreachable);
  send(router, {id, "found"});  // the refused part began no message
  EXPECT_EQ(recv_text(dealer), "found");
  EXPECT_EQ(router.statistics()->dropped, 0u);
}

TEST_P(Routing, WithMandatoryAPeerThatLeftIsUnreachable) {
  Socket router = make(SocketType::router);
  ASSERT_TRUE(router.set(option::router_mandatory, true));
  ASSERT_TRUE(router.watch_events());
  Socket dealer = make(SocketType::dealer);
  connect(dealer, bind(router));
  const std::string id = introduce(dealer, router);
  dealer.close();
  if (GetParam().streams) {
    wait_for_event(router, EventKind::disconnected);
  }
  EXPECT_EQ(router.send(id, More::yes).error(), Errc::unreachable);
}

TEST_P(Routing, AnIdentityInUseIsRefusedWithoutHandover) {
  Socket router = make(SocketType::router);
  ASSERT_TRUE(router.watch_events());
  const std::string endpoint = bind(router);
  Socket first = make(SocketType::dealer);
  Socket second = make(SocketType::dealer);
  ASSERT_TRUE(first.set(option::routing_id, "same"));
  ASSERT_TRUE(second.set(option::routing_id, "same"));
  ASSERT_TRUE(second.set(option::linger, 0ms));
  connect(first, endpoint);
  EXPECT_EQ(introduce(first, router), "same");
  connect(second, endpoint);
  if (GetParam().streams) {
    wait_for_event(router, EventKind::handshake_failed);
  }
  send(router, {"same", "for the first"});
  EXPECT_EQ(recv_text(first), "for the first");
  EXPECT_EQ(second.try_recv().error(), Errc::would_block);
}

TEST_P(Routing, WithHandoverTheNewPeerTakesTheIdentityAndTheOldOnesMessagesStillCome) {
  Socket router = make(SocketType::router);
  ASSERT_TRUE(router.set(option::router_handover, true));
  const std::string endpoint = bind(router);
  Socket first = make(SocketType::dealer);
  Socket second = make(SocketType::dealer);
  ASSERT_TRUE(first.set(option::routing_id, "same"));
  ASSERT_TRUE(second.set(option::routing_id, "same"));
  connect(first, endpoint);
  EXPECT_EQ(introduce(first, router), "same");
  connect(second, endpoint);
  EXPECT_EQ(introduce(second, router), "same");
  send(router, {"same", "for the second"});
  EXPECT_EQ(recv_text(second), "for the second");
  send(first, "from the first");
  const Texts got = recv(router);
  EXPECT_NE(got[0], "same");
  EXPECT_EQ(got[1], "from the first");
  send(router, {got[0], "for the first"});
  EXPECT_EQ(recv_text(first), "for the first");
}

TEST_P(Routing, AnIdentityIsFreeAgainWhenItsOwnerHasLeft) {
  Socket router = make(SocketType::router);
  ASSERT_TRUE(router.watch_events());
  const std::string endpoint = bind(router);
  for (int i = 0; i < 3; ++i) {
    Socket dealer = make(SocketType::dealer);
    ASSERT_TRUE(dealer.set(option::routing_id, "same"));
    connect(dealer, endpoint);
    EXPECT_EQ(introduce(dealer, router), "same");
    send(router, {"same", "back"});
    EXPECT_EQ(recv_text(dealer), "back");
    dealer.close();
    if (GetParam().streams) {
      wait_for_event(router, EventKind::disconnected);
    }
  }
}

TEST_P(Routing, RoutersTalkToEachOtherByIdentity) {
  Socket one = make(SocketType::router);
  Socket two = make(SocketType::router);
  ASSERT_TRUE(one.set(option::routing_id, "one"));
  ASSERT_TRUE(two.set(option::routing_id, "two"));
  ASSERT_TRUE(one.set(option::router_mandatory, true));
  ASSERT_TRUE(one.watch_events());
  connect(two, bind(one));
  wait_for_peers(one);
  send(one, {"two", "from one"});
  EXPECT_EQ(recv(two), (Texts{"one", "from one"}));
  send(two, {"one", "from", "two"});
  EXPECT_EQ(recv(one), (Texts{"two", "from", "two"}));
}

TEST_P(Routing, TheBodyBehindAnIdentityNeverBlocks) {
  Socket router = make(SocketType::router);
  Socket dealer = make(SocketType::dealer);
  connect(dealer, bind(router));
  constexpr int kCount = 2000;
  std::thread sender([&] {
    for (int i = 0; i < kCount; ++i) {
      send(dealer, std::to_string(i));
    }
  });
  for (int i = 0; i < kCount; ++i) {
    const auto id = router.recv();
    ASSERT_TRUE(id);
    ASSERT_TRUE(id->more());
    const auto body = router.try_recv();
    ASSERT_TRUE(body) << body.error().message() << " at " << i;
    EXPECT_EQ(body->text(), std::to_string(i));
    EXPECT_FALSE(body->more());
  }
  sender.join();
}

TEST_P(Routing, TheRouterTakesFromItsPeersInTurnWithoutMixingParts) {
  Socket router = make(SocketType::router);
  const std::string endpoint = bind(router);
  std::vector<Socket> dealers;
  for (int i = 0; i < 3; ++i) {
    dealers.push_back(make(SocketType::dealer));
    ASSERT_TRUE(dealers.back().set(option::routing_id, std::to_string(i)));
    connect(dealers.back(), endpoint);
  }
  for (int k = 0; k < 50; ++k) {
    for (std::size_t i = 0; i < 3; ++i) {
      send(dealers[i], {std::to_string(i), std::string(k % 2 == 0 ? 10 : 5000, 'x'), std::to_string(k)});
    }
  }
  std::vector<int> next(3, 0);
  for (int n = 0; n < 150; ++n) {
    const Texts got = recv(router);
    ASSERT_EQ(got.size(), 4u);
    EXPECT_EQ(got[0], got[1]);
    EXPECT_EQ(got[3], std::to_string(next[static_cast<std::size_t>(std::stoi(got[0]))]++));
  }
}

}  // namespace
}  // namespace weft::conformance
