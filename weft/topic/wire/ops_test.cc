// SPDX-License-Identifier: MIT
#include "weft/topic/wire/ops.h"

#include <set>
#include <string>
#include <vector>

#include "weft/topic/wire/batch.h"
#include <gtest/gtest.h>

namespace weft::topic {
namespace {

std::vector<std::uint8_t> encoded(const Op& op) {
  std::vector<std::uint8_t> bytes(encoded_size(op));
  encode_op(op, bytes);
  return bytes;
}

Op full_op() {
  Op op;
  op.kind = OpKind::append;
  op.flags = OpFlags::expect_last;
  op.id = 0x01020304;
  op.number = 0x1112131415161718;
  op.second = 0x2122232425262728;
  op.code = 0x3132;
  op.name = "orders";
  op.key = "orders.eu";
  op.message_id = "n-17";
  op.headers = as_bytes("A: b\r\n");
  op.body = as_bytes("body");
  return op;
}

TEST(Ops, AnOpLiesInItsBytesAsTheTableOfTheHeaderSays) {
  const std::vector<std::uint8_t> bytes = encoded(full_op());
  const std::vector<std::uint8_t> head{1,    10,   0,    1,    0x01, 0x02, 0x03, 0x04, 0x11, 0x12, 0x13,
                                       0x14, 0x15, 0x16, 0x17, 0x18, 0x21, 0x22, 0x23, 0x24, 0x25, 0x26,
                                       0x27, 0x28, 0x31, 0x32, 6,    9,    4,    0,    0,    6};
  EXPECT_EQ(std::vector<std::uint8_t>(bytes.begin(), bytes.begin() + 32), head);
  EXPECT_EQ(as_text(Bytes(bytes).subspan(32)), "ordersorders.eun-17A: b\r\nbody");
}

TEST(Ops, EveryFieldComesBackAsItWent) {
  const std::vector<std::uint8_t> bytes = encoded(full_op());
  const auto op = parse_op(bytes);
  ASSERT_TRUE(op) << op.error().message();
  EXPECT_EQ(op->kind, OpKind::append);
  EXPECT_TRUE(op->has(OpFlags::expect_last));
  EXPECT_FALSE(op->has(OpFlags::erased));
  EXPECT_EQ(op->id, 0x01020304U);
  EXPECT_EQ(op->number, 0x1112131415161718U);
  EXPECT_EQ(op->second, 0x2122232425262728U);
  EXPECT_EQ(op->code, 0x3132);
  EXPECT_EQ(op->name, "orders");
  EXPECT_EQ(op->key, "orders.eu");
  EXPECT_EQ(op->message_id, "n-17");
  EXPECT_EQ(as_text(op->headers), "A: b\r\n");
  EXPECT_EQ(as_text(op->body), "body");
  EXPECT_EQ(op_id(bytes), op->id);
}

TEST(Ops, TheKindsAndFlagsOfTheFirstVersionKeepTheirNumbers) {
  EXPECT_EQ(static_cast<int>(OpKind::answer), 1);
  EXPECT_EQ(static_cast<int>(OpKind::lease_changed), 5);
  EXPECT_EQ(static_cast<int>(OpKind::declare), 6);
  EXPECT_EQ(static_cast<int>(OpKind::append), 10);
  EXPECT_EQ(static_cast<int>(OpKind::list), 12);
  EXPECT_EQ(static_cast<int>(OpKind::consume), 13);
  EXPECT_EQ(static_cast<int>(OpKind::ack), 17);
  EXPECT_EQ(static_cast<int>(OpKind::lease), 21);
  EXPECT_EQ(static_cast<int>(OpKind::probe), 24);
  EXPECT_EQ(static_cast<int>(OpKind::recall), 26);
  EXPECT_EQ(static_cast<int>(OpKind::append_all), 27)
      << "a revision without it refuses the op as one of an unknown kind";
  EXPECT_EQ(OpFlags::more, 512);
  EXPECT_EQ(OpFlags::expires, 1 << 13) << "a revision without it refuses the op as one with an unknown flag";
  EXPECT_EQ(OpFlags::delayed, 1 << 14) << "likewise";
  EXPECT_EQ(OpFlags::prioritized, 1 << 15) << "likewise";
}

TEST(Ops, ATimeToLiveIsAnAppendsAndStandsBeforeItsFields) {
  Op op = full_op();
  op.flags |= OpFlags::expires;
  op.expires_after = 0x01020304;
  const std::vector<std::uint8_t> bytes = encoded(op);
  EXPECT_EQ(bytes[2], 0x20);
  EXPECT_EQ(as_text(Bytes(bytes).subspan(32)), "\x01\x02\x03\x04ordersorders.eun-17A: b\r\nbody");
  const auto again = parse_op(bytes);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->time_to_live(), std::chrono::seconds(0x01020304));
  EXPECT_EQ(again->name, "orders");
  EXPECT_EQ(as_text(again->body), "body");

