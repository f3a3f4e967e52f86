// SPDX-License-Identifier: MIT
// Messages with a delay at a hub.
#include <string>

#include "weft/topic/hub/test_hub.h"

namespace weft::topic {
namespace {

using namespace std::chrono_literals;

class HubDelay : public HubTest {
 protected:
  static Op delayed_op(std::string_view body, Duration delay, std::string_view id = "") {
    Op op = TestMember::append_op("s", "t", body, id);
    op.flags |= OpFlags::delayed;
    op.delay_ns = static_cast<std::uint64_t>(delay.count());
    return op;
  }
  static Op read_op(std::uint64_t credit) {
    Op op = op_of(OpKind::read, "s");
    op.number = credit;
    return op;
  }
  // The next delivered message.
  static std::string next_body(TestMember& member) {
    for (;;) {
      const OwnedOp op = member.next();
      if (op.op.kind != OpKind::caught_up && (op.op.kind != OpKind::answer || op.op.error() != Errc::ok)) {
        EXPECT_EQ(op.op.kind, OpKind::delivery);
        return std::string(as_text(op.op.body));
      }
    }
  }
};

TEST_F(HubDelay, TheTimeOfAMessageWakesTheHub) {
  TestMember member = this->member();
  ASSERT_EQ(member.declare("s", {}), Errc::ok);
  (void)member.send(read_op(100));
  const OwnedOp kept = member.request(delayed_op("later", 30ms));
  EXPECT_EQ(kept.op.error(), Errc::ok);
  EXPECT_EQ(kept.op.number, 0U);
  EXPECT_EQ(hub_->counters().delayed.load(), 1U);
  EXPECT_EQ(next_body(member), "later");
  EXPECT_EQ(hub_->counters().appended.load(), 1U);
}

TEST_F(HubDelay, TheNextHubHasTheMessagesAndThoseThatAreDueEnterAtOnce) {
  {
    TestMember member = this->member();
    ASSERT_EQ(member.declare("s", {}), Errc::ok);
    EXPECT_EQ(member.request(delayed_op("first", 1ms, "i")).op.error(), Errc::ok);
    EXPECT_EQ(member.request(delayed_op("second", 400ms)).op.error(), Errc::ok);
  }
  hub_.reset();
  hub_ = host();
  ASSERT_NE(hub_, nullptr);
  TestMember member = this->member();
  (void)member.send(read_op(100));
  EXPECT_EQ(next_body(member), "first");
  const OwnedOp again = member.request(delayed_op("first", 1ms, "i"));
  EXPECT_TRUE(again.op.has(OpFlags::duplicate));
  EXPECT_EQ(next_body(member), "second");
}

TEST_F(HubDelay, ManyThatAreDueAreAllDeliveredWithoutAnotherOp) {
  TestMember member = this->member();
  ASSERT_EQ(member.declare("s", {}), Errc::ok);
  constexpr int kMany = 5000;
  for (int i = 0; i < kMany; ++i) {
    (void)member.send(delayed_op(std::to_string(i), 100ms));
  }
  (void)member.send(read_op(kMany));
  for (int i = 0; i < kMany; ++i) {
    OwnedOp op = member.next();
    while (op.op.kind != OpKind::delivery && op.op.error() == Errc::ok) {
      op = member.next();  // the answers
    }
    ASSERT_EQ(as_text(op.op.body), std::to_string(i));
  }
}

TEST_F(HubDelay, WrongOnesAreAnsweredAndHarmNothing) {
  TestMember member = this->member();
  ASSERT_EQ(member.declare("s", {}), Errc::ok);
  Op op = delayed_op("x", 1s);
  op.delay_ns = ~std::uint64_t{0};
  EXPECT_EQ(member.request(op).op.error(), Errc::invalid_argument);
  op = delayed_op("x", 1s);
  op.flags |= OpFlags::expect_last;
  EXPECT_EQ(member.request(op).op.error(), Errc::invalid_argument);
  op = delayed_op("x", 1s);
  op.flags |= OpFlags::expect_absent;
  EXPECT_EQ(member.request(op).op.error(), Errc::invalid_argument);
  EXPECT_EQ(hub_->counters().refused.load(), 3U);
  EXPECT_EQ(hub_->counters().delayed.load(), 0U);
}

}  // namespace
}  // namespace weft::topic
