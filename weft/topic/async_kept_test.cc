// SPDX-License-Identifier: MIT
// Kept topics of handles whose callers are coroutines of a core, with the hub that one of them hosts.
#include <map>
#include <string>
#include <vector>

#include "weft/rt/core/core_task.h"
#include "weft/rt/core/runtime.h"
#include "weft/rt/exec/future.h"
#include "weft/topic/async_topics.h"
#include "weft/topic/test_fleets.h"
#include <gtest/gtest.h>

namespace weft::topic {
namespace {

class AsyncKept : public testing::Test {
 protected:
  void SetUp() override {
    rt::RuntimeOptions options;
    options.cores = 2;
    auto runtime = rt::Runtime::start(options);
    ASSERT_TRUE(runtime);
    runtime_ = *std::move(runtime);
  }
  void run(rt::Task<Result<void>> task, unsigned core = 0) {
    auto future = rt::spawn(runtime_->core(core), std::move(task));
    ASSERT_TRUE(future);
    const Result<void> result = future->get();
    EXPECT_TRUE(result) << result.error().text();
  }

  TestFleet fleet_{"local"};
  Context context_;
  std::unique_ptr<rt::Runtime> runtime_;
};

rt::Task<Result<void>> use_a_stream(rt::Core* core, Context* context, TopicsOptions options) {
  WEFT_CO_TRY(AsyncTopics topics, co_await AsyncTopics::open(*core, *context, options));
  const StreamOptions declared{.name = "orders", .topics = {"orders.>"}};
  WEFT_CO_TRY(AsyncStream orders, co_await topics.stream(declared));
  const PublishOptions with_id{.id = "17"};
  WEFT_CO_TRY(const Published first, co_await orders.publish("orders.eu.17", "first", with_id));
  EXPECT_EQ(first.sequence, 1u);
  WEFT_CO_TRY(const Published again, co_await orders.publish("orders.eu.17", "first", with_id));
  EXPECT_TRUE(again.duplicate);
  const ReadOptions all;
  WEFT_CO_TRY(AsyncReader reader, co_await orders.read(all));
  WEFT_CO_TRY(const KeptMessage message, co_await reader.next());
  EXPECT_EQ(message.text(), "first");
  const ConsumerOptions options_of_consumer;
  WEFT_CO_TRY(AsyncConsumer consumer, co_await orders.consumer("c", options_of_consumer));
  WEFT_CO_TRY(AsyncDelivery delivery, co_await consumer.next());
  WEFT_CO_TRY(co_await delivery.ack_confirmed());
  const Result<void> twice = co_await delivery.ack_confirmed();
  EXPECT_EQ(twice.error(), Errc::invalid_state);
  WEFT_CO_TRY(const StreamInfo info, co_await orders.info());
  EXPECT_EQ(info.name, "orders");
  EXPECT_EQ(info.next, 2u);
  EXPECT_EQ(info.consumers.size(), 1u);
  WEFT_CO_TRY(const std::vector<StreamInfo> streams, co_await topics.streams());
  EXPECT_EQ(streams.size(), 1u);
  EXPECT_EQ(streams.front().name, "orders");
  WEFT_CO_TRY(co_await orders.remove_consumer("c"));
  const Result<AsyncDelivery> removed = co_await consumer.next();
  EXPECT_EQ(removed.error(), Errc::not_found);
  const Result<void> by_topic = co_await orders.purge_topic("orders.eu.17");
  EXPECT_EQ(by_topic.error(), Errc::not_supported) << "of a log";
  WEFT_CO_TRY(co_await orders.purge(2));
  std::vector<BatchMessage> batch(2);
  batch[0].topic = batch[1].topic = "orders.us";
  WEFT_CO_TRY(const Published both, co_await orders.publish_all(batch));
  EXPECT_EQ(both.sequence, 2u);
  batch[1].topic = "other";
  const Result<Published> neither = co_await orders.publish_all(batch);
  EXPECT_EQ(neither.error(), Errc::invalid_argument);
  WEFT_CO_TRY(const StreamInfo after, co_await orders.info());
  EXPECT_EQ(after.next, 4u);
  WEFT_CO_TRY(co_await orders.remove());
  const Result<Published> gone = co_await orders.publish("orders.eu.17", "x");
  EXPECT_EQ(gone.error(), Errc::not_found);
  EXPECT_EQ(topics.kept_statistics().hosted, 1u);
  co_return Result<void>();
}

TEST_F(AsyncKept, AHandleOfACoreKeepsStreams) { run(use_a_stream(&runtime_->core(0), &context_, fleet_.options())); }

rt::Task<Result<void>> use_a_bucket(rt::Core* core, Context* context, TopicsOptions options) {
  WEFT_CO_TRY(AsyncTopics topics, co_await AsyncTopics::open(*core, *context, options));
  const KeyValueOptions newest_only;
  WEFT_CO_TRY(AsyncKeyValue config, co_await topics.key_value("config", newest_only));
  EXPECT_EQ(config.name(), "config");
  WEFT_CO_TRY(const std::uint64_t first, co_await config.put("db.host", "a"));
  const Result<std::uint64_t> there = co_await config.create("db.host", "b");
  EXPECT_EQ(there.error(), Errc::conflict);
  const Result<std::uint64_t> outdated = co_await config.update("db.host", "b", first + 7);
  EXPECT_EQ(outdated.error(), Errc::conflict);
  WEFT_CO_TRY(const std::uint64_t second, co_await config.update("db.host", "b", first));
  WEFT_CO_TRY(const KeyValueEntry value, co_await config.value("db.host"));
  EXPECT_EQ(value.text(), "b");
  EXPECT_EQ(value.revision(), second);
  for (int i = 0; i < 600; ++i) {  // more than two pages of keys
    const std::string key = "many." + std::to_string(i);
    WEFT_CO_TRY(co_await config.create(key, "x"));
  }
  WEFT_CO_TRY(const std::vector<std::string> many, co_await config.keys("many.*"));
  EXPECT_EQ(many.size(), 600u);
  const Result<std::vector<std::string>> bad = co_await config.keys("a..b");
  EXPECT_EQ(bad.error(), Errc::invalid_argument);

  WEFT_CO_TRY(AsyncKeyValueWatch watch, co_await config.watch("db.*"));
  WEFT_CO_TRY(const auto stored, co_await watch.next_stored());
  EXPECT_TRUE(stored && stored->text() == "b");
  WEFT_CO_TRY(const auto none, co_await watch.next_stored());
  EXPECT_FALSE(none);
  EXPECT_TRUE(watch.live());
  EXPECT_EQ(watch.try_next().error(), Errc::would_block);
  WEFT_CO_TRY(const std::uint64_t third, co_await config.update("db.host", "c", value));
  EXPECT_GT(third, second);
  WEFT_CO_TRY(const KeyValueEntry replaced, co_await watch.next());
  EXPECT_EQ(replaced.text(), "c");
  const Result<std::uint64_t> old = co_await config.erase("db.host", value);
  EXPECT_EQ(old.error(), Errc::conflict);
  WEFT_CO_TRY(co_await config.erase("db.host", third));
  WEFT_CO_TRY(const KeyValueEntry erased, co_await watch.next());
  EXPECT_TRUE(erased.erased());
  EXPECT_EQ(erased.key(), "db.host");
  const Result<KeyValueEntry> value_of_erased = co_await config.value("db.host");
  EXPECT_EQ(value_of_erased.error(), Errc::not_found);
  for (const char* key : {"", ".", "a..b", ".a"}) {
    const Result<std::uint64_t> refused = co_await config.put(key, "x");
    EXPECT_EQ(refused.error(), Errc::invalid_argument) << key;
  }
  const PutOptions too_short{Duration(1)};
  const Result<std::uint64_t> wrong_put = co_await config.put("db.host", "x", too_short);
  const Result<std::uint64_t> wrong_create = co_await config.create("db.new", "x", too_short);
  const Result<std::uint64_t> wrong_update = co_await config.update("db.host", "x", 7, too_short);
  EXPECT_EQ(wrong_put.error(), Errc::invalid_argument);
  EXPECT_EQ(wrong_create.error(), Errc::invalid_argument);
  EXPECT_EQ(wrong_update.error(), Errc::invalid_argument);
  const PutOptions short_lived{std::chrono::seconds(1)};
  const PutOptions long_lived{std::chrono::hours(1)};
  WEFT_CO_TRY(const std::uint64_t created, co_await config.create("db.lock", "x", long_lived));
  WEFT_CO_TRY(co_await config.update("db.lock", "y", created, short_lived));
  for (bool erased = false; !erased;) {
    WEFT_CO_TRY(const KeyValueEntry change, co_await watch.next());
    erased = change.key() == "db.lock" && change.erased();
  }
  const Result<KeyValueEntry> over = co_await config.value("db.lock");
  EXPECT_EQ(over.error(), Errc::not_found);
  const Result<AsyncKeyValue> no_name = co_await topics.key_value("a.b", newest_only);
  EXPECT_EQ(no_name.error(), Errc::invalid_argument);
  topics.close();
  const Result<std::uint64_t> closed = co_await config.put("a", "x");
  EXPECT_EQ(closed.error(), Errc::closed);
  const Result<KeyValueEntry> ended = co_await watch.next();
  EXPECT_EQ(ended.error(), Errc::closed);
  co_return Result<void>();
}

TEST_F(AsyncKept, AHandleOfACoreKeepsBuckets) { run(use_a_bucket(&runtime_->core(1), &context_, fleet_.options()), 1); }

rt::Task<Result<void>> hear_what_is_stored(rt::Core* core, Context* context, TopicsOptions options) {
  WEFT_CO_TRY(AsyncTopics topics, co_await AsyncTopics::open(*core, *context, options));
  WEFT_CO_TRY(AsyncSubscription mine, topics.subscribe("orders.>"));
  const StreamOptions declared{.name = "orders"};
  WEFT_CO_TRY(AsyncStream orders, co_await topics.stream(declared));
  std::vector<AsyncPendingPublish> pending;
  for (int i = 0; i < 3000; ++i) {
    const std::string text = std::to_string(i);
    WEFT_CO_TRY(AsyncPendingPublish later, co_await orders.publish_later("orders.a", text));
    pending.push_back(std::move(later));
  }
  for (int i = 0; i < 3000; ++i) {
    WEFT_CO_TRY(const TopicMessage message, co_await mine.next());
    EXPECT_EQ(message.text(), std::to_string(i));
  }
  for (AsyncPendingPublish& each : pending) {
    WEFT_CO_TRY(co_await each.wait());
  }
  const TopicsStatistics all = topics.statistics();
  EXPECT_EQ(all.published, 3000u);
  EXPECT_EQ(all.matched, all.delivered + all.dropped() + all.queued);
  co_return Result<void>();
}

TEST_F(AsyncKept, WhatIsStoredReachesVolatileSubscribersToo) {
  run(hear_what_is_stored(&runtime_->core(0), &context_, fleet_.options()));
}

rt::Task<Result<void>> refuse(rt::Core* core, Context* context, TopicsOptions options) {
  WEFT_CO_TRY(AsyncTopics topics, co_await AsyncTopics::open(*core, *context, options));
  const StreamOptions declared{.name = "s"};
  const Result<AsyncStream> stream = co_await topics.stream(declared);
  EXPECT_EQ(stream.error(), Errc::not_supported);
  const Result<AsyncKeyValue> bucket = co_await topics.key_value("b");
  EXPECT_EQ(bucket.error(), Errc::not_supported);
  co_return Result<void>();
}

TEST_F(AsyncKept, OtherFleetsRefuse) {
  const TestFleet fleet{"inproc"};
  run(refuse(&runtime_->core(0), &context_, fleet.options()));
}

}  // namespace
}  // namespace weft::topic