  std::vector<std::uint8_t> wrong = bytes;
  wrong[1] = static_cast<std::uint8_t>(OpKind::delivery);
  EXPECT_EQ(parse_op(wrong).error(), Errc::protocol_error);
  wrong = bytes;
  wrong[32] = wrong[33] = wrong[34] = wrong[35] = 0;
  EXPECT_EQ(parse_op(wrong).error(), Errc::protocol_error);
  for (std::size_t size = 32; size < 36; ++size) {
    EXPECT_EQ(parse_op(Bytes(bytes).first(size)).error(), Errc::protocol_error);
  }
  op.expires_after = 0;
  EXPECT_EQ(check_op(op).error(), Errc::invalid_argument);
  op = full_op();
  op.expires_after = 1;
  EXPECT_EQ(check_op(op).error(), Errc::invalid_argument);
  op.flags |= OpFlags::expires;
  op.kind = OpKind::get;
  EXPECT_EQ(check_op(op).error(), Errc::invalid_argument);
}

TEST(Ops, ADelayIsAnAppendsAndStandsAfterTheTimeToLive) {
  Op op = full_op();
  op.flags |= OpFlags::delayed;
  op.delay_ns = 0x0102030405060708;
  const std::vector<std::uint8_t> alone = encoded(op);
  EXPECT_EQ(alone[2], 0x40);
  EXPECT_EQ(as_text(Bytes(alone).subspan(32)), "\x01\x02\x03\x04\x05\x06\x07\x08ordersorders.eun-17A: b\r\nbody");
  op.flags |= OpFlags::expires;
  op.expires_after = 0x11121314;
  const std::vector<std::uint8_t> bytes = encoded(op);
  EXPECT_EQ(as_text(Bytes(bytes).subspan(32, 13)), "\x11\x12\x13\x14\x01\x02\x03\x04\x05\x06\x07\x08o");
  const auto again = parse_op(bytes);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->delay(), Duration(0x0102030405060708));
  EXPECT_EQ(again->time_to_live(), std::chrono::seconds(0x11121314));
  EXPECT_EQ(again->name, "orders");
  EXPECT_EQ(as_text(again->body), "body");

  std::vector<std::uint8_t> wrong = alone;
  wrong[1] = static_cast<std::uint8_t>(OpKind::delivery);
  EXPECT_EQ(parse_op(wrong).error(), Errc::protocol_error);
  wrong = alone;
  std::fill_n(wrong.begin() + 32, 8, std::uint8_t{0});
  EXPECT_EQ(parse_op(wrong).error(), Errc::protocol_error);
  std::fill_n(wrong.begin() + 32, 8, std::uint8_t{0xff});
  EXPECT_EQ(parse_op(wrong)->delay(), Duration::max());
  for (std::size_t size = 32; size < 44; ++size) {
    EXPECT_EQ(parse_op(Bytes(bytes).first(size)).error(), Errc::protocol_error);
  }
  op.delay_ns = 0;
  EXPECT_EQ(check_op(op).error(), Errc::invalid_argument);
  op = full_op();
  op.delay_ns = 1;
  EXPECT_EQ(check_op(op).error(), Errc::invalid_argument);
  op.flags |= OpFlags::delayed;
  op.kind = OpKind::get;
  EXPECT_EQ(check_op(op).error(), Errc::invalid_argument);
}

