// SPDX-License-Identifier: MIT
// Kept topics of a fleet on NATS, with JetStream: the differences to a hub, and faults.
#include <cstdio>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/nats_server.h"
#include "tests/topic/nats_cluster.h"
#include "tests/topic/on_each_server.h"
#include "weft/sys/clock.h"
#include "weft/sys/path.h"
#include "weft/topic/jetstream/stream_settings.h"
#include "weft/topic/test_time.h"
#include "weft/topic/topics.h"
#include <gtest/gtest.h>

namespace weft::topic {
namespace {

using nats::test::NatsServer;

class KeptNats : public OnEachServer {
 protected:
  void SetUp() override {
    OnEachServer::SetUp();
    if (IsSkipped()) {
      return;
    }
    directory_ = *sys::make_private_directory();
    server_ = std::make_unique<NatsServer>("jetstream { store_dir: \"" + directory_ + "\" }\n" + extra(),
                                           std::vector<std::string>(), program_);
  }
  void TearDown() override {
    server_.reset();
    std::filesystem::remove_all(directory_);
  }
  [[nodiscard]] virtual std::string extra() const { return {}; }
  [[nodiscard]] TopicsOptions options() const {
    TopicsOptions options;
    options.fleet = server_->url();
    return options;
  }
  [[nodiscard]] Topics open() { return *Topics::open(context_, options()); }
  // The output of the command nats.
  std::string run_client(const std::string& words) {
    const std::string line = std::string(WEFT_NATS_CLIENT) + " --server " + server_->url() + " " + words + " 2>&1";
    std::string output;
    FILE* const pipe = ::popen(line.c_str(), "r");
    char bytes[512];
    for (std::size_t size = 0; (size = ::fread(bytes, 1, sizeof bytes, pipe)) != 0;) {
      output.append(bytes, size);
    }
    EXPECT_EQ(::pclose(pipe), 0) << words << ": " << output;
    return output;
  }

