// SPDX-License-Identifier: MIT
// Kept topics of a local fleet, with the hub that one of the handles hosts.
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "weft/topic/test_fleets.h"
#include <gtest/gtest.h>

namespace weft::topic {
namespace {

class Kept : public testing::Test {
 protected:
  TestFleet fleet_{"local"};
  Context context_;
};

// The reading of one counter of a handle, or of the hub that it hosts.
std::uint64_t reading_of(const Topics& topics, std::string_view thing, std::string_view member) {
  CounterReadings readings;
  topics.counter_source()("t", readings);
  for (const auto& reading : readings) {
    for (std::size_t row = 0; reading.table->thing == thing && row < reading.table->rows.size(); ++row) {
      if (reading.table->rows[row].member == member) {
        return reading.values[row];
      }
    }
  }
  return ~std::uint64_t{0};
}

TEST_F(Kept, AFleetHasOneStoreAlsoWhenItsHandlesNameTwoDirectories) {
  TopicsOptions options = fleet_.options();
  const std::string first_directory = *sys::make_private_directory();
  const std::string second_directory = *sys::make_private_directory();
  options.store_directory = first_directory;
  auto first = std::make_unique<Topics>(fleet_.open(context_, options));
  ASSERT_TRUE(first->stream({.name = "s"})->publish("s.a", "kept"));
  options.store_directory = second_directory;
  Topics second = fleet_.open(context_, options);
  Stream stream = *second.stream({.name = "s"});
  EXPECT_EQ(stream.newest("s.a")->text(), "kept");
  first.reset();
  const auto newest = stream.newest("s.a");
  ASSERT_TRUE(newest) << newest.error().message();
  EXPECT_EQ(newest->text(), "kept");
  EXPECT_EQ(second.kept_statistics().hosted, 1u);
  EXPECT_TRUE(std::filesystem::is_empty(second_directory));
  std::filesystem::remove_all(first_directory);
  std::filesystem::remove_all(second_directory);
}

// The hub has a queue, and ends with the handle.
TEST_F(Kept, AJobAcknowledgedJustBeforeItsHubsHandleClosesIsDone) {
  {
    Topics topics = fleet_.open(context_);
    Stream jobs = *topics.stream({.name = "jobs", .keep = Keep::work});
    ASSERT_TRUE(jobs.publish("jobs.a", "x"));
    Consumer consumer = *jobs.consumer("w");
    auto job = consumer.next_until(soon());
    ASSERT_TRUE(job) << job.error().message();
    Stream log = *topics.stream({.name = "log"});
    for (int i = 0; i < 2000; ++i) {
      ASSERT_TRUE(log.publish_later("log.a", "x"));
    }
    job->ack();
    topics.close();
  }
  Topics next = fleet_.open(context_);
  const auto info = next.stream({.name = "jobs", .keep = Keep::work})->info();
  ASSERT_TRUE(info) << info.error().message();
  EXPECT_EQ(info->consumers.at(0).waiting, 0u);
  EXPECT_EQ(info->first, info->next);
}

TEST_F(Kept, StreamsListsThoseOfTheHandlesSpace) {
  TopicsOptions options = fleet_.options();
  Topics all = fleet_.open(context_, options);
  options.space = "prod";
  Topics prod = fleet_.open(context_, options);
  EXPECT_TRUE(all.streams()->empty());
  constexpr int kStreams = 300;  // beyond one page
  for (int i = 0; i < kStreams; ++i) {
    const std::string name = "s" + std::to_string(i);
    ASSERT_TRUE(all.stream({.name = name, .topics = {name}, .survives = Survives::nothing}));
  }
  Stream orders = *prod.stream({.name = "orders"});
  ASSERT_TRUE(orders.publish("orders.eu", "text"));
  ASSERT_TRUE(orders.consumer("billing"));
  ASSERT_TRUE(prod.key_value("config"));
  EXPECT_EQ(all.streams()->size(), kStreams + 2u);
  const auto own = prod.streams();
  ASSERT_TRUE(own) << own.error().message();
  ASSERT_EQ(own->size(), 2u);
  EXPECT_EQ(own->front().name, "prod.kv.config");
  EXPECT_EQ(own->front().settings.keep, Keep::latest);
  EXPECT_EQ(own->back().name, "prod.orders");
  EXPECT_EQ(own->back().next, 2u);
  EXPECT_GT(own->back().bytes, 0u);
  ASSERT_EQ(own->back().consumers.size(), 1u);
  EXPECT_EQ(own->back().consumers.front().name, "billing");
  TestFleet other("inproc");
  EXPECT_EQ(other.open(context_).streams().error(), Errc::not_supported);
}

TEST_F(Kept, WhatIsKeptOutlivesEveryHandle) {
  for (std::uint64_t round = 0; round < 3; ++round) {
    Topics topics = fleet_.open(context_);
    Stream s = *topics.stream({.name = "s"});
    EXPECT_EQ(s.publish("a", "x")->sequence, round + 1);
  }
}

TEST_F(Kept, AnotherHandleHostsWhenTheHostGoes) {
  auto one = std::make_unique<Topics>(fleet_.open(context_));
  Topics two = fleet_.open(context_);
  Stream first = *one->stream({.name = "s"});
  Stream s = *two.stream({.name = "s"});
  Reader reader = *s.read();
  std::vector<PendingPublish> pending;
  for (int i = 0; i < 500; ++i) {
    if (i == 250) {
      one.reset();
    }
    pending.push_back(*s.publish_later("a", std::to_string(i)));
  }
  for (PendingPublish& each : pending) {
    const auto published = each.wait();
    ASSERT_TRUE(published) << published.error().message();
  }
  for (int i = 0; i < 500; ++i) {
    const auto message = reader.next_until(soon());
    ASSERT_TRUE(message) << message.error().message();
    ASSERT_EQ(message->text(), std::to_string(i));
  }
  EXPECT_EQ(two.kept_statistics().hosted, 1u);
}

TEST_F(Kept, JobsThatNoProgramSawAreNotTried) {
  Topics topics = fleet_.open(context_);
  Stream jobs = *topics.stream({.name = "jobs", .keep = Keep::work, .survives = Survives::process});
  constexpr int kJobs = 20;
  for (int i = 0; i < kJobs; ++i) {
    ASSERT_TRUE(jobs.publish("jobs.a", std::to_string(i)));
  }
  for (int i = 0; i < kJobs; ++i) {  // workers that do one job a life
    Consumer worker = *jobs.consumer("workers", {.tries_max = 3});
    Delivery job = *worker.next_until(soon());
    EXPECT_EQ(job.text(), std::to_string(i));
    EXPECT_EQ(job.tries(), 0u);
    ASSERT_TRUE(job.ack_confirmed());
  }
  EXPECT_EQ(reading_of(topics, "hub", "dead_dropped"), 0u);
}

TEST_F(Kept, AFullWorkStreamAndAFullBucketRefuseAndLoseNothing) {
  Topics topics = fleet_.open(context_);
  const std::string body(1000, 'x');
  Stream jobs =
      *topics.stream({.name = "jobs", .keep = Keep::work, .survives = Survives::nothing, .bytes_max = 64 << 10});
  int taken = 0;
  auto published = jobs.publish("jobs.a", body);
  for (; published; published = jobs.publish("jobs.a", body)) {
    ++taken;
  }
  EXPECT_EQ(published.error(), Errc::resource_exhausted);
  Consumer consumer = *jobs.consumer("c");
  for (int i = 0; i < taken; ++i) {
    ASSERT_TRUE(consumer.next_until(soon())->ack_confirmed());
  }
  EXPECT_TRUE(jobs.publish("jobs.a", body)) << "there is room again";
  KeyValue bucket = *topics.key_value("b", {.survives = Survives::nothing, .bytes_max = 64 << 10});
  int keys = 0;
  auto put = bucket.put("k0", body);
  while (put) {
    put = bucket.put("k" + std::to_string(++keys), body);
  }
  EXPECT_EQ(put.error(), Errc::resource_exhausted);
  EXPECT_EQ(bucket.keys()->size(), static_cast<std::size_t>(keys));
  EXPECT_TRUE(bucket.put("k0", body)) << "in the place of another value";
  EXPECT_TRUE(bucket.erase("k0"));
  EXPECT_EQ(jobs.info()->evicted, 0u);
  EXPECT_EQ(reading_of(topics, "hub", "evicted"), 0u);

  KeyValue oldest =
      *topics.key_value("o", {.survives = Survives::nothing, .bytes_max = 64 << 10, .when_full = Discard::oldest});
  KeyValueWatch watch = *oldest.watch();
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(oldest.put("k" + std::to_string(i), body));
  }
  auto entry = watch.next_until(soon());
  while (entry && !entry->erased()) {
    entry = watch.next_until(soon());
  }
  ASSERT_TRUE(entry);
  EXPECT_EQ(entry->key(), "k0");
  EXPECT_EQ(reading_of(topics, "hub", "evicted"), 100 - oldest.keys()->size());
}

TEST_F(Kept, ReadersAndWatchesHearTheStreamOfTheNextHub) {
  auto first = std::make_unique<Topics>(fleet_.open(context_));
  auto gone = std::make_unique<Stream>(*first->stream({.name = "s", .survives = Survives::nothing}));
  Topics second = fleet_.open(context_);
  Stream stream = *second.stream({.name = "s", .survives = Survives::nothing});
  KeyValue bucket = *second.key_value("b", {.survives = Survives::nothing});
  Reader reader = *stream.read();
  Consumer consumer = *stream.consumer("c");
  KeyValueWatch watch = *bucket.watch();
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(stream.publish("a", "before"));
    ASSERT_TRUE(bucket.put("k", "before " + std::to_string(i)));
    ASSERT_EQ(reader.next_until(soon())->text(), "before");
  }
  while (watch.next_until(soon())->text() != "before 19") {
  }
  Delivery held = *consumer.next_until(soon());
  gone.reset();
  first.reset();  // the hub, and the data of its streams in memory
  ASSERT_TRUE(stream.publish("a", "after"));
  ASSERT_TRUE(bucket.put("k", "after"));
  EXPECT_EQ(reader.next_until(soon())->text(), "after");
  EXPECT_EQ(watch.next_until(soon())->text(), "after");
  Delivery fresh = *consumer.next_until(soon());
  while (fresh.text() != "after") {  // of the old one's queue there may be messages
    fresh = *consumer.next_until(soon());
  }
  EXPECT_EQ(fresh.sequence(), held.sequence());
  held.ack();  // of the old stream
  EXPECT_TRUE(fresh.ack_confirmed());
}