TEST(Ops, ABatchIsAppendsAfterTheirSizes) {
  std::vector<std::uint8_t> body;
  Op first{.kind = OpKind::append, .key = "a", .body = as_bytes("one")};
  Op second{.kind = OpKind::append, .flags = OpFlags::expires, .expires_after = 7, .key = "b", .message_id = "id"};
  ASSERT_TRUE(add_to_batch(first, 0, body));
  ASSERT_TRUE(add_to_batch(second, 1, body));
  const auto batch = parse_batch(body);
  ASSERT_TRUE(batch) << batch.error().message();
  ASSERT_EQ(batch->size(), 2U);
  EXPECT_EQ(as_text(batch->at(0).body), "one");
  EXPECT_EQ(batch->at(1).key, "b");
  EXPECT_EQ(batch->at(1).expires_after, 7U);
  EXPECT_EQ(parse_batch({}).error(), Errc::protocol_error);
  for (std::size_t size = 1; size < body.size(); ++size) {
    const auto cut = parse_batch(Bytes(body).first(size));
    EXPECT_TRUE(cut ? cut->size() == 1 : cut.error() == Errc::protocol_error) << size;
  }
  for (Op wrong : {Op{.kind = OpKind::get, .key = "a"}, Op{.kind = OpKind::append, .name = "s", .key = "a"},
                   Op{.kind = OpKind::append, .flags = OpFlags::run, .key = "a"},
                   Op{.kind = OpKind::append, .flags = OpFlags::erased, .key = "a"},
                   Op{.kind = OpKind::append, .flags = OpFlags::delayed, .delay_ns = 1, .key = "a"}}) {
    std::vector<std::uint8_t> bad = body;
    ASSERT_TRUE(add_to_batch(wrong, 2, bad));
    EXPECT_EQ(parse_batch(bad).error(), Errc::protocol_error);
  }
  EXPECT_EQ(add_to_batch(first, kBatchMessagesMax, body).error(), Errc::invalid_argument);
  const std::vector<std::uint8_t> large(kOpBodyMax);
  first.body = large;
  EXPECT_EQ(add_to_batch(first, 0, body).error(), Errc::message_too_large);
}

TEST(Ops, EveryKindHasANameOfItsOwn) {
  std::set<std::string_view> seen;
  for (int i = static_cast<int>(kOpKindFirst); i <= static_cast<int>(kOpKindLast); ++i) {
    EXPECT_TRUE(seen.insert(op_name(static_cast<OpKind>(i))).second) << i;
  }
  EXPECT_FALSE(seen.contains("unknown"));
  EXPECT_EQ(op_name(static_cast<OpKind>(0)), "unknown");
  EXPECT_EQ(op_name(static_cast<OpKind>(static_cast<int>(kOpKindLast) + 1)), "unknown");
}

