// SPDX-License-Identifier: MIT
#include "weft/topic/mesh/readiness.h"

#include <string>

#include "weft/topic/mesh/test_mesh.h"
#include <gtest/gtest.h>

namespace weft::topic {
namespace {

using namespace std::chrono_literals;

Control probe_of(std::uint64_t from, std::uint64_t id, std::uint64_t stands, const std::string& topic = "t") {
  return {.kind = Control::Kind::probe, .from = from, .id = id, .number = stands, .texts = {topic}};
}
Control count_of(std::uint64_t from, std::uint64_t id, std::uint64_t count) {
  return {.kind = Control::Kind::ready, .from = from, .to = 1, .id = id, .number = count};
}
constexpr auto kSecond = static_cast<std::uint64_t>(Duration(1s).count());

TEST(ReadinessProbes, TheCountsOfAllHandlesAreSummed) {
  ReadinessProbes ours(1);
  const Control probe = ours.begin(5, "t", kMeshStart + 1s, kMeshStart);
  EXPECT_EQ(probe.number, kSecond);
  ours.count_own(5, 2);
  EXPECT_EQ(ours.handle_count(count_of(2, 5, 3)), Outcome::taken);
  EXPECT_EQ(ours.handle_count(count_of(3, 5, 4)), Outcome::taken);
  EXPECT_EQ(ours.handle_count(count_of(3, 6, 4)), Outcome::ignored);
  EXPECT_EQ(ours.sum(5), 9U);
  EXPECT_EQ(ours.handle_count(count_of(2, 5, 0)), Outcome::taken);
  EXPECT_EQ(ours.sum(5), 6U);
  ours.forget(3);
  ours.forget(1);
  EXPECT_EQ(ours.sum(5), 2U) << "the own ones stay";
  EXPECT_EQ(ours.end(5), "t");
  EXPECT_EQ(ours.end(5), "");
  EXPECT_EQ(ours.sum(5), 0U);
}

TEST(ReadinessProbes, AProbeIsRepeatedWithTheTimeThatIsLeft) {
  ReadinessProbes ours(1);
  (void)ours.begin(5, "t", kMeshStart + 1s, kMeshStart);
  ASSERT_EQ(ours.handle_count(count_of(2, 5, 0)), Outcome::taken);
  const auto again = ours.unanswered({2, 3}, kMeshStart + 400ms);
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(again.front().to, 3U);
  EXPECT_EQ(Duration(again.front().number), 600ms);
  EXPECT_EQ(ours.all(kMeshStart + 2s).front().number, 0U);
}

TEST(ReadinessProbes, AProbeOfAPeerStandsUntilItsDeadlineAndAtMostAnHour) {
  ReadinessProbes ours(1);
  ASSERT_EQ(ours.handle_probe(probe_of(2, 5, kSecond), kMeshStart), Outcome::taken);
  ASSERT_EQ(ours.handle_probe(probe_of(2, 6, ~std::uint64_t{0}), kMeshStart), Outcome::taken);
  EXPECT_EQ(ours.due(kMeshStart, 0, 0).size(), 2U);
  EXPECT_EQ(ours.due(kMeshStart, 2, 5).size(), 1U);
  EXPECT_EQ(ours.due(kMeshStart, 3, 5).size(), 0U);
  ours.forget(2);
  EXPECT_EQ(ours.due(kMeshStart + 1s - 1ns, 0, 0).size(), 2U);
  EXPECT_EQ(ours.due(kMeshStart + 1s, 0, 0).size(), 1U);
  EXPECT_EQ(ours.due(kMeshStart + 1h, 0, 0).size(), 0U);
  EXPECT_EQ(ours.peer_probe_count(), 0U);
}

TEST(ReadinessProbes, APeerEndsAndReplacesItsOwnProbesOnly) {
  ReadinessProbes ours(1);
  ASSERT_EQ(ours.handle_probe(probe_of(2, 5, kSecond, "a"), kMeshStart), Outcome::taken);
  ASSERT_EQ(ours.handle_probe(probe_of(2, 5, kSecond, "b"), kMeshStart), Outcome::taken);
  EXPECT_EQ(ours.handle_probe(probe_of(3, 5, 0), kMeshStart), Outcome::ignored);
  ASSERT_EQ(ours.due(kMeshStart, 0, 0).size(), 1U);
  EXPECT_EQ(ours.due(kMeshStart, 0, 0).front().topic, "b");
  EXPECT_EQ(ours.handle_probe(probe_of(2, 5, 0), kMeshStart), Outcome::ignored);
  EXPECT_EQ(ours.peer_probe_count(), 0U);
}

TEST(ReadinessProbes, ACountIsSentOnceUntilItMayBeLost) {
  ReadinessProbes ours(1);
  ASSERT_EQ(ours.handle_probe(probe_of(2, 5, kSecond), kMeshStart), Outcome::taken);
  const ReadinessProbes::PeerProbe probe = ours.due(kMeshStart, 0, 0).front();
  EXPECT_EQ(probe.sent, ReadinessProbes::kUnsent);
  const Control message = ours.count_message(probe, 7);
  EXPECT_EQ(message.to, 2U);
  EXPECT_EQ(message.number, 7U);
  ours.sent(probe, 7);
  EXPECT_EQ(ours.due(kMeshStart, 0, 0).front().sent, 7U);
  ours.send_again();
  EXPECT_EQ(ours.due(kMeshStart, 0, 0).front().sent, ReadinessProbes::kUnsent);
}

TEST(ReadinessProbes, PeersThatLieStayWithinTheBounds) {
  ReadinessProbes ours(1);
  for (std::uint64_t i = 0; i < ReadinessProbes::kPeerProbesMax; ++i) {
    ASSERT_EQ(ours.handle_probe(probe_of(100 + i, 1, kSecond), kMeshStart), Outcome::taken);
  }
  EXPECT_EQ(ours.handle_probe(probe_of(99, 1, kSecond), kMeshStart), Outcome::refused);
  EXPECT_EQ(ours.handle_probe(probe_of(99, 1, kSecond), kMeshStart + 1s), Outcome::taken) << "the others ended";
  EXPECT_EQ(ours.handle_probe(probe_of(98, 1, kSecond, ""), kMeshStart), Outcome::malformed);
  EXPECT_EQ(ours.handle_probe(probe_of(98, 1, kSecond, std::string(256, 'x')), kMeshStart), Outcome::malformed);
  EXPECT_EQ(ours.handle_probe({.kind = Control::Kind::probe, .from = 98, .number = 1}, kMeshStart), Outcome::malformed);

  (void)ours.begin(5, "t", kMeshStart + 1s, kMeshStart);
  EXPECT_EQ(ours.handle_count(count_of(1, 5, 9)), Outcome::ignored) << "in the name of this handle";
  std::uint64_t taken = 0;
  for (std::uint64_t from = 100; from < 1000; ++from) {
    taken += ours.handle_count(count_of(from, 5, ~std::uint64_t{0})) == Outcome::taken ? 1 : 0;
  }
  EXPECT_EQ(taken, Peers::kPeersMax);
  EXPECT_EQ(ours.sum(5), Peers::kPeersMax * ReadinessProbes::kCountMax);
}

}  // namespace
}  // namespace weft::topic
