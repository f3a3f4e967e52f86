// SPDX-License-Identifier: MIT
// The cases of kept topics that each engine passes: the hub of a local fleet, and JetStream of a fleet on NATS. Each
// stream names its topics and the fault that it survives, because the defaults are a hub's. kept_test.cc has those of
// a hub.
#include <algorithm>
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

class EachKept : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (fleet_.missing() != nullptr) {
      GTEST_SKIP() << fleet_.missing();
    }
  }

  TestFleet fleet_{GetParam(), true};
  Context context_;
};
WEFT_ON_FLEETS(EachKept, kKeptFleets);

TEST_P(EachKept, AHandleKeepsWhatAnotherOneReads) {
  Topics one = fleet_.open(context_);
  Topics two = fleet_.open(context_);
  auto orders = one.stream({.name = "orders", .topics = {"orders.>"}, .survives = Survives::process});
  ASSERT_TRUE(orders) << orders.error().message();
  EXPECT_EQ(orders->publish("orders.eu.17", "first", {.id = "17"})->sequence, 1u);
  EXPECT_TRUE(orders->publish("orders.eu.17", "first", {.id = "17"})->duplicate);
  EXPECT_EQ(orders->publish("px.a", "not of the stream").error(), Errc::invalid_argument);
  Stream same = *two.stream({.name = "orders", .topics = {"orders.>"}, .survives = Survives::process});
  Reader reader = *same.read({.filter = "orders.eu.>"});
  EXPECT_EQ(reader.next_until(soon())->text(), "first");
  EXPECT_FALSE(reader.next_stored()->has_value());
  EXPECT_TRUE(reader.live());
  ASSERT_TRUE(orders->publish("orders.us.1", "other"));
  ASSERT_TRUE(orders->publish("orders.eu.1", "second"));
  EXPECT_EQ(reader.next_until(soon())->text(), "second");
  EXPECT_EQ(same.info()->next, 4u);
}

TEST_P(EachKept, EachCauseOfAConflictHasItsOwnText) {
  Topics topics = fleet_.open(context_);
  Stream log = *topics.stream({.name = "log", .topics = {"log.>"}, .survives = Survives::process});
  ASSERT_TRUE(log.publish("log.a", "1"));
  KeyValue bucket = *topics.key_value("b", {.survives = Survives::process});
  ASSERT_TRUE(bucket.put("k", "1"));
  Stream work =
      *topics.stream({.name = "work", .topics = {"work.>"}, .keep = Keep::work, .survives = Survives::process});
  ASSERT_TRUE(work.consumer("one"));
  ASSERT_TRUE(log.consumer("c"));
  const Error errors[] = {
      log.publish("log.a", "2", {.expect_last = 7}).error(),
      log.publish("log.a", "2", {.expect_last = 1, .expect_instance = 7}).error(),
      bucket.create("k", "2").error(),
      topics
          .stream({.name = "log", .topics = {"log.>"}, .survives = Survives::process, .age_max = std::chrono::hours(1)})
          .error(),
      work.consumer("two").error(),
      log.consumer("c", {.unacked_max = 7}).error()};
  std::set<std::string> texts;
  for (const Error& error : errors) {
    EXPECT_EQ(error, Errc::conflict);
    texts.emplace(error.text());
  }
  EXPECT_EQ(texts.size(), std::size(errors));
}