  std::string directory_;
  std::unique_ptr<NatsServer> server_;
  Context context_;
};
INSTANTIATE_TEST_SUITE_P(Servers, KeptNats, testing::Values("nats", "nats_current"),
                         [](const auto& kind) { return kind.param; });

TEST_P(KeptNats, AStreamKeepsWhatWasAcknowledged) {
  Topics topics = open();
  const StreamOptions declared{.name = "orders", .topics = {"orders.>"}, .survives = Survives::process};
  auto orders = topics.stream(declared);
  ASSERT_TRUE(orders) << orders.error().message();
  EXPECT_EQ(orders->survives(), Survives::process);
  const auto first = orders->publish("orders.eu.17", "first", {.id = "17"});
  ASSERT_TRUE(first) << first.error().message();
  EXPECT_EQ(first->sequence, 1u);
  const auto again = orders->publish("orders.eu.17", "first", {.id = "17"});
  ASSERT_TRUE(again) << again.error().message();
  EXPECT_TRUE(again->duplicate);
  EXPECT_EQ(again->sequence, 1u);
  EXPECT_EQ(orders->publish("px.a", "not of the stream").error(), Errc::invalid_argument);
  EXPECT_EQ(orders->publish("orders.eu.17", "x", {.expect_last = 7}).error(), Errc::conflict);
  EXPECT_EQ(orders->publish("orders.eu.17", "x", {.expect_last = 1, .expect_instance = 7}).error(), Errc::conflict);
  EXPECT_EQ(orders->publish("orders.eu.17", "second", {.expect_last = 1})->sequence, 2u);
  const auto info = orders->info();
  ASSERT_TRUE(info) << info.error().message();
  EXPECT_EQ(info->first, 1u);
  EXPECT_EQ(info->next, 3u);
  EXPECT_EQ(info->settings.topics, std::vector<std::string>{"orders.>"});
  EXPECT_NE(info->instance, 0u);
  const auto newest = orders->newest("orders.eu.17");
  ASSERT_TRUE(newest) << newest.error().message();
  EXPECT_EQ(newest->text(), "second");
  EXPECT_EQ(newest->topic(), "orders.eu.17");
  EXPECT_EQ(newest->sequence(), 2u);
}

// A setting that the servers do not keep is refused at once, with a text that names it.
TEST_P(KeptNats, WhatJetStreamDoesNotKeepIsRefused) {
  Topics topics = open();
  const auto refused = [&](const StreamOptions& options, std::string_view word) {
    const auto stream = topics.stream(options);
    EXPECT_EQ(stream.error(), Errc::not_supported) << word;
    EXPECT_NE(stream.error().message().find(word), std::string::npos) << stream.error().message();
  };
  refused({.name = "s", .topics = {"s.>"}}, "survives");
  refused({.name = "s", .survives = Survives::process}, "topics");
  refused({.name = "s", .topics = {"s.>"}, .survives = Survives::machine}, "copies");
  refused({.name = "s", .topics = {"s.>"}, .survives = Survives::process, .same_id_window = Duration(1)},
          "same_id_window");
  refused({.name = "kv.s", .topics = {"s.>"}, .survives = Survives::process}, "bucket");
  EXPECT_EQ(topics.key_value("b").error(), Errc::not_supported);
  Stream work = *topics.stream({.name = "w", .topics = {"w.>"}, .keep = Keep::work, .survives = Survives::process});
  EXPECT_EQ(work.read().error(), Errc::not_supported);
  EXPECT_EQ(work.consumer("c", {.tries_max = 3}).error(), Errc::not_supported);
  EXPECT_EQ(topics.stream({.name = "other", .topics = {"w.a"}, .survives = Survives::process}).error(),
            Errc::invalid_argument)
      << "a subject has one stream";
}

TEST(ServerVersions, TimesToLiveAndPrioritiesAreThoseOfServersThatKeepThem) {
  for (const char* version : {"2.11.3", "2.11.10", "2.12.0", "2.15.2", "3.0.0", "2.12.0-RC.1", "2.12"}) {
    EXPECT_TRUE(ends_messages(version)) << version;
  }
  for (const char* version :
       {"", ".", "...", "2", "2.", "2.9.10", "2.11", "2.11.2", "2.11.0-preview.2", "1.12.9", "x.y"}) {
    EXPECT_FALSE(ends_messages(version)) << version;
  }
  EXPECT_TRUE(takes_priorities("2.12.0"));
  EXPECT_FALSE(takes_priorities("2.11.11"));
}

TEST_P(KeptNats, AStreamThatWasMadeWithoutTimesToLiveGetsThemByADeclarationThatChangesIt) {
  if (!std::filesystem::exists(WEFT_NATS_CLIENT)) {
    GTEST_SKIP() << "there is no nats: deps/setup.sh tests builds it with Go";
  }
  const std::string made = run_client(
      "request '$JS.API.STREAM.CREATE.old' '{\"name\":\"old\",\"subjects\":[\"old.>\"],\"max_bytes\":1073741824,"
      "\"num_replicas\":1}'");
  Topics topics = open();
  StreamOptions declared{.name = "old", .topics = {"old.>"}, .survives = Survives::process};
  auto old = topics.stream(declared);
  ASSERT_TRUE(old) << old.error().message() << made;
  const auto refused = old->publish("old.a", "x", {.time_to_live = 1s});
  EXPECT_EQ(refused.error(), Errc::not_supported);
  EXPECT_NE(std::string(refused.error().text()).find("declared"), std::string::npos) << refused.error().message();
  declared.redeclare = true;
  old = topics.stream(declared);
  ASSERT_TRUE(old) << old.error().message();
  EXPECT_EQ(old->publish("old.a", "x", {.time_to_live = 1s}).has_value(), GetParam() == "nats_current");
  // A change of another setting does not take them back.
  declared.age_max = std::chrono::hours(1);
  old = topics.stream(declared);
  ASSERT_TRUE(old) << old.error().message();
  EXPECT_EQ(old->publish("old.a", "x", {.time_to_live = 1s}).has_value(), GetParam() == "nats_current");
  // Nor does a bucket that gets a history, which has no times to live.
  KeyValueOptions bucket{.survives = Survives::process};
  ASSERT_TRUE(topics.key_value("b", bucket));
  bucket.history = 3;
  bucket.redeclare = true;
  auto past = topics.key_value("b", bucket);
  ASSERT_TRUE(past) << past.error().message();
  EXPECT_EQ(past->put("k", "x", {.time_to_live = 1s}).error(), Errc::not_supported);
  EXPECT_TRUE(past->put("k", "x"));
}

TEST_P(KeptNats, AFullStreamRefusesAndTakesAgainWhenThereIsRoom) {
  Topics topics = open();
  const std::string body(1000, 'x');
  Stream jobs = *topics.stream(
      {.name = "jobs", .topics = {"jobs.>"}, .keep = Keep::work, .survives = Survives::process, .bytes_max = 64 << 10});
  int taken = 0;
  auto published = jobs.publish("jobs.a", body);
  for (; published && taken < 100; published = jobs.publish("jobs.a", body)) {
    ++taken;
  }
  EXPECT_EQ(published.error(), Errc::resource_exhausted) << taken;
  Consumer consumer = *jobs.consumer("c");
  for (int i = 0; i < taken; ++i) {
    auto job = consumer.next_until(soon());
    ASSERT_TRUE(job) << job.error().message();
    const auto done = job->ack_confirmed();
    ASSERT_TRUE(done) << done.error().message();
  }
  const auto again = jobs.publish("jobs.a", body);
  EXPECT_TRUE(again) << again.error().message();
}

TEST_P(KeptNats, NothingAcknowledgedIsLostWhenTheServerIsKilled) {
  Topics topics = open();
  Stream s = *topics.stream({.name = "s", .topics = {"s.>"}, .survives = Survives::process});
  Reader reader = *s.read();
  std::vector<PendingPublish> pending;
  constexpr int kCount = 3000;
  for (int i = 0; i < kCount; ++i) {
    if (i == kCount / 2) {
      ASSERT_TRUE(pending.front().wait());
      server_->restart();
    }
    auto sent = s.publish_later("s.a", std::to_string(i));
    ASSERT_TRUE(sent) << sent.error().message();
    pending.push_back(*std::move(sent));
  }
  std::set<std::string> acknowledged;
  for (int i = 0; i < kCount; ++i) {
    const auto published = pending[static_cast<std::size_t>(i)].wait();
    ASSERT_TRUE(published) << i << ": " << published.error().message();
    acknowledged.insert(std::to_string(i));
  }
  std::set<std::string> seen;
  std::uint64_t last = 0;
  while (seen.size() < acknowledged.size()) {
    const auto message = reader.next_until(soon());
    ASSERT_TRUE(message) << seen.size() << ": " << message.error().message();
    EXPECT_GT(message->sequence(), last);
    last = message->sequence();
    EXPECT_TRUE(seen.insert(std::string(message->text())).second) << "stored twice: " << message->text();
  }
  EXPECT_EQ(seen, acknowledged);
}

TEST_P(KeptNats, CallsEndAtTheirDeadlinesWhileTheServerIsPaused) {
  Topics topics = open();
  Stream s = *topics.stream({.name = "s", .topics = {"s.>"}, .survives = Survives::process});
  ASSERT_TRUE(s.publish("s.a", "before", {.id = "1"}));
  Consumer c = *s.consumer("c");
  ASSERT_TRUE(c.next_until(soon())->ack_confirmed());
  server_->pause();
  const Instant begin = sys::now();
  EXPECT_EQ(s.publish("s.a", "while", {.id = "2", .deadline = begin + 300ms}).error(), Errc::outcome_unknown);
  EXPECT_EQ(c.next_until(begin + 400ms).error(), Errc::timed_out);
  EXPECT_LT(sys::now() - begin, 10s);
  server_->resume();
  const auto again = s.publish("s.a", "while", {.id = "2"});
  ASSERT_TRUE(again) << again.error().message();
  EXPECT_EQ(again->sequence, 2u);
  EXPECT_EQ(c.next_until(soon())->text(), "while");
}

TEST_P(KeptNats, AStreamThatIsRemovedEndsItsReadersAndConsumers) {
  Topics topics = open();
  Stream s = *topics.stream({.name = "s", .topics = {"s.>"}, .survives = Survives::process});
  Reader reader = *s.read();
  Consumer consumer = *s.consumer("c");
  ASSERT_TRUE(s.remove());
  EXPECT_EQ(reader.next_until(soon()).error(), Errc::not_found);
  EXPECT_EQ(consumer.next_until(soon()).error(), Errc::not_found);
}

// A subscriber takes the messages of a stream that is gone, and so the servers do not refuse them.
TEST_P(KeptNats, AnAppendToAStreamThatIsGoneIsRefusedAlsoWhereAProgramSubscribes) {
  Topics topics = open();
  Topics others = open();
  Stream s = *topics.stream({.name = "s", .topics = {"s.>"}, .survives = Survives::process});
  ASSERT_TRUE(s.publish("s.a", "1"));
  Subscription subscription = *others.subscribe("s.>");
  ASSERT_TRUE(others.sync(soon()));
  Stream same = *others.stream({.name = "s", .topics = {"s.>"}, .survives = Survives::process});
  ASSERT_TRUE(same.remove());
  EXPECT_EQ(s.publish("s.a", "2").error(), Errc::not_found);
  EXPECT_EQ(subscription.next_until(soon())->text(), "2");
}

TEST_P(KeptNats, AQueueThatStandsStillIsSharedWithAMemberThatWaits) {
  Topics topics = open();
  Topics others = open();
  Stream s = *topics.stream({.name = "s", .topics = {"s.>"}, .keep = Keep::work, .survives = Survives::process});
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(s.publish("s.a", std::to_string(i)));
  }
  Consumer busy = *s.consumer("c");
  Delivery first = *busy.next_until(soon());
  Stream same = *others.stream({.name = "s", .topics = {"s.>"}, .keep = Keep::work, .survives = Survives::process});
  Consumer waits = *same.consumer("c");
  const auto shared = waits.next_until(soon());
  ASSERT_TRUE(shared) << shared.error().message();
  EXPECT_NE(shared->sequence(), first.sequence());
}

TEST_P(KeptNats, OtherClientsShareAConsumerForWhichNoMemberNamedAPriority) {
  if (!std::filesystem::exists(WEFT_NATS_CLIENT)) {
    GTEST_SKIP() << "there is no nats: deps/setup.sh tests builds it with Go";
  }
  Topics topics = open();
  Stream s = *topics.stream({.name = "s", .topics = {"s.>"}, .survives = Survives::process});
  ASSERT_TRUE(s.consumer("c"));
  ASSERT_TRUE(s.publish("s.a", "of the other client"));
  EXPECT_NE(run_client("consumer next s c --raw").find("of the other client"), std::string::npos);
}

TEST_P(KeptNats, MembersKeepTheirPrioritiesWhenTheServerIsKilled) {
  if (GetParam() == "nats") {
    return;  // none of its consumers has priorities
  }
  Topics topics = open();
  Topics others = open();
  const StreamOptions declared{.name = "s", .topics = {"s.>"}, .survives = Survives::process};
  Stream s = *topics.stream(declared);
  Stream same = *others.stream(declared);
  Consumer next = *same.consumer("c", {.priority = 3});
  Consumer first = *s.consumer("c", {.priority = 2});
  server_->restart();
  const Instant end = soon();
  for (bool served = false; !served;) {
    ASSERT_TRUE(s.publish("s.a", "x"));
    served = first.next_until(sys::now() + 20ms).has_value();
    ASSERT_LT(sys::now(), end);
  }
  for (int i = 0; i < 50; ++i) {
    ASSERT_TRUE(s.publish("s.a", std::to_string(i)));
    auto got = first.next_until(soon());
    while (got && got->text() == "x") {
      got = first.next_until(soon());
    }
    ASSERT_TRUE(got) << i << ": " << got.error().message();
    EXPECT_EQ(got->text(), std::to_string(i));
  }
  for (auto got = next.try_next(); got; got = next.try_next()) {
    EXPECT_EQ(got->text(), "x");
  }
}

// Another program set a group of its own.
TEST_P(KeptNats, MembersTakePartInAGroupThatAnotherClientNamed) {
  if (!std::filesystem::exists(WEFT_NATS_CLIENT)) {
    GTEST_SKIP() << "there is no nats: deps/setup.sh tests builds it with Go";
  }
  if (GetParam() == "nats") {
    return;  // no such consumers
  }
  Topics topics = open();
  Stream s = *topics.stream({.name = "s", .topics = {"s.>"}, .survives = Survives::process});
  const std::string made = run_client(
      "request '$JS.API.CONSUMER.CREATE.s.c' '{\"stream_name\":\"s\",\"config\":{\"name\":\"c\",\"durable_name\":"
      "\"c\",\"ack_policy\":\"explicit\",\"deliver_policy\":\"all\",\"priority_policy\":\"prioritized\","
      "\"priority_groups\":[\"jobs\"]}}'");
  auto first = s.consumer("c");
  ASSERT_TRUE(first) << first.error().message() << made;
  ASSERT_TRUE(s.publish("s.a", "1"));
  EXPECT_EQ(first->next_until(soon())->text(), "1");
  Consumer last = *s.consumer("c", {.priority = 4});
  ASSERT_TRUE(s.publish("s.a", "2"));
  EXPECT_EQ(first->next_until(soon())->text(), "2");
  EXPECT_EQ(last.try_next().error(), Errc::would_block);
}

// A message in the queue of a handle is neither tried nor given to another member while its ack_wait passes.
TEST_P(KeptNats, AMessageWaitsInAQueueForLongerThanItsAckWait) {
  Topics topics = open();
  Stream s = *topics.stream({.name = "s", .topics = {"s.>"}, .survives = Survives::process});
  constexpr auto kAckWait = 1500ms;
  for (const char* body : {"1", "2"}) {
    ASSERT_TRUE(s.publish("s.a", body));
  }
  Consumer c = *s.consumer("c", {.ack_wait = kAckWait});
  Delivery first = *c.next_until(soon());
  Reader nothing = *s.read({.from = From::next()});
  for (int i = 0; i < 10; ++i) {
    first.working();
    EXPECT_EQ(nothing.next_until(sys::now() + kAckWait / 4).error(), Errc::timed_out);
  }
  first.ack();
  Delivery second = *c.next_until(soon());
  EXPECT_EQ(second.text(), "2");
  EXPECT_EQ(second.tries(), 0u);
  EXPECT_TRUE(second.ack_confirmed());
  EXPECT_EQ(topics.kept_statistics().dropped_doubles, 0u) << "the server did not deliver it again";
}

TEST_P(KeptNats, OtherClientsSeeTheSameKeys) {
  if (!std::filesystem::exists(WEFT_NATS_CLIENT)) {
    GTEST_SKIP() << "there is no nats: deps/setup.sh tests builds it with Go";
  }
  const auto run = [&](const std::string& words) { return run_client("kv " + words); };
  Topics topics = open();
  KeyValue config = *topics.key_value("config", {.history = 3, .survives = Survives::process});
  ASSERT_TRUE(config.put("db.host", "a"));
  EXPECT_EQ(run("get config db.host --raw").substr(0, 1), "a");
  (void)run("put config db.host b");
  const auto value = config.value("db.host");
  ASSERT_TRUE(value) << value.error().message();
  EXPECT_EQ(value->text(), "b");
  KeyValueWatch watch = *config.watch("db.*", true);
  EXPECT_EQ(watch.next_until(soon())->text(), "a");
  EXPECT_EQ(watch.next_until(soon())->text(), "b");
  (void)run("del config db.host --force");
  const auto erased = watch.next_until(soon());
  ASSERT_TRUE(erased) << erased.error().message();
  EXPECT_TRUE(erased->erased());
  EXPECT_EQ(config.value("db.host").error(), Errc::not_found);
  EXPECT_TRUE(config.create("db.host", "anew"));
  EXPECT_EQ(*config.keys(), std::vector<std::string>{"db.host"});
}

TEST_P(KeptNats, AnAcknowledgementToAConsumerThatIsGoneIsRefused) {
  Topics topics = open();
  Stream s = *topics.stream({.name = "s", .topics = {"s.>"}, .survives = Survives::process});
  ASSERT_TRUE(s.publish("s.a", "x"));
  Consumer consumer = *s.consumer("c");
  auto delivery = consumer.next_until(soon());
  ASSERT_TRUE(delivery) << delivery.error().message();
  ASSERT_TRUE(s.remove_consumer("c"));
  EXPECT_EQ(delivery->ack_confirmed().error(), Errc::not_found);
}

// A server reports that no message is left for a reader, and has some: here because its consumer begins elsewhere.
TEST_P(KeptNats, AReaderGetsTheMessagesThatItsServerForgets) {
  Topics topics = open();
  Stream s = *topics.stream({.name = "s", .topics = {"s.>"}, .survives = Survives::process});
  Reader reader = *s.read({.filter = "s.*", .queue_messages_max = 1});
  ASSERT_TRUE(s.publish("s.a", "1"));
  const std::string names = ask_server(*server_, "$JS.API.CONSUMER.NAMES.s");
  const std::size_t begin = names.find("weft-");
  ASSERT_NE(begin, std::string::npos) << names;
  const std::string name = names.substr(begin, names.find('"', begin) - begin);
  std::string info;
  for (const Instant end = soon(); info.find("\"delivered\":{\"consumer_seq\":1,") == std::string::npos;) {
    ASSERT_LT(sys::now(), end) << info;
    info = ask_server(*server_, "$JS.API.CONSUMER.INFO.s." + name);
  }
  // The reader has a message in its queue, and no request at the server.
  EXPECT_NE(ask_server(*server_, "$JS.API.CONSUMER.DELETE.s." + name).find("true"), std::string::npos);
  ASSERT_TRUE(s.publish("s.a", "2"));
  const std::string made = ask_server(*server_, "$JS.API.CONSUMER.CREATE.s." + name,
                                      R"({"stream_name":"s","config":{"name":")" + name +
                                          R"(","deliver_policy":"new","ack_policy":"none","mem_storage":true}})");
  EXPECT_NE(made.find("\"num_pending\":0"), std::string::npos) << made;
  for (const char* expected : {"1", "2"}) {
    const auto message = reader.next_until(sys::now() + 60s);
    ASSERT_TRUE(message) << message.error().message();
    EXPECT_EQ(message->text(), expected);
  }
}

