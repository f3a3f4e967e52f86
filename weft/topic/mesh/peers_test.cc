// SPDX-License-Identifier: MIT
#include "weft/topic/mesh/peers.h"

#include <algorithm>
#include <string>
#include <vector>

#include "weft/topic/mesh/test_mesh.h"
#include <gtest/gtest.h>

namespace weft::topic {
namespace {

using namespace std::chrono_literals;

TEST(MeshPeers, AConnectionCarriesTheMessagesOfOneHandle) {
  Peers peers = peers_of({2});
  const auto open = [](PeerConnection) { return true; };
  const auto ended = [](PeerConnection) { return false; };
  EXPECT_TRUE(peers.may_carry(2, 2, false, open));
  EXPECT_FALSE(peers.may_carry(2, 3, false, ended)) << "another handle over its connection";
  EXPECT_FALSE(peers.may_carry(9, 2, false, open)) << "its connection stands";
  EXPECT_TRUE(peers.may_carry(9, 2, true, open)) << "it has shown the secret";
  EXPECT_TRUE(peers.may_carry(9, 2, false, ended));
  EXPECT_TRUE(peers.may_carry(9, 3, false, open)) << "a new handle";
  EXPECT_TRUE(peers.may_carry(0, 2, false, open)) << "within the process";
}

TEST(MeshPeers, ARosterEndsWithItsConnectionAndNotWithAFormerOne) {
  Peers peers = peers_of({2, 3});
  RosterUpdate again = update_of(3);
  again.via = 33;
  peers.enter(std::move(again), kMeshStart);
  std::vector<std::uint64_t> lost;
  peers.end_connections([](PeerConnection via) { return via == 33; },
                        [&](std::uint64_t instance) { lost.push_back(instance); });
  EXPECT_EQ(lost, std::vector<std::uint64_t>{2});
  EXPECT_EQ(peers.connection_count(), 1U);
}

TEST(MeshPeers, AnOlderRevisionReplacesNothing) {
  Peers peers;
  Roster roster;
  roster.node = "new";
  EXPECT_TRUE(peers.enter(update_of(2, roster, 7), kMeshStart));
  roster.node = "old";
  RosterUpdate old = update_of(2, roster, 6);
  old.our_ask = 9;
  EXPECT_FALSE(peers.enter(std::move(old), kMeshStart));
  EXPECT_EQ(peers.find(2)->roster.node, "new");
  EXPECT_EQ(peers.find(2)->our_ask, 9U) << "it answers nevertheless";
}

TEST(MeshPeers, PeersRostersAndConnectionsAreBounded) {
  Peers peers;
  for (std::uint64_t instance = 1; instance <= Peers::kPeersMax; ++instance) {
    ASSERT_EQ(peers.admit(update_of(instance)), Outcome::taken);
    peers.enter(update_of(instance), kMeshStart);
  }
  EXPECT_EQ(peers.admit(update_of(9999)), Outcome::refused);
  EXPECT_EQ(peers.admit(update_of(5)), Outcome::taken) << "a known peer";

  RosterUpdate large = update_of(5);
  large.bytes = Peers::kRosterBytesMax;
  ASSERT_EQ(peers.admit(large), Outcome::taken);
  peers.enter(std::move(large), kMeshStart);
  RosterUpdate more = update_of(6);
  more.bytes = 1;
  EXPECT_EQ(peers.admit(more), Outcome::refused);
  RosterUpdate less = update_of(5);
  less.bytes = 10;
  ASSERT_EQ(peers.admit(less), Outcome::taken) << "it replaces its own";
  peers.enter(std::move(less), kMeshStart);
  EXPECT_EQ(peers.roster_bytes(), 10U);
  peers.forget(5);
  EXPECT_EQ(peers.roster_bytes(), 0U);
}

TEST(MeshPeers, TheConnectionsOfOnePeerAreBounded) {
  Peers peers;
  for (std::size_t i = 1; i <= Peers::kConnectionsMax; ++i) {
    RosterUpdate update = update_of(2);
    update.via = static_cast<PeerConnection>(i);
    ASSERT_EQ(peers.admit(update), Outcome::taken);
    peers.enter(std::move(update), kMeshStart);
  }
  RosterUpdate update = update_of(2);
  update.via = 100'000;
  EXPECT_EQ(peers.admit(update), Outcome::refused);
  EXPECT_EQ(peers.connection_count(), Peers::kConnectionsMax);
}

TEST(MeshPeers, AHandleThatEndedIsEnteredNoMoreAndTheMemoryOfThemIsBounded) {
  Peers peers;
  peers.gone(2);
  EXPECT_EQ(peers.admit(update_of(2)), Outcome::ignored);
  EXPECT_TRUE(peers.is_lost(2));
  peers.found(2);
  EXPECT_FALSE(peers.is_lost(2));
  EXPECT_TRUE(peers.is_gone(2));
  for (std::uint64_t instance = 100; instance < 100 + Peers::kGoneMax; ++instance) {
    peers.gone(instance);
  }
  EXPECT_FALSE(peers.is_gone(2)) << "long ago";
}

TEST(MeshPeers, EachSideNotesASeparationForItself) {
  Peers peers = peers_of({2});
  peers.part(2);
  peers.part(3);
  EXPECT_FALSE(peers.parted().contains(3)) << "no peer";
  EXPECT_TRUE(peers.parted().contains(2));
  EXPECT_FALSE(peers.find(2)->parted) << "only this handle has";
  RosterUpdate theirs = update_of(2);
  theirs.parted = true;
  peers.enter(std::move(theirs), kMeshStart);
  EXPECT_TRUE(peers.find(2)->parted);
}

TEST(MeshPeers, ALeaseEndsAtItsTime) {
  Peers peers = peers_of({4});
  RosterUpdate update = update_of(2);
  update.lease = 10s;
  peers.enter(std::move(update), kMeshStart);
  update = update_of(3);
  update.lease = Duration::max();
  peers.enter(std::move(update), kMeshStart);
  const auto present = [&](Instant now) {
    std::vector<std::uint64_t> instances;
    peers.each_present(now, [&](std::uint64_t instance, const Peers::Peer&) { instances.push_back(instance); });
    return instances;
  };
  EXPECT_EQ(peers.next_expiry(kMeshStart), kMeshStart + 10s);
  EXPECT_EQ(present(kMeshStart + 10s - 1ns), (std::vector<std::uint64_t>{2, 3}));
  EXPECT_EQ(present(kMeshStart + 10s), std::vector<std::uint64_t>{3});
  EXPECT_EQ(peers.next_expiry(kMeshStart + 10s), kNever);
}

TEST(MeshPeers, ARosterIsReadWithTheAnswerToThisHandle) {
  Roster roster;
  roster.node = "n";
  roster.ask = 4;
  roster.owned = {{"t", 7}};
  roster.heard = {{1, 9}, {5, 2}};
  roster.peers = {{6, "tcp://127.0.0.1:1"}};
  roster.parted = {1};
  Control control{.kind = Control::Kind::roster, .from = 2, .id = 3, .number = 8, .texts = roster_texts(roster)};
  const RosterUpdate update = *read_roster(control, 22, 1, kMeshClock);
  EXPECT_EQ(update.from, 2U);
  EXPECT_EQ(update.via, 22U);
  EXPECT_EQ(update.revision, 3U);
  EXPECT_EQ(update.lease, 8ns);
  EXPECT_TRUE(update.answered);
  EXPECT_EQ(update.our_ask, 9U);
  EXPECT_TRUE(update.parted);
  EXPECT_EQ(update.known.size(), 1U);
  EXPECT_EQ(update.roster.ask, 4U);
  EXPECT_TRUE(update.roster.heard.empty() && update.roster.peers.empty() && update.roster.parted.empty());
  const RosterUpdate of_other = *read_roster(control, 22, 99, kMeshClock);
  EXPECT_FALSE(of_other.answered || of_other.parted);
  control.number = ~std::uint64_t{0};
  EXPECT_GT(read_roster(control, 22, 1, kMeshClock)->lease, 1h);
  roster.owned = {{"t", kMeshClock + kEpochAhead + 1}};
  control.texts = roster_texts(roster);
  EXPECT_EQ(read_roster(control, 22, 1, kMeshClock).error(), Errc::protocol_error);
}

}  // namespace
}  // namespace weft::topic
