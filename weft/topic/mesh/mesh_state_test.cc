// SPDX-License-Identifier: MIT
#include "weft/topic/mesh/mesh_state.h"

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

}  // namespace
}  // namespace weft::topic