class KeptNatsOther : public KeptNats {};
INSTANTIATE_TEST_SUITE_P(Servers, KeptNatsOther, testing::Values("nats", "nats_current"),
                         [](const auto& kind) { return kind.param; });

TEST_P(KeptNatsOther, ServersWithoutJetStreamAreToldApart) {
  server_->restart_with("");
  Topics topics = open();
  const auto stream = topics.stream({.name = "s", .topics = {"s.>"}, .survives = Survives::process});
  EXPECT_EQ(stream.error(), Errc::not_supported);
}

// A handle whose JetStream has answered before waits for it, longer than the 2 s after which a request to a server that
// never had one fails.
TEST_P(KeptNatsOther, MessagesWaitForAServerThatRunsWithoutJetStreamForAWhile) {
  Topics topics = open();
  Stream s = *topics.stream({.name = "s", .topics = {"s.>"}, .survives = Survives::process});
  ASSERT_TRUE(s.publish("s.a", "before"));
  Reader reader = *s.read();
  Consumer consumer = *s.consumer("c");
  EXPECT_EQ(reader.next_until(soon())->text(), "before");
  EXPECT_TRUE(consumer.next_until(soon())->ack_confirmed());
  server_->restart_with("");
  PendingPublish later = *s.publish_later("s.a", "later");
  Error why;
  for (const Instant end = soon(); why.message().find("JetStream does not answer") == std::string::npos;) {
    ASSERT_LT(sys::now(), end) << why.message();
    why = s.publish("s.a", "unknown", {.id = "unknown", .deadline = sys::now() + 3s}).error();
    ASSERT_EQ(why, Errc::outcome_unknown) << why.message();
  }
  EXPECT_EQ(why.message().find("hub"), std::string::npos) << why.message();
  server_->restart_with("jetstream { store_dir: \"" + directory_ + "\" }\n");
  const auto taken = later.wait();
  ASSERT_TRUE(taken) << taken.error().message();
  ASSERT_TRUE(s.publish("s.a", "unknown", {.id = "unknown"}));
  std::multiset<std::string> read;
  std::multiset<std::string> consumed;
  while (read.size() < 2) {
    const auto message = reader.next_until(soon());
    ASSERT_TRUE(message) << message.error().message();
    read.insert(std::string(message->text()));
  }
  while (consumed.size() < 2) {
    auto delivery = consumer.next_until(soon());
    ASSERT_TRUE(delivery) << delivery.error().message();
    consumed.insert(std::string(delivery->text()));
    EXPECT_TRUE(delivery->ack_confirmed());
  }
  EXPECT_EQ(read, (std::multiset<std::string>{"later", "unknown"}));
  EXPECT_EQ(consumed, read);
}

