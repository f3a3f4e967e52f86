// SPDX-License-Identifier: MIT
// Kept topics of a local fleet, with the hub that one of the handles hosts.
#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>
#include <memory>
#include <set>
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

TEST_F(Kept, AHandleKeepsWhatAnotherOneReads) {
  Topics one = fleet_.open(context_);
  Topics two = fleet_.open(context_);
  auto orders = one.stream({.name = "orders", .topics = {"orders.>"}});
  ASSERT_TRUE(orders) << orders.error().message();
  EXPECT_EQ(orders->publish("orders.eu.17", "first", {.id = "17"})->sequence, 1u);
  EXPECT_TRUE(orders->publish("orders.eu.17", "first", {.id = "17"})->duplicate);
  EXPECT_EQ(orders->publish("px.a", "not of the stream").error(), Errc::invalid_argument);
  Stream same = *two.stream({.name = "orders", .topics = {"orders.>"}});
  Reader reader = *same.read({.filter = "orders.eu.>"});
  EXPECT_EQ(reader.next_until(soon())->text(), "first");
  EXPECT_FALSE(reader.next_stored()->has_value());
  EXPECT_TRUE(reader.live());
  ASSERT_TRUE(orders->publish("orders.us.1", "other"));
  ASSERT_TRUE(orders->publish("orders.eu.1", "second"));
  EXPECT_EQ(reader.next_until(soon())->text(), "second");
  EXPECT_EQ(same.info()->next, 4u);
  EXPECT_EQ(one.kept_statistics().hosted + two.kept_statistics().hosted, 1u);
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

TEST_F(Kept, EachCauseOfAConflictHasItsOwnText) {
  Topics topics = fleet_.open(context_);
  Stream log = *topics.stream({.name = "log"});
  ASSERT_TRUE(log.publish("log.a", "1"));
  KeyValue bucket = *topics.key_value("b");
  ASSERT_TRUE(bucket.put("k", "1"));
  Stream work = *topics.stream({.name = "work", .keep = Keep::work});
  ASSERT_TRUE(work.consumer("one"));
  ASSERT_TRUE(log.consumer("c"));
  const Error errors[] = {log.publish("log.a", "2", {.expect_last = 7}).error(),
                          log.publish("log.a", "2", {.expect_last = 1, .expect_instance = 7}).error(),
                          bucket.create("k", "2").error(),
                          topics.stream({.name = "log", .age_max = std::chrono::hours(1)}).error(),
                          work.consumer("two").error(),
                          log.consumer("c", {.unacked_max = 7}).error()};
  std::set<std::string> texts;
  for (const Error& error : errors) {
    EXPECT_EQ(error, Errc::conflict);
    texts.emplace(error.text());
  }
  EXPECT_EQ(texts.size(), std::size(errors));
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

TEST_F(Kept, AWorkQueueSharesItsMessagesAndGivesBackWhatWaits) {
  Topics topics = fleet_.open(context_);
  Stream jobs = *topics.stream({.name = "jobs", .keep = Keep::work});
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(jobs.publish("jobs", std::to_string(i)));
  }
  std::set<std::string> seen;
  {
    Consumer member = *jobs.consumer("workers", {.queue_messages_max = 50});
    for (int i = 0; i < 10; ++i) {
      Delivery d = *member.next_until(soon());
      seen.insert(std::string(d.text()));
      ASSERT_TRUE(d.ack_confirmed());
    }
  }
  Consumer member = *jobs.consumer("workers", {});
  while (seen.size() < 100) {
    auto d = member.next_until(soon());  // sooner than ack_wait, which is 30 s
    ASSERT_TRUE(d) << d.error().message();
    EXPECT_TRUE(seen.insert(std::string(d->text())).second);
    ASSERT_TRUE(d->ack_confirmed());
  }
  EXPECT_EQ(member.try_next().error(), Errc::would_block);
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

TEST_F(Kept, WorkersThatWaitShareTheJobs) {
  Topics topics = fleet_.open(context_);
  Stream jobs = *topics.stream({.name = "jobs", .keep = Keep::work, .survives = Survives::nothing});
  std::vector<Consumer> workers;
  for (int i = 0; i < 4; ++i) {
    workers.push_back(*jobs.consumer("workers"));
  }
  for (int i = 0; i < 16; ++i) {
    ASSERT_TRUE(jobs.publish("jobs.a", std::to_string(i)));
  }
  for (Consumer& worker : workers) {  // none of them acknowledges before all have got their share
    for (int i = 0; i < 4; ++i) {
      ASSERT_TRUE(worker.next_until(soon()));
    }
  }
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

TEST_F(Kept, AReaderOfLargeMessagesWithSmallQueuesReadsAllOfThem) {
  Topics topics = fleet_.open(context_);
  Stream stream = *topics.stream({.name = "s", .survives = Survives::nothing});
  const std::string body(700'000, 'x');
  constexpr int kCount = 110;  // 77 MB: more than a hub sends to a member that is silent
  for (int i = 0; i < kCount; ++i) {
    ASSERT_TRUE(stream.publish("a", body));
  }
  Reader reader = *stream.read();
  for (int i = 0; i < kCount; ++i) {
    ASSERT_TRUE(reader.next_until(soon())) << i;
  }
}

TEST_F(Kept, ADeclarationThatSaysSoChangesAConsumerOrABucket) {
  Topics topics = fleet_.open(context_);
  Stream s = *topics.stream({.name = "s", .survives = Survives::nothing});
  ASSERT_TRUE(s.consumer("c", {.ack_wait = 1s}));
  EXPECT_EQ(s.consumer("c", {.ack_wait = 2s}).error(), Errc::conflict);
  ASSERT_TRUE(s.consumer("c", {.ack_wait = 2s, .redeclare = true}));
  EXPECT_TRUE(s.consumer("c", {.ack_wait = 2s}));
  ASSERT_TRUE(topics.key_value("b", {.survives = Survives::nothing}));
  EXPECT_EQ(topics.key_value("b", {.history = 3, .survives = Survives::nothing}).error(), Errc::conflict);
  ASSERT_TRUE(topics.key_value("b", {.history = 3, .survives = Survives::nothing, .redeclare = true}));
  KeyValue bucket = *topics.key_value("b", {.history = 3, .survives = Survives::nothing});
  for (const char* value : {"1", "2", "3", "4"}) {
    ASSERT_TRUE(bucket.put("k", value));
  }
  KeyValueWatch all = *bucket.watch("k", true);
  EXPECT_EQ(all.next_until(soon())->text(), "2") << "the newest three";
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

TEST_F(Kept, ABucketHasRevisionsKeysAndAWatch) {
  Topics one = fleet_.open(context_);
  Topics two = fleet_.open(context_);
  KeyValue config = *one.key_value("config");
  KeyValue same = *two.key_value("config");
  const std::uint64_t first = *config.put("db.host", "a");
  EXPECT_EQ(config.create("db.host", "b").error(), Errc::conflict);
  EXPECT_EQ(config.update("db.host", "b", first + 7).error(), Errc::conflict);
  const std::uint64_t second = *config.update("db.host", "b", first);
  EXPECT_GT(second, first);
  const auto value = same.value("db.host");
  ASSERT_TRUE(value) << value.error().message();
  EXPECT_EQ(value->text(), "b");
  EXPECT_EQ(value->key(), "db.host");
  EXPECT_EQ(value->revision(), second);
  ASSERT_TRUE(config.create("db.port", "1"));
  ASSERT_TRUE(config.put("a key/with=any\xc3\xa9 byte", "1"));
  EXPECT_EQ(*config.keys(), (std::vector<std::string>{"a key/with=any\xc3\xa9 byte", "db.host", "db.port"}));
  EXPECT_EQ(*config.keys("db.*"), (std::vector<std::string>{"db.host", "db.port"}));
  EXPECT_EQ(config.value("none").error(), Errc::not_found);

  KeyValueWatch watch = *same.watch("db.*");
  std::map<std::string, std::string> seen;
  while (true) {
    auto entry = watch.next_stored();
    ASSERT_TRUE(entry) << entry.error().message();
    if (!*entry) {
      break;
    }
    seen[std::string((*entry)->key())] = (*entry)->text();
  }
  EXPECT_EQ(seen, (std::map<std::string, std::string>{{"db.host", "b"}, {"db.port", "1"}}));
  EXPECT_TRUE(watch.live());
  ASSERT_TRUE(config.erase("db.host"));
  const auto erased = watch.next_until(soon());
  ASSERT_TRUE(erased) << erased.error().message();
  EXPECT_TRUE(erased->erased());
  EXPECT_EQ(erased->key(), "db.host");
  EXPECT_EQ(config.value("db.host").error(), Errc::not_found);
  EXPECT_EQ(*config.keys("db.*"), std::vector<std::string>{"db.port"});
  ASSERT_TRUE(config.create("db.host", "anew")) << "an erased key has no value";
  for (const char* key : {"", ".", "a..b", ".a"}) {
    EXPECT_EQ(config.put(key, "x").error(), Errc::invalid_argument) << key;
  }
  EXPECT_EQ(one.key_value("a.b").error(), Errc::invalid_argument);
}

TEST_F(Kept, ManyKeysComeInPages) {
  Topics topics = fleet_.open(context_);
  KeyValue kv = *topics.key_value("many", {.survives = Survives::nothing});
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(kv.put("k" + std::to_string(i), "x"));
  }
  const auto keys = kv.keys();
  ASSERT_TRUE(keys) << keys.error().message();
  EXPECT_EQ(keys->size(), 1000u);
  EXPECT_TRUE(std::is_sorted(keys->begin(), keys->end()));
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

TEST_F(Kept, ASpaceAndAnotherSeparatorStayTheProgramsOwn) {
  TopicsOptions options = fleet_.options();
  options.space = "prod";
  options.separator = ':';
  Topics topics = fleet_.open(context_, options);
  Stream s = *topics.stream({.name = "players", .topics = {"player:>"}});
  EXPECT_EQ(s.name(), "prod.players");
  ASSERT_TRUE(s.publish("player:1", "x"));
  EXPECT_EQ(s.read({.filter = "player:*"})->next_until(soon())->topic(), "player:1");
  KeyValue kv = *topics.key_value("config");
  ASSERT_TRUE(kv.put("a.b", "x"));
  EXPECT_EQ(kv.value("a.b")->key(), "a.b");
  EXPECT_EQ(*kv.keys(), std::vector<std::string>{"a.b"});
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

TEST_F(Kept, AHandleThatClosesEndsItsStreams) {
  auto topics = std::make_unique<Topics>(fleet_.open(context_));
  Stream s = *topics->stream({.name = "s"});
  Consumer c = *s.consumer("c");
  std::thread waiting([&] { EXPECT_EQ(c.next().error(), Errc::closed); });
  topics.reset();
  waiting.join();
  EXPECT_EQ(s.publish("a", "x").error(), Errc::closed);
}

}  // namespace
}  // namespace weft::topic
