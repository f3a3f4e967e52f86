// SPDX-License-Identifier: MIT
#include "weft/nats/jetstream/key_value.h"

#include <string>

#include <gtest/gtest.h>

namespace weft::nats::jetstream {
namespace {

KeyOperation operation_of(std::string_view block) { return read_key_operation(HeadersView(as_bytes(block))); }

TEST(JetStreamKeyValue, ABucketIsAStream) {
  const auto stream = bucket_stream({.bucket = "b", .history = 5, .bytes_max = 1000, .replicas = 3});
  ASSERT_TRUE(stream);
  EXPECT_EQ(stream->name, "KV_b");
  EXPECT_EQ(stream->subjects, (std::vector<std::string>{"$KV.b.>"}));
  EXPECT_EQ(stream->messages_per_subject_max, 5);
  EXPECT_EQ(stream->bytes_max, 1000);
  EXPECT_EQ(stream->replicas, 3U);
  EXPECT_EQ(stream->discard, DiscardPolicy::refuse);
  EXPECT_EQ(stream->duplicate_window, std::chrono::minutes(2));
  EXPECT_TRUE(stream->allow_direct && stream->allow_rollup && stream->deny_delete);
  EXPECT_FALSE(stream->allow_message_ttl);
  EXPECT_EQ(bucket_stream({.bucket = "b", .age_max = std::chrono::seconds(30)})->duplicate_window,
            std::chrono::seconds(30));
  EXPECT_TRUE(bucket_stream({.bucket = "b", .marker_ttl = std::chrono::seconds(1)})->allow_message_ttl);
  EXPECT_EQ(bucket_of_stream("KV_b"), "b");
  EXPECT_EQ(bucket_of_stream("KV_"), std::nullopt);
  EXPECT_EQ(bucket_of_stream("S"), std::nullopt);
}

TEST(JetStreamKeyValue, ABucketThatNoServerTakesIsRefused) {
  for (const std::string_view bucket : {"", "a.b", "a b", "a*", "\xC3\xA9"}) {
    EXPECT_EQ(bucket_stream({.bucket = std::string(bucket)}).error().code(), Errc::invalid_argument) << bucket;
  }
  EXPECT_FALSE(bucket_stream({.bucket = "b", .history = 0}));
  EXPECT_FALSE(bucket_stream({.bucket = "b", .history = kBucketHistoryMax + 1}));
  EXPECT_FALSE(bucket_stream({.bucket = std::string(253, 'b')}));
  EXPECT_TRUE(bucket_stream({.bucket = std::string(252, 'b')}));
}

TEST(JetStreamKeyValue, AKeyIsASubject) {
  std::string subject;
  append_key_subject("b", "a.b", subject);
  EXPECT_EQ(subject, "$KV.b.a.b");
  EXPECT_EQ(key_of_subject("b", subject), "a.b");
  EXPECT_EQ(key_of_subject("b.a", subject), "b");  // no bucket has such a name
  for (const std::string_view other : {"$KV.b", "$KV.b.", "$KV.bb.a", "$KV.c.a", "KV.b.a", ""}) {
    EXPECT_EQ(key_of_subject("b", other), std::nullopt) << other;
  }
  EXPECT_TRUE(is_key("a.b/c_d-e=2A"));
  for (const std::string_view other : {"", ".a", "a.", "a..b", "a*", "a b", ">"}) {
    EXPECT_FALSE(is_key(other)) << other;
  }
}

TEST(JetStreamKeyValue, AMessageSaysWhatBecomesOfItsKey) {
  EXPECT_EQ(operation_of(""), KeyOperation::put);
  EXPECT_EQ(operation_of("NATS/1.0\r\nKV-Operation: PUT\r\n\r\n"), KeyOperation::put);
  EXPECT_EQ(operation_of("NATS/1.0\r\nKV-Operation: DEL\r\n\r\n"), KeyOperation::erase);
  EXPECT_EQ(operation_of("NATS/1.0\r\nKV-Operation: PURGE\r\nNats-Rollup: sub\r\n\r\n"), KeyOperation::purge);
  EXPECT_EQ(operation_of("NATS/1.0\r\nNats-Marker-Reason: MaxAge\r\nNats-TTL: 1s\r\n\r\n"), KeyOperation::purge);
  EXPECT_EQ(operation_of("NATS/1.0\r\nNats-Marker-Reason: Purge\r\n\r\n"), KeyOperation::purge);
  EXPECT_EQ(operation_of("NATS/1.0\r\nNats-Marker-Reason: Remove\r\n\r\n"), KeyOperation::erase);
  for (const KeyOperation each : {KeyOperation::put, KeyOperation::erase, KeyOperation::purge}) {
    Headers headers;
    ASSERT_TRUE(add_key_operation(each, headers));
    EXPECT_EQ(operation_of(as_text(headers.block())), each);
  }
}

}  // namespace
}  // namespace weft::nats::jetstream
