// SPDX-License-Identifier: MIT
// Batches at a hub.
#include "weft/topic/wire/batch.h"

#include <string>
#include <vector>

#include "weft/topic/hub/test_hub.h"
#include <gtest/gtest.h>

namespace weft::topic {
namespace {

class HubBatchTest : public HubTest {
 protected:
  static Op append_all(std::string_view stream, const std::vector<std::uint8_t>& body, std::string_view id = "") {
    return {.kind = OpKind::append_all, .name = stream, .message_id = id, .body = body};
  }
  static std::vector<std::uint8_t> two(std::string_view id = "") {
    std::vector<std::uint8_t> body;
    EXPECT_TRUE(add_to_batch({.kind = OpKind::append, .key = "a", .message_id = id}, 0, body));
    EXPECT_TRUE(add_to_batch({.kind = OpKind::append, .key = "b"}, 1, body));
    return body;
  }
};

TEST_F(HubBatchTest, ABatchThatComesAgainIsStoredOnce) {
  TestMember m = member();
  ASSERT_EQ(m.declare("s", {}), Errc::ok);
  const auto body = two();
  for (const bool again : {false, true}) {
    const OwnedOp answer = m.request(append_all("s", body, "m-1"));
    EXPECT_EQ(answer.op.error(), Errc::ok);
    EXPECT_EQ(answer.op.number, 1U);
    EXPECT_EQ(answer.op.second, 2U);
    EXPECT_EQ(answer.op.has(OpFlags::duplicate), again);
  }
  EXPECT_EQ(m.request(append_all("s", body, "m-2")).op.number, 3U);
  // An id of the program that another message had is a conflict, also of the first one alone.
  ASSERT_EQ(m.request(TestMember::append_op("s", "a", "", "known")).op.number, 5U);
  const auto known = two("known");
  EXPECT_EQ(m.request(append_all("s", known, "m-3")).op.error(), Errc::conflict);
  EXPECT_EQ(m.request(op_of(OpKind::info, "s")).op.second, 6U);
}

TEST_F(HubBatchTest, BytesThatAreNoBatchAreRefused) {
  TestMember m = member();
  ASSERT_EQ(m.declare("s", {}), Errc::ok);
  std::vector<std::uint8_t> body = two();
  EXPECT_EQ(m.request(append_all("none", body)).op.error(), Errc::not_found);
  EXPECT_EQ(m.request(append_all("s", {})).op.error(), Errc::protocol_error);
  for (const int size : {0, 1, 255}) {
    body[3] = static_cast<std::uint8_t>(size);  // of the first message
    EXPECT_EQ(m.request(append_all("s", body)).op.error(), Errc::protocol_error);
  }
  EXPECT_EQ(m.request(op_of(OpKind::info, "s")).op.second, 1U);
}

}  // namespace
}  // namespace weft::topic
