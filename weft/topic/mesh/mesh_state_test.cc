// SPDX-License-Identifier: MIT
#include "weft/topic/mesh/mesh_state.h"

#include <chrono>
#include <vector>

#include "weft/topic/mesh/test_mesh.h"
#include <gtest/gtest.h>

namespace weft::topic {
namespace {

constexpr std::uint64_t kServer = 2;
constexpr std::uint64_t kRequest = 9;

// A handle that has a link to another one, whose roster came over the other's own connection, and a request under way.
class MeshRequest : public testing::Test {
 protected:
  MeshRequest() {
    (void)mesh_.begin_link("e", kServer, false, kMeshStart);
    (void)mesh_.handle_link("e", true, kMeshStart);
    enter();
    mesh_.requests().begin(kRequest, {{"", kServer}});
  }

  void enter() {
    Roster roster;
    roster.services.push_back({"s", ""});
    (void)mesh_.enter_roster(update_of(kServer, roster), kMeshStart);
  }
  void end_its_connection() {
    (void)mesh_.end_connections([](PeerConnection) { return false; });
  }
  std::vector<std::uint64_t> ended() {
    std::vector<std::uint64_t> ids;
    mesh_.requests().take_ended([&](std::uint64_t id) { ids.push_back(id); });
    return ids;
  }

  MeshState mesh_{{.instance = 1}};
};

// A handle that closes ends its two connections at the same time. Its last reply comes over our link.
TEST_F(MeshRequest, StaysWhileItsReplyMayStillCome) {
  end_its_connection();
  EXPECT_TRUE(ended().empty());
  EXPECT_FALSE(mesh_.served("s"));
  (void)mesh_.handle_link("e", false, kMeshStart);
  EXPECT_EQ(ended(), std::vector{kRequest});
}

TEST_F(MeshRequest, EndsWithTheLinkWhicheverEndsFirst) {
  (void)mesh_.handle_link("e", false, kMeshStart);
  EXPECT_EQ(ended(), std::vector{kRequest});
  end_its_connection();
  EXPECT_TRUE(ended().empty());
}

TEST_F(MeshRequest, EndsWhenItsHandleComesBackOverAnotherConnection) {
  end_its_connection();
  enter();
  EXPECT_EQ(ended(), std::vector{kRequest}) << "the ended connection may have lost it";
}

// Of a fleet with servers.
TEST(MeshLease, AHandleIsForgottenWhenItsLeasePassedAndAnotherRosterComes) {
  MeshState mesh({.instance = 1});
  const auto enter = [&](std::uint64_t from, Instant now) {
    mesh.handle_leased(from, now);
    RosterUpdate update = update_of(from);
    update.lease = std::chrono::seconds(3);
    (void)mesh.enter_roster(std::move(update), now);
  };
  enter(2, kMeshStart);
  enter(3, kMeshStart + std::chrono::seconds(2));
  EXPECT_NE(mesh.peers().find(2), nullptr);
  enter(4, kMeshStart + std::chrono::seconds(3));
  EXPECT_EQ(mesh.peers().find(2), nullptr);
  EXPECT_NE(mesh.peers().find(3), nullptr);
  mesh.handle_silent(3);
  EXPECT_EQ(mesh.peers().find(3), nullptr);
}

}  // namespace
}  // namespace weft::topic
