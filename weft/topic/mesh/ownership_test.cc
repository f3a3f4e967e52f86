// SPDX-License-Identifier: MIT
#include "weft/topic/mesh/ownership.h"

#include <string>
#include <vector>

#include "weft/topic/mesh/test_mesh.h"
#include <gtest/gtest.h>

namespace weft::topic {
namespace {

constexpr std::uint64_t kAsk = 3;  // the last request for rosters

// A peer whose roster answers that request, with the topic "t".
Peers::Peer owner_of(std::uint64_t epoch, bool parted = false, std::uint64_t our_ask = kAsk) {
  Peers::Peer peer;
  peer.roster.owned = {{"t", epoch}};
  peer.parted = parted;
  peer.our_ask = our_ask;
  return peer;
}

Control claim_of(std::uint64_t from, const std::string& topic, std::uint64_t epoch) {
  return {.kind = Control::Kind::claim, .from = from, .id = 1, .number = epoch, .texts = {topic}};
}
Control answer_of(std::uint64_t from, std::uint64_t id, std::uint64_t epoch = 0, bool taken = false) {
  Control answer{.kind = Control::Kind::claim_answer, .from = from, .id = id, .number = epoch};
  if (taken) {
    answer.texts = {"taken"};
  }
  return answer;
}

TEST(Ownership, AClaimWithoutPeersIsDecidedAtOnceAndItsEpochIsTheTime) {
  Ownership ours(1);
  ASSERT_TRUE(ours.begin("t", 5, Peers(), kMeshClock, kAsk));
  EXPECT_TRUE(ours.decided(5));
  EXPECT_EQ(*ours.end(5, true), kMeshClock);
  EXPECT_EQ(ours.owned().at("t").epoch, kMeshClock);
  EXPECT_EQ(ours.begin("t", 6, Peers(), kMeshClock, kAsk).error(), Errc::conflict) << "it owns the topic";
  ours.give_up("t");
  ASSERT_TRUE(ours.begin("t", 7, Peers(), kMeshClock, kAsk));
  EXPECT_EQ(*ours.end(7, true), kMeshClock + 1) << "greater than the former epoch";
}

TEST(Ownership, AClaimWaitsForEachPeerAndForNoOther) {
  Ownership ours(1);
  ASSERT_TRUE(ours.begin("t", 5, peers_of({2, 3, 4}), kMeshClock, kAsk));
  EXPECT_EQ(ours.unanswered().size(), 3U);
  EXPECT_EQ(ours.handle_answer(answer_of(2, 5), kMeshClock), Outcome::taken);
  EXPECT_EQ(ours.handle_answer(answer_of(99, 5), kMeshClock), Outcome::taken) << "a peer that was not asked";
  EXPECT_EQ(ours.handle_answer(answer_of(3, 6), kMeshClock), Outcome::ignored) << "another claim";
  EXPECT_FALSE(ours.decided(5));
  ours.forget(3);
  EXPECT_FALSE(ours.decided(5));
  EXPECT_EQ(ours.end(5, false).error(), Errc::timed_out);
  EXPECT_EQ(ours.claim_count(), 0U);
  EXPECT_TRUE(ours.owned().empty());
}

// Each order in which the two claims and their answers may arrive.
TEST(Ownership, OfTwoClaimsAtOnceOneWinsInEachOrderOfTheMessages) {
  for (const std::uint64_t ahead : {0, 1, 2}) {
    for (unsigned order = 0; order < 16; ++order) {
      SCOPED_TRACE(testing::Message() << "epoch " << ahead << " ahead, order " << order);
      Ownership one(1);
      Ownership two(2);
      const Control of_one = *one.begin("t", 5, peers_of({2}), kMeshClock + 1, kAsk);
      const Control of_two = *two.begin("t", 6, peers_of({1}), kMeshClock + ahead, kAsk);
      Control to_one;
      Control to_two;
      if ((order & 1U) != 0) {
        to_one = *two.handle_claim(of_one, kMeshClock);
        to_two = *one.handle_claim(of_two, kMeshClock);
      } else {
        to_two = *one.handle_claim(of_two, kMeshClock);
        to_one = *two.handle_claim(of_one, kMeshClock);
      }
      if ((order & 2U) != 0) {
        EXPECT_EQ(one.handle_answer(to_one, kMeshClock), Outcome::taken);
        EXPECT_EQ(two.handle_answer(to_two, kMeshClock), Outcome::taken);
      } else {
        EXPECT_EQ(two.handle_answer(to_two, kMeshClock), Outcome::taken);
        EXPECT_EQ(one.handle_answer(to_one, kMeshClock), Outcome::taken);
      }
      ASSERT_TRUE(one.decided(5) && two.decided(6));
      const auto end_one = [&] { return one.end(5, true).has_value(); };
      const auto end_two = [&] { return two.end(6, true).has_value(); };
      const bool first = (order & 4U) != 0 ? end_one() : end_two();
      const bool second = (order & 4U) != 0 ? end_two() : end_one();
      EXPECT_NE(first, second) << "one owner";
      EXPECT_EQ(one.owned().size(), ahead == 2 ? 0U : 1U) << "the higher epoch, then the lower instance";
    }
  }
}

TEST(Ownership, AnOwnerRefusesAndAFormerOwnerRaisesTheEpoch) {
  Ownership owner(1);
  ASSERT_TRUE(owner.begin("t", 5, Peers(), kMeshClock + 10, kAsk));
  ASSERT_TRUE(owner.end(5, true));
  Ownership ours(2);
  const Control claim = *ours.begin("t", 6, peers_of({1}), kMeshClock, kAsk);
  ASSERT_EQ(ours.handle_answer(*owner.handle_claim(claim, kMeshClock), kMeshClock), Outcome::taken);
  EXPECT_EQ(ours.end(6, true).error(), Errc::conflict);

  owner.give_up("t");
  Ownership late(3);
  const Control first = *late.begin("t", 7, peers_of({1}), kMeshClock, kAsk);
  ASSERT_EQ(late.handle_answer(*owner.handle_claim(first, kMeshClock), kMeshClock), Outcome::taken);
  EXPECT_EQ(late.end(7, true).error(), Errc::would_block);
  const Control second = *late.begin("t", 8, peers_of({1}), kMeshClock, kAsk);
  EXPECT_EQ(second.number, kMeshClock + 11);
  ASSERT_EQ(late.handle_answer(*owner.handle_claim(second, kMeshClock), kMeshClock), Outcome::taken);
  EXPECT_EQ(*late.end(8, true), kMeshClock + 11);
}

// The peer has noted the epoch of the first copy; its answer to the second copy has this epoch.
TEST(Ownership, AClaimThatIsSentAgainIsAnsweredTwiceAndWins) {
  Ownership ours(1);
  Ownership peer(2);
  const Control claim = *ours.begin("t", 5, peers_of({2}), kMeshClock, kAsk);
  const Control first = *peer.handle_claim(claim, kMeshClock);
  const Control second = *peer.handle_claim(ours.unanswered().front(), kMeshClock);
  EXPECT_EQ(second.number, kMeshClock);
  ASSERT_EQ(ours.handle_answer(first, kMeshClock), Outcome::taken);
  ASSERT_EQ(ours.handle_answer(second, kMeshClock), Outcome::taken);
  EXPECT_EQ(*ours.end(5, true), kMeshClock);
}

TEST(Ownership, ARosterOfAnOwnerEndsAClaim) {
  Ownership ours(1);
  ASSERT_TRUE(ours.begin("t", 5, peers_of({2}), kMeshClock, kAsk));
  EXPECT_FALSE(ours.handle_owned(3, owner_of(kMeshClock - 1, false, 0), false));
  EXPECT_TRUE(ours.decided(5));
  EXPECT_EQ(ours.end(5, true).error(), Errc::conflict);
}

// The later one's note counts: the earlier one may note the separation at another time.
TEST(Ownership, OfTwoOwnersTheEarlierStaysUnlessTheLaterOneRemembersTheirSeparation) {
  for (const bool early_noted : {false, true}) {
    for (const bool late_noted : {false, true}) {
      SCOPED_TRACE(early_noted * 2 + late_noted);
      Ownership early(1);
      Ownership late(2);
      ASSERT_TRUE(early.begin("t", 5, Peers(), kMeshClock, kAsk));
      ASSERT_TRUE(early.end(5, true));
      ASSERT_TRUE(late.begin("t", 5, Peers(), kMeshClock + 1, kAsk));
      ASSERT_TRUE(late.end(5, true));
      EXPECT_EQ(early.handle_owned(2, owner_of(kMeshClock + 1, late_noted), early_noted), late_noted);
      EXPECT_EQ(late.handle_owned(1, owner_of(kMeshClock, early_noted), late_noted), !late_noted);
      EXPECT_EQ(early.owned().size() + late.owned().size(), 1U);
    }
  }
}

// Regression: the late roster of a handle that had given the topic up before took it from its next owner.
TEST(Ownership, YieldsToNoRosterOfBeforeItsClaim) {
  Ownership ours(1);
  ASSERT_TRUE(ours.begin("t", 5, Peers(), kMeshClock, kAsk) && ours.end(5, true));
  EXPECT_FALSE(ours.handle_owned(2, owner_of(kMeshClock - 1, false, kAsk - 1), false));
  EXPECT_TRUE(ours.owned().contains("t"));
  EXPECT_TRUE(ours.handle_owned(2, owner_of(kMeshClock - 1), false)) << "it still owns the topic";
}

TEST(Ownership, OfTwoOwnersWithOneEpochOneStays) {
  for (const bool parted : {false, true}) {
    SCOPED_TRACE(parted);
    Ownership one(1);
    Ownership two(2);
    ASSERT_TRUE(one.begin("t", 5, Peers(), kMeshClock, kAsk) && one.end(5, true));
    ASSERT_TRUE(two.begin("t", 5, Peers(), kMeshClock, kAsk) && two.end(5, true));
    one.handle_owned(2, owner_of(kMeshClock, parted), parted);
    two.handle_owned(1, owner_of(kMeshClock, parted), parted);
    EXPECT_EQ(one.owned().size() + two.owned().size(), 1U);
  }
}

TEST(Ownership, EpochsBeyondTheirBoundsAreMalformed) {
  EXPECT_FALSE(is_epoch(0, kMeshClock));
  EXPECT_TRUE(is_epoch(1, kMeshClock));
  EXPECT_TRUE(is_epoch(kMeshClock + kEpochAhead, kMeshClock));
  EXPECT_FALSE(is_epoch(kMeshClock + kEpochAhead + 1, kMeshClock));
  Ownership ours(1);
  EXPECT_FALSE(ours.handle_claim(claim_of(2, "t", 0), kMeshClock));
  EXPECT_FALSE(ours.handle_claim(claim_of(2, "t", ~std::uint64_t{0}), kMeshClock));
  EXPECT_FALSE(ours.handle_claim(claim_of(2, "", 1), kMeshClock));
  EXPECT_FALSE(ours.handle_claim(claim_of(2, std::string(256, 'x'), 1), kMeshClock));
  EXPECT_EQ(ours.epoch_count(), 0U);
  ASSERT_TRUE(ours.begin("t", 5, peers_of({2}), kMeshClock, kAsk));
  EXPECT_EQ(ours.handle_answer(answer_of(2, 5, ~std::uint64_t{0}, true), kMeshClock), Outcome::malformed);
  EXPECT_FALSE(ours.decided(5));
}

TEST(Ownership, TheLastEpochIsTheLastOwner) {
  constexpr std::uint64_t kLate = kEpochMax - 1;
  Ownership ours(1);
  ASSERT_TRUE(ours.handle_claim(claim_of(2, "t", kLate), kLate));
  ASSERT_TRUE(ours.begin("t", 5, Peers(), kLate, kAsk));
  EXPECT_EQ(*ours.end(5, true), kEpochMax);
  ours.give_up("t");
  EXPECT_EQ(ours.begin("t", 6, Peers(), kLate, kAsk).error(), Errc::conflict);
}

TEST(Ownership, OwnedTopicsAndClaimsHaveOneBound) {
  Ownership ours(1);
  for (std::uint64_t i = 0; i < Roster::kOwnedMax; ++i) {
    ASSERT_TRUE(ours.begin(std::to_string(i), i + 1, Peers(), kMeshClock, kAsk));
  }
  EXPECT_EQ(ours.begin("more", 9999, Peers(), kMeshClock, kAsk).error(), Errc::conflict);
  for (std::uint64_t i = 0; i < Roster::kOwnedMax; ++i) {
    ASSERT_TRUE(ours.end(i + 1, true));
  }
  EXPECT_EQ(ours.owned().size(), Roster::kOwnedMax);
  EXPECT_EQ(ours.begin("more", 9999, Peers(), kMeshClock, kAsk).error(), Errc::conflict);
}

TEST(Ownership, EpochsOfPeersAreBounded) {
  Ownership ours(1);
  for (std::size_t i = 0; i < Ownership::kEpochsMax + 100; ++i) {
    ASSERT_TRUE(ours.handle_claim(claim_of(2, std::to_string(i), 7), kMeshClock));
  }
  EXPECT_EQ(ours.epoch_count(), Ownership::kEpochsMax);
}

}  // namespace
}  // namespace weft::topic
