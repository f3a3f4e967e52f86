// SPDX-License-Identifier: MIT
#include "weft/nats/jetstream/publish.h"

#include <string>

#include "weft/nats/protocol/limits.h"
#include <gtest/gtest.h>

namespace weft::nats::jetstream {
namespace {

std::string block_of(const PublishHeaders& asked) {
  Headers headers;
  EXPECT_TRUE(asked.add_to(headers));
  return std::string(as_text(headers.block()));
}

TEST(JetStreamPublish, AMessageAsksInItsHeaders) {
  EXPECT_EQ(block_of({}), "");
  EXPECT_EQ(block_of({.message_id = "id 1", .expected_last_subject_sequence = 0}),
            "NATS/1.0\r\nNats-Msg-Id: id 1\r\nNats-Expected-Last-Subject-Sequence: 0\r\n\r\n");
  EXPECT_EQ(block_of({.expected_stream = "S",
                      .expected_last_sequence = UINT64_MAX,
                      .expected_last_message_id = "x",
                      .ttl = std::chrono::milliseconds(1001),
                      .rollup = PublishHeaders::Rollup::subject}),
            "NATS/1.0\r\nNats-Expected-Stream: S\r\nNats-Expected-Last-Sequence: 18446744073709551615\r\n"
            "Nats-Expected-Last-Msg-Id: x\r\nNats-TTL: 2s\r\nNats-Rollup: sub\r\n\r\n");
  EXPECT_EQ(block_of({.ttl = PublishHeaders::kForever, .rollup = PublishHeaders::Rollup::all}),
            "NATS/1.0\r\nNats-TTL: never\r\nNats-Rollup: all\r\n\r\n");
  EXPECT_EQ(block_of({.schedule_at = WallTime(std::chrono::milliseconds(1500)), .schedule_target = "s.later"}),
            "NATS/1.0\r\nNats-Schedule: @at 1970-01-01T00:00:01.500000000Z\r\nNats-Schedule-Target: s.later\r\n\r\n");
  EXPECT_EQ(block_of({.batch = "b", .batch_sequence = 2, .batch_ends = true}),
            "NATS/1.0\r\nNats-Batch-Id: b\r\nNats-Batch-Sequence: 2\r\nNats-Batch-Commit: 1\r\n\r\n");
}

TEST(JetStreamPublish, AnIdIsNoSecondHeader) {
  Headers headers;
  EXPECT_EQ(PublishHeaders{.message_id = "a\r\nNats-Rollup: all"}.add_to(headers).error().code(),
            Errc::invalid_argument);
  EXPECT_EQ(PublishHeaders{.ttl = Duration(-1)}.add_to(headers).error().code(), Errc::invalid_argument);
  EXPECT_TRUE(headers.empty());
}

#if __has_include(<nlohmann/json.hpp>)  // else no answer can be read

TEST(JetStreamPublish, AnAcknowledgementHasTheSequence) {
  struct Case {
    std::string_view json;
    std::string_view stream;
    std::uint64_t sequence;
    bool duplicate;
    std::string_view domain = "";
  };
  for (const Case& each : {
           Case{R"({"stream":"S", "seq":1})", "S", 1, false},                                   // 2.9.10
           Case{R"({"stream":"S", "seq":1,"duplicate": true})", "S", 1, true},                  // the same
           Case{R"({"stream":"KV_b","seq":18446744073709551615})", "KV_b", UINT64_MAX, false},  // 2.15.2
           Case{R"({"stream":"S","seq":7,"duplicate": true})", "S", 7, true},
           Case{R"({"stream":"S","seq":7,"domain":"hub"})", "S", 7, false, "hub"},
           Case{R"( {"duplicate":true , "seq":7, "stream":"S","later":[{}]})", "S", 7, true},
           Case{R"({"stream":"\u0053","seq":7})", "S", 7, false},
           Case{R"({"type":"io.nats.jetstream.api.v1.pub_ack_response","stream":"S","seq":7})", "S", 7, false},
       }) {
    const auto ack = read_publish_ack(each.json);
    ASSERT_TRUE(ack) << each.json << ack.error().message();
    EXPECT_TRUE(ack->ok());
    EXPECT_EQ(ack->value.stream, each.stream);
    EXPECT_EQ(ack->value.sequence, each.sequence);
    EXPECT_EQ(ack->value.duplicate, each.duplicate);
    EXPECT_EQ(ack->value.domain, each.domain);
  }
  const auto batch = read_publish_ack(R"({"stream":"S","seq":9,"batch":"b","count":3})");
  ASSERT_TRUE(batch);
  EXPECT_EQ(batch->value.batch, "b");
  EXPECT_EQ(batch->value.batch_size, 3U);
}

TEST(JetStreamPublish, ARefusalHasItsReason) {
  // Of nats-server 2.9.10 and 2.15.2.
  const auto wrong = read_publish_ack(
      R"({"error":{"code":400,"err_code":10071,"description":"wrong last sequence: 12"},"stream":"S","seq":0})");
  ASSERT_TRUE(wrong);
  EXPECT_FALSE(wrong->ok());
  EXPECT_EQ(wrong->failure.error().code(), Errc::conflict);
  EXPECT_EQ(actual_last_sequence(wrong->failure), 12U);
  const auto full = read_publish_ack(
      R"({"error":{"code":503,"err_code":10077,"description":"maximum messages exceeded"},"stream":"F","seq":0})");
  ASSERT_TRUE(full);
  EXPECT_EQ(full->failure.error().code(), Errc::resource_exhausted);
  EXPECT_EQ(actual_last_sequence(full->failure), std::nullopt);
  const auto id = read_publish_ack(
      R"({"error":{"code":400,"err_code":10070,"description":"wrong last msg ID: i1"},"stream":"S","seq":0})");
  ASSERT_TRUE(id);
  EXPECT_EQ(id->failure.number, kWrongLastMessageId);
  for (const std::string_view text : {"wrong last sequence: ", "wrong last sequence: -1", "wrong last sequence: 1 ",
                                      "wrong last sequence: 18446744073709551616", "wrong last sequence: x", ""}) {
    EXPECT_EQ(actual_last_sequence({400, kWrongLastSequence, std::string(text)}), std::nullopt) << text;
  }
}

TEST(JetStreamPublish, OtherTextsAreNoAcknowledgement) {
  for (const std::string_view wrong :
       {"", "+OK", "{}", R"({"stream":"S"})", R"({"seq":1})", R"({"stream":"S","seq":0})", R"({"stream":"","seq":1})",
        R"({"stream":"S","seq":01})", R"({"stream":"S","seq":-1})", R"({"stream":"S","seq":1.5})",
        R"({"stream":"S","seq":18446744073709551616})", R"({"stream":"S","seq":"1"})", R"({"stream":"S","seq":1}})",
        R"({"stream":"S","seq":1)", R"({"stream":"S","seq":})", R"({"stream":"a b","seq":1})",
        R"({"stream":"S","seq":1,"duplicate": truex})"}) {
    EXPECT_EQ(read_publish_ack(wrong).error().code(), Errc::protocol_error) << wrong;
  }
}

#endif

}  // namespace
}  // namespace weft::nats::jetstream