TEST_P(EachKept, AWorkQueueSharesItsMessagesAndGivesBackWhatWaits) {
  Topics topics = fleet_.open(context_);
  Stream jobs =
      *topics.stream({.name = "jobs", .topics = {"jobs.>"}, .keep = Keep::work, .survives = Survives::process});
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(jobs.publish("jobs.a", std::to_string(i)));
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

TEST_P(EachKept, WorkersThatWaitShareTheJobs) {
  Topics topics = fleet_.open(context_);
  Stream jobs =
      *topics.stream({.name = "jobs", .topics = {"jobs.>"}, .keep = Keep::work, .survives = Survives::nothing});
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

TEST_P(EachKept, AReaderOfLargeMessagesWithSmallQueuesReadsAllOfThem) {
  Topics topics = fleet_.open(context_);
  Stream stream = *topics.stream({.name = "s", .topics = {"a"}, .survives = Survives::nothing});
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

TEST_P(EachKept, ADeclarationThatSaysSoMovesAConsumerToASequenceOrATime) {
  Topics topics = fleet_.open(context_);
  Topics others = fleet_.open(context_);
  Stream s = *topics.stream({.name = "s", .topics = {"s.>"}, .survives = Survives::process});
  for (const char* body : {"1", "2", "3", "4"}) {
    ASSERT_TRUE(s.publish("s.a", body));
  }
  Stream same = *others.stream({.name = "s", .topics = {"s.>"}, .survives = Survives::process});
  Consumer stays = *same.consumer("c", {.from = From::sequence(4)});
  EXPECT_EQ(stays.next_until(soon())->text(), "4");
  EXPECT_EQ(s.consumer("c").error(), Errc::conflict);
  EXPECT_EQ(s.consumer("c", {.filter = "s.b", .redeclare = true}).error(), Errc::not_supported);
  const WallTime second = s.message(2)->time();
  const bool as_first = s.message(1)->time() == second;
  Consumer moved = *s.consumer("c", {.from = From::time(second), .redeclare = true});
  std::set<std::string> got;
  const std::set<std::string> expected = {"2", "3", "4"};
  for (const Instant end = soon(); got != expected && sys::now() < end;) {
    for (Consumer* member : {&moved, &stays}) {  // each of them is a member of the moved consumer
      if (auto delivery = member->next_until(sys::now() + 10ms)) {
        if (!as_first || delivery->text() != "1") {
          got.emplace(delivery->text());
        }
        delivery->ack();
      }
    }
  }
  EXPECT_EQ(got, expected);
  ASSERT_TRUE(s.publish("s.a", "5"));
  Consumer at_end = *s.consumer("c", {.from = From::next(), .redeclare = true});
  ASSERT_TRUE(s.publish("s.a", "6"));
  moved.close();
  stays.close();
  std::string last;
  for (const Instant end = soon(); last != "6" && sys::now() < end;) {
    if (auto delivery = at_end.next_until(sys::now() + 10ms)) {
      last = delivery->text();
      delivery->ack();
    }
  }
  EXPECT_EQ(last, "6");
}

TEST_P(EachKept, ADeclarationThatSaysSoChangesAConsumerOrABucket) {
  Topics topics = fleet_.open(context_);
  Stream s = *topics.stream({.name = "s", .topics = {"a"}, .survives = Survives::nothing});
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

TEST_P(EachKept, ABucketHasRevisionsKeysAndAWatch) {
  Topics one = fleet_.open(context_);
  Topics two = fleet_.open(context_);
  KeyValue config = *one.key_value("config", {.survives = Survives::process});
  KeyValue same = *two.key_value("config", {.survives = Survives::process});
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

TEST_P(EachKept, ManyKeysComeInPages) {
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

TEST_P(EachKept, ASpaceAndAnotherSeparatorStayTheProgramsOwn) {
  TopicsOptions options = fleet_.options();
  options.space = "prod";
  options.separator = ':';
  Topics topics = fleet_.open(context_, options);
  Stream s = *topics.stream({.name = "players", .topics = {"player:>"}, .survives = Survives::process});
  EXPECT_EQ(s.name(), "prod.players");
  ASSERT_TRUE(s.publish("player:1", "x"));
  EXPECT_EQ(s.read({.filter = "player:*"})->next_until(soon())->topic(), "player:1");
  KeyValue kv = *topics.key_value("config", {.survives = Survives::process});
  ASSERT_TRUE(kv.put("a.b", "x"));
  EXPECT_EQ(kv.value("a.b")->key(), "a.b");
  EXPECT_EQ(*kv.keys(), std::vector<std::string>{"a.b"});
}

TEST_P(EachKept, AHandleThatClosesEndsItsStreams) {
  auto topics = std::make_unique<Topics>(fleet_.open(context_));
  Stream s = *topics->stream({.name = "s", .topics = {"a"}, .survives = Survives::process});
  Consumer c = *s.consumer("c");
  std::thread waiting([&] { EXPECT_EQ(c.next().error(), Errc::closed); });
  topics.reset();
  waiting.join();
  EXPECT_EQ(s.publish("a", "x").error(), Errc::closed);
}

TEST_P(EachKept, AReaderBeginsWhereItIsTold) {
  Topics topics = fleet_.open(context_);
  Stream s = *topics.stream({.name = "s", .topics = {"s.>"}, .survives = Survives::process});
  for (int i = 1; i <= 5; ++i) {
    ASSERT_TRUE(s.publish(i % 2 == 0 ? "s.even" : "s.odd", std::to_string(i)));
  }
  const WallTime third = s.message(3)->time();
  const auto first_of = [&](const ReadOptions& options) {
    auto reader = s.read(options);
    EXPECT_TRUE(reader) << reader.error().message();
    auto message = reader->next_until(soon());
    EXPECT_TRUE(message) << message.error().message();
    return std::string(message->text());
  };
  EXPECT_EQ(first_of({}), "1");
  EXPECT_EQ(first_of({.filter = "s.even"}), "2");
  EXPECT_EQ(first_of({.from = From::sequence(4)}), "4");
  EXPECT_EQ(first_of({.from = From::time(third)}), "3");
  EXPECT_EQ(first_of({.from = From::last()}), "5");
  EXPECT_EQ(first_of({.filter = "s.even", .from = From::last()}), "4");
  EXPECT_EQ(first_of({.from = From::last_per_topic()}), "4");
  Reader fresh = *s.read({.from = From::next()});
  EXPECT_FALSE(fresh.next_stored()->has_value());
  ASSERT_TRUE(s.publish("s.odd", "6"));
  EXPECT_EQ(fresh.next_until(soon())->text(), "6");
}

TEST_P(EachKept, AStreamKeepsIdsHeadersAndTimes) {
  Topics topics = fleet_.open(context_);
  Stream s = *topics.stream({.name = "s", .topics = {"s.>"}, .survives = Survives::process});
  Headers headers;
  ASSERT_TRUE(headers.add("traceparent", "00-1"));
  ASSERT_TRUE(s.publish("s.a", "x", {.id = "one", .headers = headers.block()}));
  ASSERT_TRUE(s.publish("s.b", "y"));
  Reader reader = *s.read();
  const KeptMessage first = *reader.next_until(soon());
  EXPECT_EQ(first.id(), "one");
  EXPECT_EQ(first.headers(), headers.block());
  EXPECT_EQ(first.topic(), "s.a");
  EXPECT_FALSE(first.erased());
  const KeptMessage second = *reader.next_until(soon());
  EXPECT_FALSE(second.id().empty()) << "the handle's own";
  EXPECT_EQ(second.headers(), "");
  EXPECT_GE(second.time(), first.time());
  const KeptMessage again = *s.message(1);
  EXPECT_EQ(again.id(), "one");
  EXPECT_EQ(again.headers(), headers.block());
  EXPECT_EQ(again.time(), first.time());
  EXPECT_EQ(s.message(7).error(), Errc::not_found);
  EXPECT_EQ(s.newest("s.none").error(), Errc::not_found);
}

TEST_P(EachKept, ADeliveryIsAcknowledgedRefusedOrRejected) {
  Topics topics = fleet_.open(context_);
  Stream s = *topics.stream({.name = "s", .topics = {"s.>"}, .survives = Survives::process});
  for (const char* body : {"ack", "retry", "reject"}) {
    ASSERT_TRUE(s.publish("s.a", body));
  }
  Consumer c = *s.consumer("c", {.retry_waits = {Duration(std::chrono::milliseconds(1))}});
  Delivery ack = *c.next_until(soon());
  Delivery retry = *c.next_until(soon());
  Delivery reject = *c.next_until(soon());
  EXPECT_EQ(ack.text(), "ack");
  EXPECT_EQ(retry.tries(), 0u);
  ack.ack();
  reject.reject("why");
  retry.working();
  retry.retry();
  Delivery again = *c.next_until(soon());
  EXPECT_EQ(again.text(), "retry");
  EXPECT_EQ(again.tries(), 1u);
  EXPECT_TRUE(again.ack_confirmed());
  const auto info = s.info();
  ASSERT_EQ(info->consumers.size(), 1u);
  EXPECT_EQ(info->consumers.at(0).waiting, 0u);
  EXPECT_EQ(info->consumers.at(0).floor, 4u);
}

TEST_P(EachKept, WhatNobodyAcknowledgesComesAgainToAnother) {
  Topics topics = fleet_.open(context_);
  Stream s = *topics.stream({.name = "s", .topics = {"s.>"}, .survives = Survives::process});
  ASSERT_TRUE(s.publish("s.a", "x"));
  Consumer one = *s.consumer("c", {.ack_wait = 200ms});
  Delivery kept = *one.next_until(soon());
  Consumer two = *s.consumer("c", {.ack_wait = 200ms});
  // Either member may get it.
  Result<Delivery> again = Errc::would_block;
  for (const Instant end = soon(); !again && sys::now() < end;) {
    again = two.next_until(sys::now() + 20ms);
    again = again ? std::move(again) : one.try_next();
  }
  ASSERT_TRUE(again) << again.error().message();
  EXPECT_EQ(again->sequence(), kept.sequence());
  EXPECT_EQ(again->tries(), 1u);
}

TEST_P(EachKept, AStreamRefusesAppendsOfAnotherLife) {
  Topics topics = fleet_.open(context_);
  const StreamOptions declared{.name = "s", .topics = {"s.>"}, .survives = Survives::process};
  Stream s = *topics.stream(declared);
  const Published old = *s.publish("s.a", "1");
  ASSERT_TRUE(s.remove());
  EXPECT_EQ(s.publish("s.a", "2").error(), Errc::not_found);
  Stream anew = *topics.stream(declared);
  EXPECT_EQ(anew.publish("s.a", "1")->sequence, 1u);
  EXPECT_EQ(anew.publish("s.a", "2", {.expect_last = 1, .expect_instance = old.instance}).error(), Errc::conflict);
  EXPECT_TRUE(anew.publish("s.a", "2", {.expect_last = 1}));
}

TEST_P(EachKept, MessagesThatArePurgedAreGone) {
  Topics topics = fleet_.open(context_);
  Stream s = *topics.stream({.name = "s", .topics = {"s.>"}, .survives = Survives::process});
  for (int i = 1; i <= 4; ++i) {
    ASSERT_TRUE(s.publish(i % 2 == 0 ? "s.even" : "s.odd", std::to_string(i)));
  }
  ASSERT_TRUE(s.purge(3));
  EXPECT_EQ(s.read()->next_until(soon())->text(), "3");
  Stream latest = *topics.stream({.name = "l", .topics = {"l.>"}, .keep = Keep::latest, .survives = Survives::process});
  ASSERT_TRUE(latest.publish("l.a", "1"));
  ASSERT_TRUE(latest.publish("l.b", "2"));
  ASSERT_TRUE(latest.purge_topic("l.a"));
  EXPECT_EQ(latest.newest("l.a").error(), Errc::not_found);
  EXPECT_EQ(latest.newest("l.b")->text(), "2");
}

TEST_P(EachKept, ManyMessagesUnderWayKeepTheirOrder) {
  Topics topics = fleet_.open(context_);
  Stream s = *topics.stream({.name = "s", .topics = {"s.>"}, .survives = Survives::process});
  constexpr int kCount = 5000;
  std::vector<PendingPublish> pending;
  for (int i = 0; i < kCount; ++i) {
    pending.push_back(*s.publish_later("s.a", std::to_string(i)));
  }
  std::uint64_t last = 0;
  for (PendingPublish& each : pending) {
    const auto published = each.wait();
    ASSERT_TRUE(published) << published.error().message();
    EXPECT_EQ(published->sequence, ++last);
  }
  Reader reader = *s.read({.queue_messages_max = 64});
  for (int i = 0; i < kCount; ++i) {
    const auto message = reader.next_until(soon());
    ASSERT_TRUE(message) << i << ": " << message.error().message();
    ASSERT_EQ(message->text(), std::to_string(i));
  }
}

}  // namespace
}  // namespace weft::topic
