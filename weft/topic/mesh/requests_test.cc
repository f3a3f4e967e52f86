// SPDX-License-Identifier: MIT
#include "weft/topic/mesh/requests.h"

#include <algorithm>
#include <set>
#include <vector>

#include "weft/topic/mesh/test_mesh.h"
#include <gtest/gtest.h>

namespace weft::topic {
namespace {

Peers servers(const std::vector<std::pair<std::uint64_t, std::string>>& groups) {
  Peers peers;
  for (const auto& [instance, group] : groups) {
    Roster roster;
    roster.services = {{"svc", group}};
    peers.enter(update_of(instance, roster), kMeshStart);
  }
  return peers;
}

TEST(Requests, OneMemberOfEachGroupGetsARequestInTurn) {
  Requests ours(1);
  ASSERT_TRUE(ours.serve(7, "svc", "a"));
  const Peers peers = servers({{2, "a"}, {3, "b"}, {4, "a"}});
  std::set<std::uint64_t> of_a;
  for (int turn = 0; turn < 3; ++turn) {
    const auto members = *ours.choose("svc", peers);
    ASSERT_EQ(members.size(), 2U);
    EXPECT_EQ(members[0].group, "a");
    of_a.insert(members[0].instance);
    EXPECT_EQ(members[1].group, "b");
    EXPECT_EQ(members[1].instance, 3U);
  }
  EXPECT_EQ(of_a, (std::set<std::uint64_t>{1, 2, 4}));
  EXPECT_TRUE(ours.choose("other", peers)->empty());
  EXPECT_TRUE(ours.served("svc", peers));
  EXPECT_FALSE(ours.served("other", peers));
}

TEST(Requests, AHandleThatHasNotAnsweredGetsNone) {
  Requests ours(1);
  Peers peers;
  Roster roster;
  roster.services = {{"svc", ""}};
  RosterUpdate update = update_of(2, roster);
  update.answered = false;
  peers.enter(std::move(update), kMeshStart);
  EXPECT_TRUE(ours.choose("svc", peers)->empty());
  EXPECT_FALSE(ours.served("svc", peers));
  peers.enter(update_of(2, roster), kMeshStart);
  EXPECT_EQ(ours.choose("svc", peers)->size(), 1U);
}

TEST(Requests, ARequestEndsOnceWhenTheLastOfItsMembersIsGone) {
  Requests ours(1);
  ours.begin(5, {{"a", 2}, {"b", 3}});
  ours.begin(6, {{"a", 2}});
  std::vector<std::uint64_t> ended;
  const auto take = [&] { ours.take_ended([&](std::uint64_t id) { ended.push_back(id); }); };
  take();
  EXPECT_TRUE(ended.empty());
  ours.forget(2);
  take();
  EXPECT_EQ(ended, std::vector<std::uint64_t>{6});
  ours.forget(2);
  ours.forget(9);
  take();
  EXPECT_EQ(ended.size(), 1U);
  ours.forget(3);
  take();
  take();
  EXPECT_EQ(ended, (std::vector<std::uint64_t>{6, 5}));
  ours.end(5);
  ours.end(6);
  EXPECT_EQ(ours.size(), 0U);
}

TEST(Requests, RequestsUnderWayAndServicesAreBounded) {
  Requests ours(1);
  for (std::uint64_t id = 1; id <= Roster::kServicesMax; ++id) {
    ASSERT_TRUE(ours.serve(id, "svc", ""));
  }
  EXPECT_EQ(ours.serve(9999, "svc", "").error(), Errc::resource_exhausted);
  EXPECT_TRUE(ours.stop_serving(3));
  EXPECT_FALSE(ours.stop_serving(3));
  EXPECT_TRUE(ours.serve(9999, "svc", ""));
  for (std::uint64_t id = 0; id < Requests::kRequestsMax; ++id) {
    ours.begin(id, {{"", 1}});
  }
  EXPECT_EQ(ours.choose("svc", Peers()).error(), Errc::resource_exhausted);
  ours.end(0);
  EXPECT_TRUE(ours.choose("svc", Peers()));
}

TEST(Requests, TheServicesOfAGroupTakeTurns) {
  Requests ours(1);
  ASSERT_TRUE(ours.serve(7, "svc", "a") && ours.serve(8, "svc", "a") && ours.serve(9, "svc", "b"));
  std::vector<std::uint64_t> turns;
  for (int turn = 0; turn < 4; ++turn) {
    turns.push_back(ours.next_service("svc", "a"));
  }
  EXPECT_EQ(std::count(turns.begin(), turns.end(), 7), 2);
  EXPECT_EQ(std::count(turns.begin(), turns.end(), 8), 2);
  EXPECT_EQ(ours.next_service("svc", "b"), 9U);
  EXPECT_EQ(ours.next_service("svc", "c"), 0U);
  std::vector<Roster::Service> services;
  ours.append_services(services);
  EXPECT_EQ(services.size(), 3U);
}

}  // namespace
}  // namespace weft::topic
