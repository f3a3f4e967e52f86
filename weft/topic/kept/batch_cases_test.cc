// SPDX-License-Identifier: MIT
// Batches of messages, on each engine. Servers before 2.12 refuse them.
#include <optional>
#include <string>
#include <vector>

#include "weft/topic/test_fleets.h"
#include <gtest/gtest.h>

namespace weft::topic {
namespace {

class EachBatch : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (fleet_.missing() != nullptr) {
      GTEST_SKIP() << fleet_.missing();
    }
    topics_ = fleet_.open(context_);
  }
  [[nodiscard]] static bool refuses() { return GetParam() == "nats"; }
  Stream stream(StreamOptions options = {}) {
    options.name = "s";
    options.topics = {"s.>"};
    options.survives = Survives::process;
    auto made = topics_->stream(options);
    EXPECT_TRUE(made) << made.error().message();
    return *std::move(made);
  }

  TestFleet fleet_{GetParam(), true};
  Context context_;
  std::optional<Topics> topics_;
};
WEFT_ON_FLEETS(EachBatch, kKeptFleets);

TEST_P(EachBatch, AllMessagesAreStoredOneAfterTheOther) {
  Stream s = stream();
  Headers headers;
  ASSERT_TRUE(headers.add("A", "b"));
  const BatchMessage batch[] = {{.topic = "s.a", .body = as_bytes("1"), .headers = headers.block()},
                                {.topic = "s.b", .body = as_bytes("2")},
                                {.topic = "s.a", .body = as_bytes("3")}};
  const auto published = s.publish_all(batch);
  if (refuses()) {
    EXPECT_EQ(published.error(), Errc::not_supported);
    EXPECT_EQ(s.info()->next, 1u) << "nothing is stored";
    return;
  }
  ASSERT_TRUE(published) << published.error().message();
  EXPECT_EQ(published->sequence, 1u);
  EXPECT_FALSE(published->duplicate);
  EXPECT_EQ(s.publish_all(std::span(batch).first(1))->sequence, 4u);
  Reader reader = *s.read();
  for (const char* body : {"1", "2", "3", "1"}) {
    EXPECT_EQ(reader.next_until(soon())->text(), body);
  }
  EXPECT_EQ(s.message(1)->headers(), headers.block());
  EXPECT_EQ(s.message(2)->headers(), "");
}

TEST_P(EachBatch, OneWrongMessageRefusesAll) {
  Stream s = stream();
  ASSERT_TRUE(s.publish("s.a", "first", {.id = "known"}));
  const BatchMessage good{.topic = "s.b", .body = as_bytes("good")};
  const auto outcome = [&](const BatchMessage& wrong) {
    const BatchMessage batch[] = {good, wrong, good};
    return s.publish_all(batch).error();
  };
  if (refuses()) {
    EXPECT_EQ(outcome(good), Errc::not_supported);
    return;
  }
  EXPECT_EQ(outcome({.topic = "other"}), Errc::invalid_argument);
  EXPECT_EQ(outcome({.topic = ""}), Errc::invalid_argument);
  EXPECT_EQ(outcome({.topic = "s.c", .headers = "no headers"}), Errc::invalid_argument);
  EXPECT_EQ(outcome({.topic = "s.c", .time_to_live = 1ns}), Errc::invalid_argument);
  EXPECT_EQ(outcome({.topic = "s.a", .expect_last = 7}), Errc::conflict);
  EXPECT_EQ(outcome({.topic = "s.a", .expect_last = 0}), Errc::conflict);
  EXPECT_EQ(outcome({.topic = "s.b", .expect_last = 0}), Errc::invalid_argument);
  EXPECT_EQ(outcome({.topic = "s.c", .id = "known"}), Errc::conflict);
  const BatchMessage other_life[] = {good, {.topic = "s.a", .expect_last = 1}};
  EXPECT_EQ(s.publish_all(other_life, {.expect_instance = 7}).error(), Errc::conflict);
  EXPECT_EQ(s.info()->next, 2u) << "nothing is stored";
  EXPECT_EQ(outcome({.topic = "s.a", .expect_last = 1, .time_to_live = 1h}), Errc::ok);
  EXPECT_EQ(s.info()->next, 5u);
}

TEST_P(EachBatch, ABatchHasBounds) {
  Stream s = stream();
  EXPECT_EQ(s.publish_all({}).error(), Errc::invalid_argument);
  const std::vector<BatchMessage> many(1001, BatchMessage{.topic = "s.a", .body = as_bytes("x")});
  EXPECT_EQ(s.publish_all(many).error(), Errc::invalid_argument);
  const std::string body(std::size_t{1} << 19U, 'x');
  const std::vector<BatchMessage> large(2, BatchMessage{.topic = "s.a", .body = as_bytes(body)});
  EXPECT_EQ(s.publish_all(large).error(), Errc::message_too_large);
  if (!refuses()) {
    EXPECT_EQ(s.publish_all(std::span(many).first(1000))->sequence, 1u);
    EXPECT_EQ(s.publish_all(std::span(large).first(1))->sequence, 1001u);
    EXPECT_EQ(s.info()->next, 1002u);
  }
}

TEST_P(EachBatch, AFullStreamTakesAllOrNone) {
  StreamOptions options;
  options.bytes_max = 65'536;
  options.when_full = Discard::refuse;
  Stream s = stream(options);
  const std::string body(2000, 'x');
  const std::vector<BatchMessage> batch(10, BatchMessage{.topic = "s.a", .body = as_bytes(body)});
  Result<Published> published = s.publish_all(batch);
  if (refuses()) {
    EXPECT_EQ(published.error(), Errc::not_supported);
    return;
  }
  std::uint64_t count = 0;
  for (; published; published = s.publish_all(batch)) {
    count += batch.size();
    ASSERT_LT(count, 100u);
  }
  EXPECT_EQ(published.error(), Errc::resource_exhausted);
  EXPECT_GE(count, 20u);
  EXPECT_EQ(s.info()->next, count + 1);
}

}  // namespace
}  // namespace weft::topic