TEST_F(Kept, RetriesCountAndEndInDeadLetters) {
  Topics topics = fleet_.open(context_);
  Stream jobs = *topics.stream({.name = "jobs", .topics = {"jobs.>", "dead.>"}});
  ASSERT_TRUE(jobs.publish("jobs.1", "poison"));
  Consumer c = *jobs.consumer("c", {.filter = "jobs.>",
                                    .tries_max = 3,
                                    .retry_waits = {Duration(std::chrono::milliseconds(1))},
                                    .dead_letters = "dead.jobs"});
  for (std::uint32_t i = 0; i < 3; ++i) {
    Delivery d = *c.next_until(soon());
    EXPECT_EQ(d.tries(), i);
    d.retry();
  }
  Reader dead = *jobs.read({.filter = "dead.>"});
  EXPECT_EQ(dead.next_until(soon())->text(), "poison");
}

TEST_F(Kept, WhatIsStoredReachesVolatileSubscribersToo) {
  Topics host = fleet_.open(context_);
  Topics other = fleet_.open(context_);
  Stream jobs = *host.stream({.name = "jobs", .topics = {"jobs.>", "dead.>"}});
  Stream jobs_of_other = *other.stream({.name = "jobs", .topics = {"jobs.>", "dead.>"}});
  Subscription mine = *host.subscribe({"jobs.>", "dead.>"});
  Subscription theirs = *other.subscribe({"jobs.>", "dead.>"});
  Publisher a = *host.publisher("jobs.a");
  ASSERT_EQ(*a.wait_subscribers(2, soon()), 2u);
  Headers headers;
  ASSERT_TRUE(headers.add("traceparent", "00-1"));
  ASSERT_TRUE(jobs.publish("jobs.a", "1", {.id = "1", .headers = headers.block()}));
  ASSERT_TRUE(jobs_of_other.publish("jobs.a", "2", {.id = "2"}));
  ASSERT_TRUE(jobs.publish("jobs.a", "2", {.id = "2"})->duplicate);
  ASSERT_EQ(jobs.publish("jobs.a", "x", {.expect_last = 77}).error(), Errc::conflict);
  {  // a dead letter is stored, too
    Consumer c = *jobs.consumer("c", {.unacked_max = 1, .tries_max = 1, .dead_letters = "dead.jobs"});
    c.next_until(soon())->retry(Duration(0));
    c.next_until(soon())->ack();
  }
  for (Subscription* const each : {&mine, &theirs}) {
    const auto first = each->next_until(soon());
    ASSERT_TRUE(first) << first.error().message();
    EXPECT_EQ(first->topic(), "jobs.a");
    EXPECT_EQ(first->text(), "1");
    EXPECT_EQ(first->header("traceparent"), "00-1");
    EXPECT_EQ(each->next_until(soon())->text(), "2");
    const auto dead = each->next_until(soon());
    EXPECT_EQ(dead->topic(), "dead.jobs");
    EXPECT_EQ(dead->text(), "1");
    EXPECT_EQ(each->try_next().error(), Errc::would_block) << "a duplicate and a refused message are not told";
  }
  // The balance: the hub published its stored messages, and each subscription took them.
  EXPECT_EQ(reading_of(host, "hub", "appended"), 3u);
  // The hub counts its publications when the subscribers have them.
  for (const Instant end = soon(); reading_of(host, "hub", "told") < 3u && sys::now() < end;) {
    std::this_thread::yield();
  }
  EXPECT_EQ(reading_of(host, "hub", "told"), 3u);
  EXPECT_EQ(reading_of(host, "hub", "untold"), 0u);
  EXPECT_EQ(reading_of(host, "kept", "appended"), 3u);
  EXPECT_EQ(reading_of(host, "kept", "acknowledged"), 2u);
  EXPECT_EQ(reading_of(host, "kept", "refused"), 1u);
  for (const Topics* const each : {&host, &other}) {
    const TopicsStatistics all = each->statistics();
    EXPECT_EQ(all.matched, all.delivered + all.dropped() + all.queued);
    EXPECT_EQ(all.delivered, 3u);
  }
  EXPECT_EQ(host.statistics().published, 3u);
  // A bucket is a stream, whose erasures are not messages.
  Subscription keys = *other.subscribe("kv.>");
  ASSERT_EQ(*host.publisher("kv.config.a")->wait_subscribers(1, soon()), 1u);
  KeyValue kv = *other.key_value("config");
  ASSERT_TRUE(kv.put("a", "1"));
  ASSERT_TRUE(kv.erase("a"));
  ASSERT_TRUE(kv.put("a", "2"));
  EXPECT_EQ(keys.next_until(soon())->text(), "1");
  EXPECT_EQ(keys.next_until(soon())->text(), "2");
}

