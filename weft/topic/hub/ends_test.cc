// SPDX-License-Identifier: MIT
// Messages with a time to live at a hub.
#include <string>

#include "weft/topic/hub/test_hub.h"
#include <gtest/gtest.h>

namespace weft::topic {
namespace {

class HubEndsTest : public HubTest {
 protected:
  static Op append_for(std::string_view stream, std::string_view topic, std::uint32_t seconds) {
    Op op = TestMember::append_op(stream, topic, "body");
    op.flags = OpFlags::expires;
    op.expires_after = seconds;
    return op;
  }
};

TEST_F(HubEndsTest, AReaderOfTheLatestGetsTheErasureWithoutAnyOpOfAMember) {
  TestMember m = member();
  StreamSettings settings;
  settings.keep = Keep::latest;
  ASSERT_EQ(m.declare("s", settings), Errc::ok);
  Op read = op_of(OpKind::read, "s", "", "filter=\n");
  read.number = 10;
  ASSERT_EQ(m.answer_to(m.send(read)).op.error(), Errc::ok);
  ASSERT_EQ(m.request(append_for("s", "a", 1)).op.number, 1U);
  OwnedOp last = m.next();
  while (last.op.kind == OpKind::caught_up || (last.op.kind == OpKind::delivery && last.op.number == 1)) {
    last = m.next();
  }
  EXPECT_EQ(last.op.kind, OpKind::delivery);
  EXPECT_EQ(last.op.number, 2U);
  EXPECT_TRUE(last.op.has(OpFlags::erased));
  EXPECT_EQ(last.op.key, "a");
  const OwnedOp newest = m.request(op_of(OpKind::get, "s", "a"));
  EXPECT_TRUE(newest.op.has(OpFlags::erased));
  EXPECT_EQ(m.request(op_of(OpKind::list, "s")).op.number, 0U);
}

TEST_F(HubEndsTest, ATimeBeyondTheBoundIsRefused) {
  TestMember m = member();
  ASSERT_EQ(m.declare("s", {}), Errc::ok);
  constexpr std::uint32_t kYears = 100U * 365 * 24 * 3600;
  EXPECT_EQ(m.request(append_for("s", "a", 0xFFFFFFFF)).op.error(), Errc::invalid_argument);
  EXPECT_EQ(m.request(append_for("s", "a", kYears + 1)).op.error(), Errc::invalid_argument);
  EXPECT_EQ(m.request(append_for("s", "a", kYears)).op.number, 1U);
}

}  // namespace
}  // namespace weft::topic
