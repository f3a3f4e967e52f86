// SPDX-License-Identifier: MIT
#include "weft/msg/message/peer_properties.h"

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "weft/msg/message/message.h"
#include <gtest/gtest.h>

namespace weft::msg {
namespace {

using Peer = std::shared_ptr<const KnownPeer>;

Peer remember(const std::string& who) { return KnownPeer::remember({{"X-Who", who}, {"Identity", "me"}}); }

Message from(const Peer& peer) {
  Message message;
  message.set_origin({peer->id(), 0});
  return message;
}

// Peers that come and go, until the table has forgotten everything that came before.
void let_others_come_and_go() {
  const std::string large(15'000, 'A');
  for (std::size_t bytes = 0; bytes < kGonePeerBytesMax; bytes += large.size()) {
    (void)remember(large);
  }
}

TEST(PeerProperties, AreFoundByNameWhileThePeerIsKnown) {
  const Peer peer = KnownPeer::remember({{"A", ""}, {"", "no name"}, {"B", std::string("b\0b", 3)}, {"B", "second"}});
  const Message message = from(peer);
  EXPECT_STREQ(message.peer_property("A"), "");
  EXPECT_STREQ(message.peer_property("B"), "b");
  EXPECT_EQ(message.peer_property("C"), nullptr);
  EXPECT_EQ(message.peer_property(""), nullptr);
  EXPECT_STREQ(from(remember("x")).peer_property("Routing-Id"), "me");
  EXPECT_EQ(Message().peer_property("A"), nullptr);
  EXPECT_EQ(properties_of(0), nullptr);
}

TEST(PeerProperties, AMessageThatWasAskedKeepsThem) {
  Message message = from(remember("the first peer"));
  const char* const who = message.peer_property("X-Who");
  ASSERT_STREQ(who, "the first peer");
  let_others_come_and_go();
  EXPECT_EQ(properties_of(message.origin().peer), nullptr);
  EXPECT_STREQ(who, "the first peer");
  EXPECT_EQ(message.peer_property("X-Who"), who);
  const Message copy = message.share();
  const Message moved = std::move(message);
  EXPECT_EQ(copy.peer_property("X-Who"), who);
  EXPECT_EQ(moved.peer_property("X-Who"), who);
}

TEST(PeerProperties, StayWhenTheGroupOrTheRoutingIdChanges) {
  Message message = from(remember("the first peer"));
  const char* const who = message.peer_property("X-Who");
  let_others_come_and_go();
  ASSERT_TRUE(message.set_group("group"));
  ASSERT_TRUE(message.set_routing_id(7));
  ASSERT_TRUE(message.set_group(""));
  EXPECT_EQ(message.peer_property("X-Who"), who);
  EXPECT_EQ(message.group(), "");
  EXPECT_EQ(message.routing_id(), 7u);
  Message other;
  other.share_sender(message);
  EXPECT_EQ(other.peer_property("X-Who"), who);
  EXPECT_TRUE(other.assign_copy({}));
  other.set_origin({});
  EXPECT_EQ(other.peer_property("X-Who"), nullptr);
}

TEST(PeerProperties, AMessageThatWasNotAskedLosesThemOnlyWhenManyBytesHaveGone) {
  const Peer stays = remember("stays");
  Message unasked;
  {
    const Peer goes = remember("goes");
    unasked = from(goes);
  }
  EXPECT_STREQ(unasked.share().peer_property("X-Who"), "goes");
  let_others_come_and_go();
  EXPECT_EQ(unasked.peer_property("X-Who"), nullptr);
  EXPECT_STREQ(from(stays).peer_property("X-Who"), "stays");
}

TEST(PeerProperties, CopiesInOtherThreadsMayBeAskedAtOnce) {
  for (int round = 0; round < 50; ++round) {
    const Peer peer = remember("one");
    Message message = from(peer);
    ASSERT_TRUE(message.set_group("shared"));  // so that the copies have a common tag
    std::atomic<int> ready{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i) {
      threads.emplace_back([&ready, copy = message.share()] {
        ready.fetch_add(1);
        while (ready.load() < 3) {
        }
        EXPECT_STREQ(copy.peer_property("X-Who"), "one");
        EXPECT_EQ(copy.group(), "shared");
      });
    }
    for (std::thread& thread : threads) {
      thread.join();
    }
  }
}

}  // namespace
}  // namespace weft::msg