TEST_P(KeptNatsOther, AnAccountWithoutJetStreamIsTold) {
  const auto accounts = [&](const std::string& first) {
    return "jetstream { store_dir: \"" + directory_ + "\" }\naccounts { A { " + first +
           " users: [ { user: a, password: p } ] }, B { users: [ { user: b, password: p } ] } }\n";
  };
  const StreamOptions declared{.name = "s", .topics = {"s.>"}, .survives = Survives::process};
  const auto expect_told = [](const Error& error) {
    EXPECT_EQ(error, Errc::not_supported) << error.message();
    EXPECT_NE(error.message().find("JetStream not enabled for account"), std::string::npos) << error.message();
  };
  server_->restart_with(accounts("jetstream: enabled,"));
  TopicsOptions options = this->options();
  options.security.password = "p";
  options.security.user = "b";
  expect_told(Topics::open(context_, options)->stream(declared).error());
  options.security.user = "a";
  Topics topics = *Topics::open(context_, options);
  Stream s = *topics.stream(declared);
  ASSERT_TRUE(s.publish("s.a", "x"));
  server_->restart_with(accounts(""));
  expect_told(s.publish("s.a", "y").error());
}

TEST_P(KeptNatsOther, AUserWithoutThePermissionIsTold) {
  server_->restart_with("jetstream { store_dir: \"" + directory_ +
                        "\" }\nauthorization { users: [ { user: a, password: b, permissions: { publish: { deny: "
                        "[\"s.denied\", \"$JS.API.STREAM.DELETE.>\"] } } } ] }\n");
  TopicsOptions options = this->options();
  options.security.user = "a";
  options.security.password = "b";
  Topics topics = *Topics::open(context_, options);
  Stream s = *topics.stream({.name = "s", .topics = {"s.>"}, .survives = Survives::process});
  EXPECT_TRUE(s.publish("s.a", "x"));
  // A server names the refused subject, and sends no answer. To wait for one takes 2 s.
  constexpr int kTimes = 20;
  const Instant begin = sys::now();
  for (int i = 0; i < kTimes; ++i) {
    EXPECT_TRUE(s.publish("s.a", "x"));
    const Error published = s.publish("s.denied", "x").error();
    EXPECT_EQ(published, Errc::not_permitted);
    EXPECT_NE(published.message().find("s.denied"), std::string::npos) << published.message();
    const Error removed = s.remove().error();
    EXPECT_EQ(removed, Errc::not_permitted);
    EXPECT_NE(removed.message().find("STREAM.DELETE.s"), std::string::npos) << removed.message();
    if (GetParam() == "nats_current") {  // it takes batches
      const BatchMessage first[] = {{.topic = "s.denied"}, {.topic = "s.a"}};
      const BatchMessage last[] = {{.topic = "s.a"}, {.topic = "s.denied"}};
      for (const auto& batch : {first, last}) {
        const Error why = s.publish_all({batch, 2}).error();
        EXPECT_EQ(why, Errc::not_permitted) << why.message();
        EXPECT_NE(why.message().find("s.denied"), std::string::npos) << why.message();
      }
    }
  }
  EXPECT_EQ(s.info()->next, 2u + kTimes) << "no message of a batch is stored";
  EXPECT_LT(sys::now() - begin, kTimes * 1500ms) << "each refusal is told when it comes";
}