TEST(Ops, AnOpAtEveryBoundIsTakenAndOneByteMoreIsRefused) {
  const std::string name(kOpNameMax, 'n');
  const std::string longer(kOpNameMax + 1, 'n');
  const std::vector<std::uint8_t> headers(kOpHeadersMax + 1);
  const std::vector<std::uint8_t> body(kOpBodyMax + 1);
  Op op;
  op.kind = OpKind::append;
  op.flags = OpFlags::expires | OpFlags::delayed;
  op.expires_after = 1;
  op.delay_ns = 1;
  op.name = op.key = op.message_id = name;
  op.headers = Bytes(headers).first(kOpHeadersMax);
  op.body = Bytes(body).first(kOpBodyMax);
  ASSERT_TRUE(check_op(op));
  std::vector<std::uint8_t> bytes = encoded(op);
  EXPECT_EQ(bytes.size(), kOpSizeMax);
  ASSERT_TRUE(parse_op(bytes));
  bytes.push_back(0);
  EXPECT_EQ(parse_op(bytes).error(), Errc::protocol_error);

  for (std::string_view Op::* field : {&Op::name, &Op::key, &Op::message_id}) {
    Op wrong = op;
    wrong.*field = longer;
    EXPECT_EQ(check_op(wrong).error(), Errc::message_too_large);
  }
  Op wrong = op;
  wrong.headers = headers;
  EXPECT_EQ(check_op(wrong).error(), Errc::message_too_large);
  wrong = op;
  wrong.body = body;
  EXPECT_EQ(check_op(wrong).error(), Errc::message_too_large);
}

TEST(Ops, AnOpThatIsCutIsNoOpUnlessOnlyItsBodyIs) {
  const std::vector<std::uint8_t> bytes = encoded(full_op());
  const std::size_t body_at = bytes.size() - 4;
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const auto op = parse_op(Bytes(bytes).first(size));
    if (size < body_at) {
      EXPECT_EQ(op.error(), Errc::protocol_error) << size;
    } else {
      ASSERT_TRUE(op) << size;
      EXPECT_EQ(op->body.size(), size - body_at);
    }
  }
  EXPECT_EQ(op_id(Bytes(bytes).first(7)), 0U);
  EXPECT_EQ(op_id(Bytes(bytes).first(8)), 0x01020304U);
}

TEST(Ops, HeadersThatClaimMoreThanTheirBoundAreRefused) {
  std::vector<std::uint8_t> bytes = encoded(full_op());
  bytes[29] = 1;  // 65,536 and 6 bytes
  bytes.resize(200'000);
  EXPECT_EQ(parse_op(bytes).error(), Errc::protocol_error);
  bytes[31] = 0;
  EXPECT_TRUE(parse_op(bytes));
}

TEST(Ops, AnotherVersionAndAnUnknownKindAreNotSupported) {
  const std::vector<std::uint8_t> good = encoded(full_op());
  const auto with = [&good](std::size_t at, std::uint8_t value) {
    std::vector<std::uint8_t> bytes = good;
    bytes[at] = value;
    return parse_op(bytes).error();
  };
  EXPECT_EQ(with(0, 2), Errc::not_supported);
  EXPECT_EQ(with(1, 0), Errc::not_supported);
  EXPECT_EQ(with(1, static_cast<std::uint8_t>(kOpKindLast) + 1), Errc::not_supported);
  Op op;
  op.kind = static_cast<OpKind>(0);
  EXPECT_EQ(check_op(op).error(), Errc::invalid_argument);
}

TEST(Ops, TheErrorOfAnAnswerIsItsCodeAndOtherWhenThisVersionDoesNotKnowIt) {
  Op op;
  EXPECT_EQ(op.error(), Errc::ok);
  op.code = static_cast<std::uint16_t>(Errc::conflict);
  EXPECT_EQ(op.error(), Errc::conflict);
  op.code = 60'000;
  EXPECT_EQ(op.error(), Errc::other);
}

TEST(Ops, AnAcksBodyIsSequencesOfEightBytes) {
  const std::vector<std::uint8_t> body{0, 0, 0, 0, 0, 0, 1, 2, 0xFF, 0, 0, 0, 0, 0, 0, 1, 9};
  ASSERT_EQ(sequence_count(body), 2U);
  EXPECT_EQ(sequence_at(body, 0), 0x102U);
  EXPECT_EQ(sequence_at(body, 1), 0xFF00000000000001U);
  EXPECT_EQ(sequence_count({}), 0U);
}

}  // namespace
}  // namespace weft::topic
