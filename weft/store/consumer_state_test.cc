// SPDX-License-Identifier: MIT
#include "weft/store/consumer_state.h"

#include <gtest/gtest.h>

namespace weft::store {
namespace {

using namespace std::chrono_literals;

constexpr Instant kStart(1h);

ConsumerSettings settings_of(std::uint32_t unacked_max, std::uint32_t tries_max = 0) {
  ConsumerSettings settings;
  settings.unacked_max = unacked_max;
  settings.ack_wait = 10s;
  settings.tries_max = tries_max;
  settings.retry_waits = {1s, 5s};
  return settings;
}

TEST(ConsumerState, AcknowledgementsComeInAnyOrder) {
  ConsumerState state(settings_of(10), 1);
  for (std::uint64_t i = 1; i <= 5; ++i) {
    state.deliver_new(i, kStart);
  }
  EXPECT_EQ(state.floor(), 1U);
  EXPECT_TRUE(state.ack(4));
  EXPECT_TRUE(state.ack(1));
  EXPECT_EQ(state.floor(), 2U);
  EXPECT_FALSE(state.ack(4));
  EXPECT_FALSE(state.ack(99));
  EXPECT_TRUE(state.ack(3) && state.ack(2) && state.ack(5));
  EXPECT_EQ(state.floor(), 6U);
  EXPECT_EQ(state.next_due(), kNever);
}

TEST(ConsumerState, DeliveryStopsAtTheBoundOfUnacknowledgedMessages) {
  ConsumerState state(settings_of(2), 1);
  state.deliver_new(1, kStart);
  EXPECT_TRUE(state.may_take_new());
  state.deliver_new(7, kStart);
  EXPECT_FALSE(state.may_take_new());
  EXPECT_TRUE(state.ack(7));
  EXPECT_TRUE(state.may_take_new());
  EXPECT_EQ(state.next(), 8U);
}

TEST(ConsumerState, AMessageIsDueAgainAfterAckWaitAndNotBefore) {
  ConsumerState state(settings_of(10), 1);
  state.deliver_new(1, kStart);
  state.deliver_new(2, kStart + 1s);
  EXPECT_EQ(state.next_due(), kStart + 10s);
  EXPECT_FALSE(state.due(kStart + 10s - 1ns));
  ASSERT_TRUE(state.due(kStart + 10s));
  EXPECT_EQ(state.due(kStart + 1h)->sequence, 1U);
  state.deliver_again(1, kStart + 10s);
  EXPECT_EQ(state.tries(1), 2U);
  EXPECT_EQ(state.due(kStart + 11s)->sequence, 2U);
  EXPECT_TRUE(state.work(2, kStart + 11s));
  EXPECT_EQ(state.next_due(), kStart + 20s);
}

TEST(ConsumerState, ARefusedDeliveryWaitsAsTheSettingsOrTheReceiverSay) {
  ConsumerState state(settings_of(10), 1);
  state.deliver_new(1, kStart);
  EXPECT_TRUE(state.nak(1, -1ns, kStart));
  EXPECT_EQ(state.next_due(), kStart + 1s);
  state.deliver_again(1, kStart + 1s);
  EXPECT_TRUE(state.nak(1, -1ns, kStart + 1s));
  EXPECT_EQ(state.next_due(), kStart + 6s);
  state.deliver_again(1, kStart + 6s);
  EXPECT_TRUE(state.nak(1, -1ns, kStart + 6s));
  EXPECT_EQ(state.next_due(), kStart + 11s);  // the last wait holds on
  EXPECT_TRUE(state.nak(1, 3s, kStart));
  EXPECT_EQ(state.next_due(), kStart + 3s);
  EXPECT_TRUE(state.nak(1, 0s, kStart));
  EXPECT_TRUE(state.due(kStart));
  EXPECT_FALSE(state.nak(2, 0s, kStart));
  EXPECT_FALSE(state.work(2, kStart));
}

TEST(ConsumerState, AMessageIsExhaustedAfterTriesMaxDeliveries) {
  ConsumerState state(settings_of(10, 2), 1);
  state.deliver_new(1, kStart);
  EXPECT_FALSE(state.exhausted(*state.due(kStart + 1h)));
  state.deliver_again(1, kStart);
  EXPECT_TRUE(state.exhausted(*state.due(kStart + 1h)));
  ConsumerState endless(settings_of(10, 0), 1);
  endless.deliver_new(1, kStart);
  for (int i = 0; i < 1000; ++i) {
    endless.deliver_again(1, kStart);
  }
  EXPECT_FALSE(endless.exhausted(*endless.due(kStart + 1h)));
}

TEST(ConsumerState, WhatWaitsComesBackAfterAnOpenWithItsTriesAndAFullWait) {
  ConsumerState state(settings_of(100), 1);
  for (std::uint64_t i = 1; i <= 50; ++i) {
    state.deliver_new(i * 1000, kStart);
  }
  state.deliver_again(3000, kStart);
  EXPECT_TRUE(state.ack(1000));
  ConsumerState again(settings_of(100), state.next());
  ASSERT_TRUE(again.read_waiting(state.write_waiting(), kStart + 5s));
  EXPECT_EQ(again.waiting(), 49U);
  EXPECT_EQ(again.tries(3000), 2U);
  EXPECT_EQ(again.tries(2000), 1U);
  EXPECT_EQ(again.tries(1000), 0U);
  EXPECT_EQ(again.next_due(), kStart + 15s);
  EXPECT_EQ(again.write_waiting(), state.write_waiting());
}

TEST(ConsumerState, BytesThatAreNoStateAreReportedAndLeaveNothing) {
  ConsumerState state(settings_of(100), 100);
  const std::vector<std::vector<std::uint8_t>> wrong{
      {5},                                                                    // no tries
      {0, 1},                                                                 // no distance
      {5, 1, 0, 1},                                                           // twice the same
      {100, 1},                                                               // not below next
      {0x80},                                                                 // half a number
      {0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F, 1},        // beyond 64 bits
      {5, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF},                          // no end
      {50, 1, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01, 1}  // wraps around
  };
  for (const auto& bytes : wrong) {
    EXPECT_EQ(state.read_waiting(bytes, kStart).error(), Errc::corrupt);
    EXPECT_EQ(state.waiting(), 0U);
    EXPECT_EQ(state.next_due(), kNever);
  }
}

TEST(ConsumerState, WhatRetentionTookWaitsNoMore) {
  ConsumerState state(settings_of(100), 1);
  for (std::uint64_t i = 1; i <= 5; ++i) {
    state.deliver_new(i, kStart);
  }
  EXPECT_EQ(state.drop_before(4), 3U);
  EXPECT_EQ(state.waiting(), 2U);
  EXPECT_EQ(state.drop_before(50), 2U);
  EXPECT_EQ(state.next(), 50U);
}

TEST(ConsumerState, NoTimeRunsAndNoTryCountsWhileAMessageIsInTheQueueOfAMember) {
  ConsumerState state(settings_of(10, 3), 1);
  state.deliver_new(1, kStart, 7);
  state.deliver_new(2, kStart, 7);
  EXPECT_EQ(state.next_due(), kNever);
  EXPECT_FALSE(state.due(kStart + 1h));
  EXPECT_EQ(state.tries(1), 0U);
  EXPECT_EQ(state.queued(7), 2U);
  EXPECT_FALSE(state.begin(1, 8, kStart + 1h)) << "another member's";
  EXPECT_FALSE(state.nak(1, 0s, kStart + 1h)) << "nobody works on it";
  EXPECT_TRUE(state.begin(1, 7, kStart + 1h));
  EXPECT_EQ(state.tries(1), 1U);
  EXPECT_EQ(state.next_due(), kStart + 1h + 10s);
  EXPECT_TRUE(state.begin(1, 7, kStart + 1h + 5s));
  EXPECT_EQ(state.tries(1), 1U) << "the same delivery";
  EXPECT_EQ(state.next_due(), kStart + 1h + 15s);
  EXPECT_EQ(state.queued(7), 1U);
  EXPECT_EQ(state.load(7), 2U);
  EXPECT_TRUE(state.ack(2)) << "an acknowledgement ends it in any state";
  EXPECT_TRUE(state.ack(1));
  EXPECT_EQ(state.load(7), 0U);
}

TEST(ConsumerState, WhatNoProgramSawGoesBackAtOnceAndWithoutATry) {
  ConsumerState state(settings_of(10, 1), 1);
  for (std::uint64_t i = 1; i <= 3; ++i) {
    state.deliver_new(i, kStart, 7);
  }
  ASSERT_TRUE(state.begin(1, 7, kStart));
  ASSERT_TRUE(state.begin(2, 7, kStart));
  EXPECT_TRUE(state.give_back(2, 7, kStart + 1s)) << "it began, and no program saw it";
  EXPECT_EQ(state.give_back_queue(7, kStart + 2s), 1U);
  EXPECT_EQ(state.load(7), 1U);
  EXPECT_EQ(state.waiting(), 3U);
  EXPECT_EQ(state.delivered(), 1U);
  EXPECT_EQ(state.due(kStart + 2s)->sequence, 2U);
  EXPECT_EQ(state.due(kStart + 2s)->tries, 0U);
  EXPECT_FALSE(state.exhausted(*state.due(kStart + 2s)));
  state.deliver_again(2, kStart + 2s, 8);
  EXPECT_EQ(state.due(kStart + 2s)->sequence, 3U);
  EXPECT_FALSE(state.give_back(2, 7, kStart + 2s)) << "another member has it";
}

TEST(ConsumerState, QueuesOutliveNoRestartAndWhatBeganDoes) {
  ConsumerState state(settings_of(10, 3), 1);
  for (std::uint64_t i = 1; i <= 4; ++i) {
    state.deliver_new(i * 10, kStart, 7);
  }
  ASSERT_TRUE(state.begin(20, 7, kStart));
  ASSERT_TRUE(state.ack(30));
  ConsumerState again(settings_of(10, 3), state.next());
  ASSERT_TRUE(again.read_waiting(state.write_waiting(), kStart + 1h));
  EXPECT_EQ(again.waiting(), 3U);
  EXPECT_EQ(again.delivered(), 1U);
  EXPECT_EQ(again.tries(20), 1U);
  EXPECT_EQ(again.tries(10), 0U);
  EXPECT_EQ(again.due(kStart + 1h)->sequence, 10U);
  again.deliver_again(10, kStart + 1h, 8);
  EXPECT_EQ(again.due(kStart + 1h)->sequence, 40U);
  again.deliver_again(40, kStart + 1h, 8);
  EXPECT_FALSE(again.due(kStart + 1h));
  EXPECT_EQ(again.next_due(), kStart + 1h + 10s);
}

}  // namespace
}  // namespace weft::store