TEST_P(KeptNatsOther, AChannelEndsWhenItsRequestsOrItsAcknowledgementsAreRefused) {
  server_->restart_with("jetstream { store_dir: \"" + directory_ +
                        "\" }\nauthorization { users: [ { user: a, password: b, permissions: {\n"
                        "publish: { deny: [\"$JS.API.CONSUMER.MSG.NEXT.s.pulls\", \"$JS.ACK.s.acks.>\"] } } },\n"
                        "{ user: c, password: d, permissions: { subscribe: { deny: \"_INBOX.*.*.*\" } } },\n"
                        "{ user: e, password: f } ] }\n");
  const auto open_as = [&](const char* user, const char* password) {
    TopicsOptions options = this->options();
    options.security.user = user;
    options.security.password = password;
    return *Topics::open(context_, options);
  };
  Topics limited = open_as("a", "b");
  Topics silent = open_as("c", "d");
  Topics free = open_as("e", "f");
  const StreamOptions declared{.name = "s", .topics = {"s.>"}, .survives = Survives::process};
  Stream s = *free.stream(declared);
  ASSERT_TRUE(s.publish("s.a", "x"));
  Stream same = *limited.stream(declared);
  const auto expect_refused = [](const Error& error, std::string_view subject) {
    EXPECT_EQ(error, Errc::not_permitted) << error.message();
    EXPECT_NE(error.message().find(subject), std::string::npos) << error.message();
  };
  Consumer pulls = *same.consumer("pulls");
  expect_refused(pulls.next_until(soon()).error(), "MSG.NEXT.s.pulls");
  Consumer acks = *same.consumer("acks", {.ack_wait = 1s});
  auto delivery = acks.next_until(soon());
  ASSERT_TRUE(delivery) << delivery.error().message();
  delivery->ack();
  expect_refused(acks.next_until(soon()).error(), "$JS.ACK.s.acks.");
  Stream also = *silent.stream(declared);
  Reader reader = *also.read();
  expect_refused(reader.next_until(soon()).error(), "_INBOX.");
  Consumer again = *s.consumer("acks", {.ack_wait = 1s});  // of a user with the permission
  delivery = again.next_until(soon());
  ASSERT_TRUE(delivery) << delivery.error().message();
  EXPECT_TRUE(delivery->ack_confirmed());
}

}  // namespace
}  // namespace weft::topic
