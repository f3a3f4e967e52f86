// SPDX-License-Identifier: MIT
// The share of each member in the messages of a consumer, and when a delivery begins.
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "weft/topic/hub/test_hub.h"
#include <gtest/gtest.h>

namespace weft::topic {
namespace {

using namespace std::chrono_literals;

class ShareTest : public HubTest {
 protected:
  // Opens a member's channel. Returns its id.
  std::uint32_t consume(TestMember& m, const ConsumerSettings& settings, std::uint64_t credit = 1000,
                        std::optional<std::uint64_t> priority = std::nullopt) {
    const std::string text = write_settings(settings);
    Op op = op_of(OpKind::consume, "s", "c", text);
    op.flags = static_cast<std::uint16_t>(OpFlags::begins | (priority ? OpFlags::prioritized : 0U));
    op.number = credit;
    op.second = priority.value_or(0);
    const std::uint32_t id = m.send(op);
    EXPECT_EQ(m.answer_to(id).op.error(), Errc::ok);
    return id;
  }
  void append(TestMember& m, int count) {
    for (int i = 0; i < count; ++i) {
      ASSERT_EQ(m.request(TestMember::append_op("s", "a", std::to_string(i))).op.error(), Errc::ok);
    }
  }
  // A recall may come whenever another member has nothing; left unanswered it changes nothing for ack_wait.
  static OwnedOp next_delivery(TestMember& m) {
    OwnedOp op = m.next();
    while (op.op.kind == OpKind::recall) {
      op = m.next();
    }
    return op;
  }
  static Op begin_op(std::uint32_t channel, std::uint64_t sequence) {
    Op op = op_of(OpKind::begin, "s", "c");
    op.id = channel;
    op.number = sequence;
    return op;
  }
  static Op credit_op(std::uint32_t channel, std::uint64_t more) {
    Op op = op_of(OpKind::credit);
    op.id = channel;
    op.number = more;
    return op;
  }
  static Op give_back_op(std::uint32_t channel, std::uint64_t sequence) {
    Op op = op_of(OpKind::nak, "s", "c");
    op.id = channel;
    op.flags = OpFlags::unseen | OpFlags::quiet;
    op.number = sequence;
    return op;
  }
  static Op ack_op(std::uint64_t sequence) {
    Op op = op_of(OpKind::ack, "s", "c");
    op.number = sequence;
    return op;
  }
  static StreamSettings in_memory() {
    StreamSettings settings;
    settings.survives = Survives::nothing;
    return settings;
  }
};

TEST_F(ShareTest, AMessageOfAWorkStreamIsFoundUntilItsConsumerAcknowledgedIt) {
  TestMember m = member();
  StreamSettings settings;
  settings.keep = Keep::work;
  settings.survives = Survives::process;
  ASSERT_EQ(m.declare("s", settings), Errc::ok);
  append(m, 3);
  (void)consume(m, {});
  for (std::uint64_t each = 1; each <= 3; ++each) {
    ASSERT_EQ(next_delivery(m).op.number, each);
  }
  Op ack = op_of(OpKind::ack, "s", "c");
  ack.number = 2;
  ASSERT_EQ(m.request(ack).op.number, 1U);
  Op get = op_of(OpKind::get, "s");
  get.flags = OpFlags::by_sequence;
  for (get.number = 1; get.number <= 3; ++get.number) {
    EXPECT_EQ(m.request(get).op.error(), get.number == 2 ? Errc::not_found : Errc::ok) << get.number;
  }
}

TEST_F(ShareTest, TheTimeToAcknowledgeAndTheTriesBeginWhenAProgramGetsTheMessage) {
  TestMember m = member();
  ASSERT_EQ(m.declare("s", in_memory()), Errc::ok);
  const std::uint32_t channel = consume(m, {.ack_wait = 10ms, .tries_max = 1});
  append(m, 2);
  EXPECT_EQ(m.next().op.number, 1U);
  EXPECT_EQ(m.next().op.number, 2U);
  const OwnedOp begun = m.request(begin_op(channel, 1));
  EXPECT_EQ(begun.op.number, 1U);
  EXPECT_EQ(begun.op.second, 1U);
  // The delivery of 1 ends by its time, after the only try. That of 2 has not begun.
  while (hub_->counters().dead_dropped.load() == 0) {
    ASSERT_EQ(m.request(op_of(OpKind::probe)).op.error(), Errc::ok);
  }
  EXPECT_EQ(m.request(ack_op(1)).op.number, 0U);
  EXPECT_EQ(m.request(ack_op(2)).op.number, 1U);
  EXPECT_EQ(hub_->counters().dead_dropped.load(), 1U);
}

TEST_F(ShareTest, WhatAMemberLeavesUnseenGoesToAnotherOneWithoutATry) {
  TestMember left = member();
  TestMember taker = member();
  ASSERT_EQ(left.declare("s", in_memory()), Errc::ok);
  const ConsumerSettings settings{.ack_wait = 1h, .tries_max = 1};
  std::uint32_t channel = consume(left, settings);
  append(left, 3);
  for (std::uint64_t i = 1; i <= 3; ++i) {
    EXPECT_EQ(left.next().op.number, i);
  }
  EXPECT_EQ(left.request(begin_op(channel, 1)).op.number, 1U);
  left.close();  // as by kill -9
  channel = consume(taker, settings);
  for (std::uint64_t i = 2; i <= 3; ++i) {
    const OwnedOp op = taker.next();
    EXPECT_EQ(op.op.number, i);
    EXPECT_EQ(op.op.code, 0U) << "tries";
  }
  EXPECT_EQ(taker.request(begin_op(channel, 1)).op.number, 0U) << "the one that began is not the taker's";
}

TEST_F(ShareTest, MembersThatWaitGetAFairShare) {
  std::vector<std::unique_ptr<TestMember>> members;
  std::vector<std::uint32_t> channels;
  for (int i = 0; i < 4; ++i) {
    members.push_back(std::make_unique<TestMember>(context_, Hub::endpoint(directory_)));
    if (i == 0) {
      ASSERT_EQ(members[0]->declare("s", in_memory()), Errc::ok);
    }
    channels.push_back(consume(*members.back(), {}));
  }
  append(*members[0], 40);
  for (auto& each : members) {
    for (int i = 0; i < 10; ++i) {
      EXPECT_EQ(next_delivery(*each).op.kind, OpKind::delivery);
    }
  }
  // A member that works on ten gets no more while another one has nothing.
  EXPECT_EQ(members[3]->request(begin_op(channels[3], 4)).op.error(), Errc::ok);
  TestMember late = member();
  (void)consume(late, {});
  append(*members[0], 1);
  EXPECT_EQ(next_delivery(late).op.kind, OpKind::delivery);
}

TEST_F(ShareTest, AMemberThatHasNothingGetsWhatWaitsBehindABusyOne) {
  TestMember busy = member();
  ASSERT_EQ(busy.declare("s", in_memory()), Errc::ok);
  const std::uint32_t channel = consume(busy, {.unacked_max = 4, .ack_wait = 1h});
  append(busy, 4);
  for (std::uint64_t i = 1; i <= 4; ++i) {
    EXPECT_EQ(busy.next().op.number, i);
  }
  EXPECT_EQ(busy.request(begin_op(channel, 1)).op.number, 1U);
  TestMember idle = member();
  (void)consume(idle, {.unacked_max = 4, .ack_wait = 1h});
  const OwnedOp recall = busy.next();
  ASSERT_EQ(recall.op.kind, OpKind::recall);
  EXPECT_EQ(recall.op.id, channel);
  EXPECT_EQ(recall.op.number, 2U) << "of the three that wait";
  Op back = op_of(OpKind::nak, "s", "c");
  back.id = channel;
  back.flags = OpFlags::unseen | OpFlags::quiet;
  back.number = 4;
  (void)busy.send(back);
  const OwnedOp given = idle.next();
  EXPECT_EQ(given.op.number, 4U);
  EXPECT_EQ(given.op.code, 0U);
}

TEST_F(ShareTest, AMemberThatDoesNotAnswerLosesItsQueueAfterAckWait) {
  TestMember hung = member();
  ASSERT_EQ(hung.declare("s", in_memory()), Errc::ok);
  (void)consume(hung, {.ack_wait = 20ms});
  append(hung, 1);
  EXPECT_EQ(hung.next().op.number, 1U);
  TestMember idle = member();
  (void)consume(idle, {.ack_wait = 20ms});
  EXPECT_EQ(hung.next().op.kind, OpKind::recall);
  EXPECT_EQ(idle.next().op.number, 1U);
}

TEST_F(ShareTest, ASequenceOfAnotherLifeOfTheStreamIsNoneOfThisOne) {
  TestMember m = member();
  ASSERT_EQ(m.declare("s", in_memory()), Errc::ok);
  const std::string first = "from=sequence\nfrom_value=7\n";
  const auto read = [&](std::string_view life) {
    Op op = op_of(OpKind::read, "s", "", first);
    op.message_id = life;
    return m.request(op);
  };
  append(m, 8);
  const std::string old_life(read("").op.message_id);
  EXPECT_EQ(read(old_life).op.number, 7U);
  const std::uint32_t old_channel = consume(m, {});
  EXPECT_EQ(m.request(op_of(OpKind::remove, "s")).op.error(), Errc::ok);
  ASSERT_EQ(m.declare("s", in_memory()), Errc::ok);
  append(m, 8);
  EXPECT_EQ(read(old_life).op.number, 1U) << "all of it is new to the reader";
  const std::string new_life(read("").op.message_id);
  EXPECT_NE(new_life, old_life);
  const std::uint32_t channel = consume(m, {});
  for (const OpKind kind : {OpKind::begin, OpKind::ack, OpKind::nak, OpKind::work, OpKind::reject}) {
    Op op = op_of(kind, "s", "c");
    op.id = kind == OpKind::begin ? channel : 0;
    op.number = 1;
    op.message_id = old_life;
    EXPECT_EQ(m.request(op).op.error(), Errc::not_found) << op_name(kind);
  }
  (void)old_channel;
  Op ack = ack_op(1);
  ack.message_id = new_life;
  EXPECT_EQ(m.request(ack).op.number, 1U);
  // Streams on the disk, too.
  StreamSettings kept;
  kept.survives = Survives::process;
  ASSERT_EQ(m.declare("d", kept), Errc::ok);
  const std::string before(m.request(op_of(OpKind::read, "d")).op.message_id);
  EXPECT_EQ(m.request(op_of(OpKind::remove, "d")).op.error(), Errc::ok);
  ASSERT_EQ(m.declare("d", kept), Errc::ok);
  EXPECT_NE(m.request(op_of(OpKind::read, "d")).op.message_id, before);
}

TEST_F(ShareTest, AMemberOfALowerNumberIsServedFirstAndTheNextOneWhileItHasNoCredit) {
  TestMember first = member();
  TestMember next = member();
  ASSERT_EQ(first.declare("s", in_memory()), Errc::ok);
  const std::uint32_t later = consume(next, {}, 1000, 9);
  const std::uint32_t channel = consume(first, {}, 2, 1);
  append(first, 4);
  EXPECT_EQ(next_delivery(first).op.number, 1U);
  EXPECT_EQ(next_delivery(first).op.number, 2U);
  EXPECT_EQ(next_delivery(next).op.number, 3U);
  EXPECT_EQ(next_delivery(next).op.number, 4U);
  EXPECT_EQ(first.request(credit_op(channel, 1)).op.error(), Errc::ok);
  append(first, 2);
  EXPECT_EQ(next_delivery(first).op.number, 5U);
  EXPECT_EQ(next_delivery(next).op.number, 6U);
  // A message that comes again goes by priority, too.
  EXPECT_EQ(next.request(begin_op(later, 3)).op.number, 1U);
  EXPECT_EQ(first.request(credit_op(channel, 1)).op.error(), Errc::ok);
  Op nak = op_of(OpKind::nak, "s", "c");
  nak.number = 3;
  EXPECT_EQ(next.request(nak).op.number, 1U);
  const OwnedOp again = next_delivery(first);
  EXPECT_EQ(again.op.number, 3U);
  EXPECT_EQ(again.op.code, 1U);
}

TEST_F(ShareTest, AMemberWithoutANumberIsOneOfTheFirst) {
  TestMember without = member();
  TestMember with = member();
  ASSERT_EQ(without.declare("s", in_memory()), Errc::ok);
  (void)consume(with, {}, 1000, 1);
  (void)consume(without, {}, 1000);
  append(without, 3);
  for (std::uint64_t each = 1; each <= 3; ++each) {
    EXPECT_EQ(next_delivery(without).op.number, each);
  }
  EXPECT_TRUE(with.all_until_probe().empty());
}

TEST_F(ShareTest, MembersOfTheSameNumberShareAndThoseOfAHigherOneWait) {
  TestMember one = member();
  TestMember two = member();
  TestMember last = member();
  ASSERT_EQ(one.declare("s", in_memory()), Errc::ok);
  (void)consume(last, {.ack_wait = 1h}, 1000, 4);
  (void)consume(one, {.ack_wait = 1h}, 1000, 3);
  (void)consume(two, {.ack_wait = 1h}, 1000, 3);
  append(one, 10);
  for (TestMember* each : {&one, &two}) {
    for (int i = 0; i < 5; ++i) {
      EXPECT_EQ(next_delivery(*each).op.kind, OpKind::delivery);
    }
  }
  EXPECT_TRUE(last.all_until_probe().empty());
}

TEST_F(ShareTest, WhenAMemberDiesTheNextNumberGetsItsQueueAtOnceAndTheRestAfterAckWait) {
  TestMember dies = member();
  TestMember next = member();
  ASSERT_EQ(dies.declare("s", in_memory()), Errc::ok);
  const std::uint32_t channel = consume(dies, {.ack_wait = 20ms}, 1000, 0);
  append(dies, 3);
  for (std::uint64_t i = 1; i <= 3; ++i) {
    EXPECT_EQ(next_delivery(dies).op.number, i);
  }
  EXPECT_EQ(dies.request(begin_op(channel, 1)).op.number, 1U);
  dies.close();  // as by kill -9
  (void)consume(next, {.ack_wait = 20ms}, 1000, 5);
  std::map<std::uint64_t, std::uint16_t> tries;
  while (tries.size() < 3) {
    const OwnedOp op = next_delivery(next);
    ASSERT_EQ(op.op.kind, OpKind::delivery);
    tries.emplace(op.op.number, op.op.code);
  }
  EXPECT_EQ(tries[1], 1U);
  EXPECT_EQ(tries[2], 0U);
  EXPECT_EQ(tries[3], 0U);
}

TEST_F(ShareTest, AQueueOfALowerNumberIsNoOtherMembersBeforeItStandsStillForAckWait) {
  TestMember busy = member();
  ASSERT_EQ(busy.declare("s", in_memory()), Errc::ok);
  (void)consume(busy, {.ack_wait = 1h}, 1000, 0);
  append(busy, 3);
  for (std::uint64_t i = 1; i <= 3; ++i) {
    EXPECT_EQ(next_delivery(busy).op.number, i);
  }
  TestMember idle = member();
  (void)consume(idle, {.ack_wait = 1h}, 1000, 1);
  // A recall of the same number would come after 5 ms.
  for (const Instant until = sys::now() + 50ms; sys::now() < until;) {
    ASSERT_TRUE(busy.all_until_probe().empty());
  }
  EXPECT_TRUE(idle.all_until_probe().empty());
}

TEST_F(ShareTest, AMemberWhoseProgramTakesNothingForAckWaitIsTheLastUntilItTakesAMessage) {
  TestMember hangs = member();
  TestMember next = member();
  ASSERT_EQ(hangs.declare("s", in_memory()), Errc::ok);
  const std::uint32_t channel = consume(hangs, {.ack_wait = 20ms}, 1000, 0);
  append(hangs, 1);
  EXPECT_EQ(next_delivery(hangs).op.number, 1U);
  (void)consume(next, {.ack_wait = 20ms}, 1000, 1);
  const auto work = [&](std::uint64_t sequence) {
    EXPECT_EQ(next_delivery(next).op.number, sequence);
    EXPECT_EQ(next.request(ack_op(sequence)).op.number, 1U);
  };
  const OwnedOp recall = hangs.next();
  ASSERT_EQ(recall.op.kind, OpKind::recall);
  EXPECT_EQ(recall.op.number, 1U);
  (void)hangs.send(give_back_op(channel, 1));
  work(1);
  append(next, 1);
  work(2);  // though the member that hangs has credit
  // The program asks for its next message.
  EXPECT_EQ(hangs.request(credit_op(channel, 0)).op.error(), Errc::ok);
  append(next, 1);
  EXPECT_EQ(next_delivery(hangs).op.number, 3U);
}

TEST_F(ShareTest, AMemberThatDoesNotAnswerLosesItsQueueToAHigherNumber) {
  TestMember hung = member();
  TestMember next = member();
  ASSERT_EQ(hung.declare("s", in_memory()), Errc::ok);
  (void)consume(hung, {.ack_wait = 20ms}, 1000, 0);
  append(hung, 1);
  EXPECT_EQ(hung.next().op.number, 1U);
  (void)consume(next, {.ack_wait = 20ms}, 1000, 9);
  EXPECT_EQ(hung.next().op.kind, OpKind::recall);
  EXPECT_EQ(next.next().op.number, 1U);
}

TEST_F(ShareTest, AnIdleMemberOfALowerNumberGetsAQueueThatStandsStill) {
  TestMember busy = member();
  ASSERT_EQ(busy.declare("s", in_memory()), Errc::ok);
  const std::uint32_t channel = consume(busy, {.ack_wait = 1h}, 1000, 6);
  append(busy, 1);
  EXPECT_EQ(busy.next().op.number, 1U);
  TestMember first = member();
  (void)consume(first, {.ack_wait = 1h}, 1000, 2);
  EXPECT_EQ(busy.next().op.kind, OpKind::recall);
  (void)busy.send(give_back_op(channel, 1));
  EXPECT_EQ(next_delivery(first).op.number, 1U);
}

TEST_F(ShareTest, ANumberBeyondNineOpensNothing) {
  TestMember m = member();
  ASSERT_EQ(m.declare("s", in_memory()), Errc::ok);
  Op op = op_of(OpKind::consume, "s", "c", "filter=\n");
  op.flags = OpFlags::begins | OpFlags::prioritized;
  for (const std::uint64_t wrong : {std::uint64_t{kPriorityMax} + 1, std::uint64_t{256}, ~std::uint64_t{0}}) {
    op.second = wrong;
    EXPECT_EQ(m.request(op).op.error(), Errc::invalid_argument) << wrong;
  }
  const OwnedOp info = m.request(op_of(OpKind::info, "s"));
  EXPECT_EQ(as_text(info.op.body).find("consumer="), std::string_view::npos);
}

}  // namespace
}  // namespace weft::topic
