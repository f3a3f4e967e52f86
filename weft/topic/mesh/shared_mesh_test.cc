// SPDX-License-Identifier: MIT
#include "weft/topic/mesh/shared_mesh.h"

#include <thread>

#include "weft/sys/clock.h"
#include <gtest/gtest.h>

namespace weft::topic {
namespace {

bool never(const MeshState& /*mesh*/) { return false; }
bool has_asked(const MeshState& mesh) { return mesh.ask() != 0; }

TEST(SharedMesh, AWaitEndsWhenAChangeMakesItsConditionTrue) {
  SharedMesh mesh({.instance = 1});
  std::thread other([&] {
    mesh.with([](MeshState& state) { state.next_ask(); });
    mesh.changed();
  });
  EXPECT_TRUE(mesh.wait(Instant::max(), has_asked));
  other.join();
}

TEST(SharedMesh, AWaitEndsAtItsDeadline) {
  SharedMesh mesh({.instance = 1});
  EXPECT_EQ(mesh.wait(sys::now(), never).error(), Errc::timed_out);
}

TEST(SharedMesh, ARefusalEndsWaitsUntilItIsTakenBack) {
  SharedMesh mesh({.instance = 1});
  EXPECT_EQ(mesh.refused(), Errc::ok);
  mesh.refuse(Error(Errc::not_supported, "a test"));
  EXPECT_EQ(mesh.wait(Instant::max(), never).error(), Errc::not_supported);
  mesh.permit();
  EXPECT_EQ(mesh.wait(sys::now(), never).error(), Errc::timed_out);
}

TEST(SharedMesh, CloseEndsAWaitThatCannotEndOtherwise) {
  SharedMesh mesh({.instance = 1});
  std::thread other([&] { mesh.close(); });
  EXPECT_EQ(mesh.wait(Instant::max(), never).error(), Errc::closed);
  other.join();
  EXPECT_EQ(mesh.wait(Instant::max(), never).error(), Errc::closed);
  mesh.with([](MeshState& state) { state.next_ask(); });
  EXPECT_TRUE(mesh.wait(Instant::max(), has_asked)) << "a condition that is true needs no wait";
}

TEST(SharedMesh, TheInstanceIsThatOfTheMesh) {
  const SharedMesh mesh({.instance = 7});
  EXPECT_EQ(mesh.instance(), 7U);
  EXPECT_EQ(mesh.with([](const MeshState& state) { return state.self().instance; }), 7U);
}

}  // namespace
}  // namespace weft::topic
