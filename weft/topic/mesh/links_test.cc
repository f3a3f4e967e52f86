// SPDX-License-Identifier: MIT
#include "weft/topic/mesh/links.h"

#include <string>
#include <vector>

#include "weft/topic/mesh/test_mesh.h"
#include <gtest/gtest.h>

namespace weft::topic {
namespace {

using namespace std::chrono_literals;

TEST(Links, AHandleHasOneConnectionUnderAllOfItsNames) {
  Links links(1);
  EXPECT_EQ(links.begin("a", 2, false, kMeshStart).step, Links::Step::connect);
  EXPECT_EQ(links.begin("a", 2, false, kMeshStart).step, Links::Step::nothing);
  EXPECT_EQ(links.begin("b", 2, false, kMeshStart).step, Links::Step::nothing) << "another name of a rostered handle";
  EXPECT_EQ(links.begin("c", 0, true, kMeshStart).step, Links::Step::scout);
  EXPECT_FALSE(links.note_scouted("c", 2));
  EXPECT_TRUE(links.find("c")->other_name);
  EXPECT_EQ(links.begin("own", 0, true, kMeshStart).step, Links::Step::scout);
  EXPECT_FALSE(links.note_scouted("own", 1)) << "this handle";
  EXPECT_EQ(links.begin("d", 0, true, kMeshStart).step, Links::Step::scout);
  EXPECT_TRUE(links.note_scouted("d", 3));
  EXPECT_FALSE(links.note_scouted("d", 4)) << "it is connected";
  EXPECT_FALSE(links.note_scouted("unknown", 4));
}

TEST(Links, AnotherHandleAtAConnectedEndpointReplacesTheFormerOne) {
  Links links(1);
  ASSERT_EQ(links.begin("a", 2, false, kMeshStart).step, Links::Step::connect);
  Links::Begun begun = links.begin("a", 3, false, kMeshStart);
  EXPECT_EQ(begun.replaced, 2U);
  EXPECT_FALSE(begun.stands);
  ASSERT_NE(links.note_connection("a", true, kMeshStart), nullptr);
  begun = links.begin("a", 2, false, kMeshStart);
  EXPECT_EQ(begun.replaced, 3U);
  EXPECT_TRUE(begun.stands) << "the new one has received nothing";
  EXPECT_EQ(links.begin("a", 3, false, kMeshStart).replaced, 2U);
  EXPECT_EQ(links.find("a")->instance, 3U);
}

// Regression: a handle that restarted had two connections under its two names, and each message came twice.
TEST(Links, AnotherHandleAtAConnectedEndpointThatHasAConnectionLosesThisOne) {
  for (const bool given : {false, true}) {
    SCOPED_TRACE(given);
    Links links(1);
    ASSERT_EQ(links.begin("alias", 0, true, kMeshStart).step, Links::Step::scout);
    ASSERT_TRUE(links.note_scouted("alias", 3));
    ASSERT_EQ(links.begin("a", 2, given, kMeshStart).step, Links::Step::connect);
    ASSERT_NE(links.note_connection("a", true, kMeshStart), nullptr);
    const Links::Begun begun = links.begin("a", 3, false, kMeshStart);
    EXPECT_EQ(begun.step, Links::Step::disconnect);
    EXPECT_EQ(begun.replaced, 2U);
    EXPECT_FALSE(begun.stands);
    EXPECT_EQ(links.find("a") != nullptr, given);
    EXPECT_TRUE(!given || links.find("a")->other_name);
    EXPECT_EQ(links.begin("a", 3, false, kMeshStart).step, Links::Step::nothing);
  }
}

TEST(Links, AFailedConnectionOfAGivenEndpointIsScoutedAgainWithItsOtherNames) {
  Links links(1);
  ASSERT_EQ(links.begin("a", 0, true, kMeshStart).step, Links::Step::scout);
  ASSERT_TRUE(links.note_scouted("a", 2));
  ASSERT_EQ(links.begin("b", 0, true, kMeshStart).step, Links::Step::scout);
  ASSERT_FALSE(links.note_scouted("b", 2));
  EXPECT_NE(links.note_connection("a", true, kMeshStart), nullptr);
  EXPECT_TRUE(links.unconnected().empty());
  EXPECT_NE(links.note_connection("a", false, kMeshStart), nullptr);
  EXPECT_EQ(links.failed_given(), std::vector<std::string>{"a"});
  EXPECT_EQ(links.scout_again("a"), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(links.unconnected(), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(links.note_connection("a", true, kMeshStart), nullptr) << "it is not connected";
  EXPECT_TRUE(links.scout_again("unknown").empty());
  EXPECT_TRUE(links.note_scouted("b", 2)) << "either name may come first";
  links.note_unconnected("b");
  EXPECT_FALSE(links.find("b")->connected);
}

// Regression: the other names of a handle whose link was removed were never tried again.
TEST(Links, TheOtherNamesOfAHandleWithoutALinkAreScouted) {
  Links links(1);
  ASSERT_EQ(links.begin("a", 2, false, kMeshStart).step, Links::Step::connect);
  for (const char* const name : {"b", "own"}) {
    ASSERT_EQ(links.begin(name, 0, true, kMeshStart).step, Links::Step::scout);
  }
  ASSERT_FALSE(links.note_scouted("b", 2));
  ASSERT_FALSE(links.note_scouted("own", 1));
  EXPECT_FALSE(links.free_other_names(3));
  ASSERT_TRUE(links.remove("a"));
  EXPECT_TRUE(links.free_other_names(2));
  EXPECT_EQ(links.unconnected(), std::vector<std::string>{"b"});
  EXPECT_TRUE(links.note_scouted("b", 2));
}

TEST(Links, AFullTableHasRoomForAHandleInThePlaceOfALearnedOneThatFails) {
  Links links(1);
  ASSERT_EQ(links.begin("given", 0, true, kMeshStart).step, Links::Step::scout);
  for (std::uint64_t i = 1; i < Links::kLinksMax; ++i) {
    ASSERT_EQ(links.begin(std::to_string(i), 100 + i, false, kMeshStart).step, Links::Step::connect);
  }
  EXPECT_TRUE(links.is_full());
  EXPECT_EQ(links.begin("more", 2, false, kMeshStart).step, Links::Step::nothing);
  EXPECT_EQ(links.yielding("more"), nullptr) << "none has failed";
  ASSERT_NE(links.note_connection("7", false, kMeshStart), nullptr);
  EXPECT_EQ(links.yielding("7"), nullptr) << "it is in the table";
  ASSERT_NE(links.yielding("more"), nullptr);
  EXPECT_EQ(*links.yielding("more"), "7");
  EXPECT_TRUE(links.remove("7"));
  EXPECT_FALSE(links.remove("7"));
  EXPECT_EQ(links.begin("more", 2, false, kMeshStart).step, Links::Step::connect);
}

TEST(Links, ACallerWaitsForAGivenPeerAndNotForALearnedOneThatLeft) {
  Links links(1);
  const Peers nobody;
  EXPECT_TRUE(links.settled(1, nobody));
  ASSERT_EQ(links.begin("a", 2, false, kMeshStart).step, Links::Step::connect);
  EXPECT_FALSE(links.settled(1, nobody));
  EXPECT_FALSE(links.owners_known(1, nobody));
  EXPECT_FALSE(links.services_known(nobody));
  for (unsigned i = 0; i < Links::kLearnedFailures; ++i) {
    EXPECT_FALSE(links.settled(1, nobody));
    ASSERT_NE(links.note_connection("a", false, kMeshStart), nullptr);
    EXPECT_TRUE(links.owners_known(1, nobody)) << "it is not reachable";
  }
  EXPECT_TRUE(links.settled(1, nobody));
  ASSERT_NE(links.note_connection("a", true, kMeshStart), nullptr);
  Peers peers = peers_of({2});
  EXPECT_FALSE(links.settled(1, peers)) << "it has not answered this request";
  EXPECT_EQ(links.unanswered(1, peers), std::vector<std::uint64_t>{2});
  RosterUpdate update = update_of(2);
  update.our_ask = 1;
  peers.enter(std::move(update), kMeshStart);
  EXPECT_TRUE(links.settled(1, peers) && links.owners_known(1, peers) && links.services_known(peers));
  EXPECT_FALSE(links.settled(2, peers));
  EXPECT_TRUE(links.unanswered(1, peers).empty());

  ASSERT_EQ(links.begin("given", 0, true, kMeshStart).step, Links::Step::scout);
  links.note_unconnected("given");
  EXPECT_FALSE(links.settled(1, peers));
  EXPECT_TRUE(links.unlist("given"));
  EXPECT_FALSE(links.unlist("given"));
}

TEST(Links, APlainPublisherAnswersNothing) {
  Links links(1);
  ASSERT_EQ(links.begin("a", 0, true, kMeshStart).step, Links::Step::scout);
  ASSERT_TRUE(links.note_scouted("a", 0));
  EXPECT_FALSE(links.settled(1, Peers())) << "it is not connected yet";
  ASSERT_NE(links.note_connection("a", true, kMeshStart), nullptr);
  EXPECT_TRUE(links.settled(1, Peers()));
  EXPECT_TRUE(links.unanswered(1, Peers()).empty());
}

TEST(Links, TheStateThatDiffersFromTheConnectionsIsFound) {
  Links links(1);
  ASSERT_EQ(links.begin("a", 2, false, kMeshStart).step, Links::Step::connect);
  ASSERT_EQ(links.begin("b", 3, false, kMeshStart).step, Links::Step::connect);
  ASSERT_EQ(links.begin("inproc://c", 4, false, kMeshStart).step, Links::Step::connect);
  ASSERT_NE(links.note_connection("b", true, kMeshStart), nullptr);
  links.note_inproc_up("inproc://c");
  const auto differing = links.differing({"a"});
  ASSERT_EQ(differing.size(), 2U);
  EXPECT_EQ(differing[0], (std::pair<std::string, bool>{"a", true}));
  EXPECT_EQ(differing[1], (std::pair<std::string, bool>{"b", false}));
  EXPECT_TRUE(links.is_linked(3) && links.is_linked(4) && !links.is_linked(2));
}

TEST(Links, AHandleOfTheProcessTakesThePlaceOfItsOtherConnection) {
  Links links(1);
  ASSERT_EQ(links.begin("tcp", 2, false, kMeshStart).step, Links::Step::connect);
  Links::InprocLink known = links.inproc_link(2, "inproc");
  EXPECT_FALSE(known.stands);
  ASSERT_NE(known.other, nullptr);
  EXPECT_EQ(*known.other, "tcp");
  ASSERT_TRUE(links.remove("tcp"));
  ASSERT_EQ(links.begin("inproc", 2, false, kMeshStart).step, Links::Step::connect);
  known = links.inproc_link(2, "inproc");
  EXPECT_TRUE(known.stands && !known.inner && known.other == nullptr);
  links.note_inner("inproc");
  EXPECT_TRUE(links.inproc_link(2, "inproc").inner);
}

}  // namespace
}  // namespace weft::topic
