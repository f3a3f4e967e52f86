// SPDX-License-Identifier: MIT
#include "weft/topic/mesh/resend.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace weft::topic {
namespace {

using namespace std::chrono_literals;

Control roster(std::uint64_t revision = 1) { return {.kind = Control::Kind::roster, .from = 1, .id = revision}; }
Control probe(std::uint64_t id) { return {.kind = Control::Kind::probe, .from = 1, .id = id, .texts = {"t"}}; }
Control answer(std::uint64_t claim, std::uint64_t to = 2) {
  return {.kind = Control::Kind::claim_answer, .from = 1, .to = to, .id = claim};
}
std::vector<Control> owed() { return {probe(3), probe(2), roster()}; }

// The kind and the id of each message of the next turn, of which the peers miss those with an id in `missed`.
using Sent = std::vector<std::pair<Control::Kind, std::uint64_t>>;
Sent take_turn(Resend& resend, std::vector<Control> all, std::size_t window,
               const std::vector<std::uint64_t>& missed = {}) {
  Sent sent;
  for (const Control& control : resend.turn(std::move(all), window)) {
    sent.emplace_back(control.kind, control.id);
    resend.note_sent(control, std::count(missed.begin(), missed.end(), control.id) != 0);
  }
  return sent;
}

constexpr auto kRoster = Control::Kind::roster;
constexpr auto kProbe = Control::Kind::probe;
constexpr auto kAnswer = Control::Kind::claim_answer;

// Regression: each repetition began with the roster, which took the only place of a queue, and was repeated every 30 s.
TEST(Resend, AQueueWithRoomForOneMessageGetsThemAll) {
  Resend resend;
  resend.note_missed(roster());
  for (const Sent& expected : {Sent{{kRoster, 1}}, Sent{{kProbe, 2}}, Sent{{kProbe, 3}}}) {
    EXPECT_EQ(take_turn(resend, owed(), 1), expected);
    EXPECT_TRUE(resend.end_turn(Resend::End::more));
  }
  EXPECT_TRUE(take_turn(resend, owed(), 1).empty());
  EXPECT_FALSE(resend.end_turn(Resend::End::finished));
}

TEST(Resend, AMissMakesAnotherRoundOfAllMessages) {
  Resend resend;
  resend.note_missed(probe(2));
  EXPECT_EQ(take_turn(resend, owed(), 8, {2}).size(), 3U);
  EXPECT_TRUE(resend.end_turn(Resend::End::finished));
  EXPECT_EQ(take_turn(resend, owed(), 8).size(), 3U);
  resend.note_missed(roster(2));  // beside the turn
  EXPECT_TRUE(resend.end_turn(Resend::End::finished));
  EXPECT_EQ(take_turn(resend, owed(), 8).size(), 3U);
  EXPECT_FALSE(resend.end_turn(Resend::End::finished));
}

TEST(Resend, AMessageThatIsNotOwedAnyMoreIsNotSent) {
  Resend resend;
  resend.note_missed(roster());
  EXPECT_EQ(take_turn(resend, owed(), 2), (Sent{{kRoster, 1}, {kProbe, 2}}));
  EXPECT_TRUE(resend.end_turn(Resend::End::more));
  EXPECT_EQ(take_turn(resend, {roster(7), probe(9)}, 2), (Sent{{kProbe, 9}}));
}

TEST(Resend, AnAnswerIsKeptOnceUntilItIsSentOrWasMissedTooOften) {
  Resend resend;
  resend.note_missed(answer(5));
  resend.note_missed(answer(5));
  resend.note_missed(answer(6));
  EXPECT_EQ(resend.answer_count(), 2U);
  EXPECT_EQ(take_turn(resend, {}, 8, {6}), (Sent{{kAnswer, 5}, {kAnswer, 6}}));
  for (unsigned tries = 1; tries < Resend::kTries; ++tries) {
    EXPECT_TRUE(resend.end_turn(Resend::End::finished));
    EXPECT_EQ(take_turn(resend, {}, 8, {6}), (Sent{{kAnswer, 6}}));
  }
  EXPECT_FALSE(resend.end_turn(Resend::End::finished));
  EXPECT_EQ(resend.answer_count(), 0U);
}

TEST(Resend, AnswersAreBounded) {
  Resend resend;
  for (std::uint64_t claim = 1; claim <= Resend::kAnswersMax + 1; ++claim) {
    resend.note_missed(answer(claim));
  }
  EXPECT_EQ(resend.answer_count(), Resend::kAnswersMax);
}

TEST(Resend, TheWaitsGrowWhileAPeerMissesMessagesAndEndWithTheRound) {
  Resend resend;
  resend.note_missed(roster());
  Duration last{0};
  for (int turn = 0; turn < 20; ++turn) {
    EXPECT_GE(resend.wait(), last);
    last = resend.wait();
    (void)take_turn(resend, owed(), 8, {1});
    EXPECT_TRUE(resend.end_turn(Resend::End::finished));
  }
  EXPECT_EQ(resend.wait(), Resend::kWaitLast);
  (void)take_turn(resend, owed(), 1);
  EXPECT_TRUE(resend.end_turn(Resend::End::more));
  EXPECT_EQ(resend.wait(), Resend::kWaitLast);
  (void)take_turn(resend, owed(), 8);
  EXPECT_FALSE(resend.end_turn(Resend::End::finished));
  EXPECT_EQ(resend.wait(), Resend::kWaitFirst);
}

// Memory ran out after the first message.
TEST(Resend, ATurnThatFailedContinuesAfterItsLastSentMessage) {
  Resend resend;
  resend.note_missed(roster());
  const std::vector<Control> turn = resend.turn(owed(), 8);
  resend.note_sent(turn.front(), false);
  EXPECT_TRUE(resend.end_turn(Resend::End::failed));
  EXPECT_EQ(resend.wait(), 2 * Resend::kWaitFirst);
  EXPECT_EQ(take_turn(resend, owed(), 8), (Sent{{kProbe, 2}, {kProbe, 3}}));
  EXPECT_FALSE(resend.end_turn(Resend::End::finished));
}

}  // namespace
}  // namespace weft::topic