TEST_F(Kept, AStreamThatIsMadeAnewIsToldFromItsFirstMessage) {
  Topics host = fleet_.open(context_);
  Subscription mine = *host.subscribe("a");
  for (int round = 0; round < 3; ++round) {
    Stream s = *host.stream({.name = "s"});
    for (int i = 0; i < 5 - round; ++i) {
      ASSERT_TRUE(s.publish("a", std::to_string(i)));
      EXPECT_EQ(mine.next_until(soon())->text(), std::to_string(i));
    }
    ASSERT_TRUE(s.remove());
  }
}

TEST_F(Kept, OtherFleetsRefuse) {
  for (const char* kind : {"inproc", "tcp"}) {
    TestFleet fleet{kind};
    Topics topics = fleet.open(context_);
    EXPECT_EQ(topics.stream({.name = "s"}).error(), Errc::not_supported) << kind;
    EXPECT_EQ(topics.key_value("s").error(), Errc::not_supported) << kind;
  }
  Topics topics = fleet_.open(context_);
  EXPECT_EQ(topics.stream({.name = "s", .survives = Survives::machine}).error(), Errc::not_supported);
}

TEST_F(Kept, AHandleThatDoesNotHostWaitsForAHub) {
  TopicsOptions options = fleet_.options();
  options.hosts = false;
  Topics member = fleet_.open(context_, options);
  std::thread waiting([&] {
    auto s = member.stream({.name = "s"});
    EXPECT_TRUE(s) << s.error().message();
  });
  Topics host = fleet_.open(context_);
  EXPECT_TRUE(host.stream({.name = "s"}));
  waiting.join();
  EXPECT_EQ(member.kept_statistics().hosted, 0u);
}

}  // namespace
}  // namespace weft::topic
