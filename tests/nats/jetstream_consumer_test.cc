// SPDX-License-Identifier: MIT
// Consumers of JetStream beside servers of two ages.
#include <string>
#include <utility>
#include <vector>

#include "tests/nats/jetstream_server.h"
#include "weft/nats/jetstream/consumer.h"
#include "weft/nats/jetstream/delivery.h"
#include "weft/nats/jetstream/key_value.h"
#include "weft/nats/jetstream/message.h"

namespace weft::nats::jetstream {
namespace {

class NatsJetStreamConsumerTest : public NatsJetStreamTest {};
class NatsJetStreamNewerTest : public NatsJetStreamTest {};

INSTANTIATE_TEST_SUITE_P(Servers, NatsJetStreamNewerTest, testing::Values("current"),
                         [](const testing::TestParamInfo<std::string>& age) { return "nats_" + age.param; });

INSTANTIATE_TEST_SUITE_P(Servers, NatsJetStreamConsumerTest, testing::Values("debian", "current", "long_current"),
                         [](const testing::TestParamInfo<std::string>& age) { return "nats_" + age.param; });

// Answers to pull requests of one consumer.
class Puller {
 public:
  struct Item {
    std::string reply;
    std::string body;
    PullStatus status;
    std::uint64_t sequence = 0;
    std::uint64_t deliveries = 0;
    WallTime time{};
    std::string subject{};
    KeyOperation operation = KeyOperation::put;
  };

  Puller(Client* client, std::string stream, std::string consumer)
      : client_(client), stream_(std::move(stream)), consumer_(std::move(consumer)) {
    const auto id = client->subscribe("inbox.of.pulls", [this](const Message& m) {
      Item item{std::string(m.reply), std::string(as_text(m.body)), read_pull_status(m.headers)};
      if (const auto delivery = read_delivery(m.reply)) {
        EXPECT_EQ(delivery->stream, stream_);
        EXPECT_EQ(delivery->consumer, consumer_);
        EXPECT_GT(delivery->time, WallTime());
        ++(m.reply.starts_with("$JS.ACK." + stream_ + ".") ? short_forms : long_forms);
        item.sequence = delivery->stream_sequence;
        item.deliveries = delivery->deliveries;
        item.time = delivery->time;
        item.subject = m.subject;
        item.operation = read_key_operation(m.headers);
      } else {
        EXPECT_NE(item.status.kind, PullStatus::Kind::message);
      }
      items.push_back(std::move(item));
      watch_.changed();
    });
    EXPECT_TRUE(id);
  }

  // Waits for `count` more items.
  static Task<bool> more(Puller* self, std::size_t count) {
    const std::size_t all = self->items.size() + count;
    co_return co_await Watch::until(&self->watch_, [self, all] { return self->items.size() >= all; });
  }
  void request(const PullRequest& request) {
    const auto pulled = pull(stream_, consumer_, request);
    EXPECT_TRUE(pulled);
    EXPECT_TRUE(client_->publish(pulled->subject, as_bytes(pulled->body), {.reply = "inbox.of.pulls"}));
  }
  static Task<bool> fetch(Puller* self, PullRequest request, std::size_t count) {
    self->request(request);
    co_return co_await more(self, count);
  }
  void settle(const Item& item, std::string_view word) { EXPECT_TRUE(client_->publish(item.reply, as_bytes(word))); }

  [[nodiscard]] const Item& last() const { return items.at(items.size() - 1); }  // throws if there is none

  std::vector<Item> items;
  std::size_t short_forms = 0;  // of reply subjects
  std::size_t long_forms = 0;

 private:
  Client* const client_;
  const std::string stream_;
  const std::string consumer_;
  Watch watch_;
};

// A client, a new stream with one message, and a consumer of it.
Task<std::unique_ptr<Client>> open_with_consumer(NatsJetStreamTest* self, ConsumerConfig config) {
  auto client = co_await open_with_stream(self, stream_of("S", "s.>"));
  const auto stored = co_await publish(client.get(), "s.a", "1");
  EXPECT_TRUE(stored.ok());
  const auto created = co_await ask(client.get(), create_consumer("S", config), read_consumer_info);
  EXPECT_TRUE(created.ok()) << created.failure.description;
  EXPECT_EQ(created.value.config.durable, config.durable);
  co_return client;
}

TEST_P(NatsJetStreamConsumerTest, AConsumerDeliversAndCountsWhatIsAcknowledged) {
  run(this, [](NatsJetStreamConsumerTest* self) -> Task<void> {
    auto client = co_await open_with_stream(self, stream_of("S", "s.>"));
    for (const char* const body : {"1", "2", "3", "4"}) {
      const auto stored = co_await publish(client.get(), "s.a", body);
      EXPECT_TRUE(stored.ok());
    }
    ConsumerConfig config;
    config.name = "c";
    config.durable = true;
    config.filters.emplace_back("s.*");
    config.ack_wait = std::chrono::hours(1);
    const auto created =
        co_await ask(client.get(), create_consumer("S", config, ConsumerAction::create), read_consumer_info);
    EXPECT_TRUE(created.ok()) << created.failure.description;
    EXPECT_EQ(created.value.config.filters, config.filters);
    EXPECT_TRUE(created.value.config.durable && created.value.config.others.empty());
    EXPECT_EQ(created.value.pending, 4U);
    Puller puller(client.get(), "S", "c");
    const bool got = co_await Puller::fetch(&puller, {.batch = 3, .expires = test::kLong}, 3);
    EXPECT_TRUE(got);
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(puller.items.at(i).body, std::to_string(i + 1));
      EXPECT_EQ(puller.items.at(i).sequence, i + 1);
      EXPECT_EQ(puller.items.at(i).deliveries, 1U);
    }
    EXPECT_EQ(self->GetParam() == "long_current" ? puller.long_forms : puller.short_forms, 3U);
    // With a reply subject the server answers each of these words.
    const auto acknowledged = co_await client->request(puller.items.at(0).reply, as_bytes(kAck), in_long());
    const auto rejected = co_await client->request(puller.items.at(1).reply, as_bytes(kTerminate), in_long());
    const auto working = co_await client->request(puller.items.at(2).reply, as_bytes(kInProgress), in_long());
    EXPECT_TRUE(acknowledged && rejected && working);
    const auto info = co_await ask(client.get(), consumer_info("S", "c"), read_consumer_info);
    EXPECT_EQ(info.value.delivered.stream, 3U);
    EXPECT_EQ(info.value.ack_floor.stream, 2U);
    EXPECT_EQ(info.value.ack_pending, 1U);
    EXPECT_EQ(info.value.pending, 1U);
  });
}

TEST_P(NatsJetStreamConsumerTest, AMessageThatIsNotAcknowledgedComesAgain) {
  run(this, [](NatsJetStreamConsumerTest* self) -> Task<void> {
    ConsumerConfig config;
    config.name = "c";
    config.durable = true;
    config.ack_wait = std::chrono::milliseconds(50);
    auto client = co_await open_with_consumer(self, config);
    Puller puller(client.get(), "S", "c");
    const bool first = co_await Puller::fetch(&puller, {.expires = test::kLong}, 1);
    const bool second = co_await Puller::fetch(&puller, {.expires = test::kLong}, 1);
    EXPECT_TRUE(first && second);
    EXPECT_EQ(puller.items.at(1).sequence, 1U);
    EXPECT_EQ(puller.items.at(1).deliveries, 2U);
    const auto acknowledged = co_await client->request(puller.items.at(1).reply, as_bytes(kAck), in_long());
    EXPECT_TRUE(acknowledged);
    const auto info = co_await ask(client.get(), consumer_info("S", "c"), read_consumer_info);
    EXPECT_EQ(info.value.ack_floor.stream, 1U);
    EXPECT_EQ(info.value.ack_pending, 0U);
  });
}

TEST_P(NatsJetStreamConsumerTest, AnOldServerIgnoresARejectionWithAReason) {
  run(this, [](NatsJetStreamConsumerTest* self) -> Task<void> {
    ConsumerConfig config;
    config.name = "c";
    config.durable = true;
    auto client = co_await open_with_consumer(self, config);
    Puller puller(client.get(), "S", "c");
    const bool got = co_await Puller::fetch(&puller, {.expires = test::kLong}, 1);
    EXPECT_TRUE(got);
    std::string never;
    append_terminate("not wanted", never);
    const auto answered = co_await client->request(puller.items.at(0).reply, as_bytes(never), in_long());
    EXPECT_TRUE(answered);
    const auto info = co_await ask(client.get(), consumer_info("S", "c"), read_consumer_info);
    EXPECT_EQ(info.value.ack_pending, client->server_version().starts_with("2.9.") ? 1U : 0U);
  });
}

TEST_P(NatsJetStreamConsumerTest, ARefusedMessageComesAgainAfterItsDelay) {
  run(this, [](NatsJetStreamConsumerTest* self) -> Task<void> {
    ConsumerConfig config;
    config.name = "c";
    config.ack_wait = config.inactive_threshold = std::chrono::hours(1);
    auto client = co_await open_with_consumer(self, config);
    Puller puller(client.get(), "S", "c");
    const bool first = co_await Puller::fetch(&puller, {.expires = test::kLong}, 1);
    std::string later;
    append_nak(std::chrono::milliseconds(50), later);
    const Instant refused = sys::now();
    puller.settle(puller.items.at(0), later);
    const bool second = co_await Puller::fetch(&puller, {.expires = test::kLong}, 1);
    EXPECT_GE(sys::now() - refused, std::chrono::milliseconds(45));
    puller.settle(puller.items.at(1), kNak);
    const bool third = co_await Puller::fetch(&puller, {.expires = test::kLong}, 1);
    EXPECT_TRUE(first && second && third);
    EXPECT_EQ(puller.items.at(1).deliveries, 2U);
    EXPECT_EQ(puller.items.at(2).deliveries, 3U);
  });
}

TEST_P(NatsJetStreamConsumerTest, ARequestForMessagesEndsWithAStatus) {
  run(this, [](NatsJetStreamConsumerTest* self) -> Task<void> {
    auto client = co_await open_with_stream(self, stream_of("S", "s.>"));
    ConsumerConfig config;
    config.name = "c";
    config.durable = true;
    config.request_batch_max = 10;
    const auto created = co_await ask(client.get(), create_consumer("S", config), read_consumer_info);
    EXPECT_EQ(created.value.config.request_batch_max, 10);
    Puller puller(client.get(), "S", "c");
    const bool none = co_await Puller::fetch(&puller, {.batch = 2, .no_wait = true}, 1);
    EXPECT_EQ(puller.items.at(0).status.kind, PullStatus::Kind::no_messages);
    // On a busy server a heartbeat may not come before the end.
    const bool idle = co_await Puller::fetch(
        &puller, {.expires = std::chrono::milliseconds(300), .idle_heartbeat = std::chrono::milliseconds(100)}, 1);
    bool coming = idle;
    while (coming && !puller.last().status.ends()) {
      EXPECT_EQ(puller.last().status.kind, PullStatus::Kind::heartbeat);
      coming = co_await Puller::more(&puller, 1);
    }
    EXPECT_TRUE(coming);
    EXPECT_EQ(puller.last().status.kind, PullStatus::Kind::expired);
    EXPECT_EQ(puller.last().status.pending_messages, 1U);
    const bool greedy = co_await Puller::fetch(&puller, {.batch = 11}, 1);
    EXPECT_EQ(puller.last().status.kind, PullStatus::Kind::limit_exceeded);
    const auto stored = co_await publish(client.get(), "s.a", "12345678");
    EXPECT_TRUE(stored.ok());
    const bool small = co_await Puller::fetch(&puller, {.bytes_max = 5, .expires = test::kLong}, 1);
    EXPECT_EQ(puller.last().status.kind, PullStatus::Kind::too_large);
    const bool one = co_await Puller::fetch(&puller, {.expires = test::kLong}, 1);
    EXPECT_EQ(puller.last().body, "12345678");
    EXPECT_TRUE(none && idle && greedy && small && one);
    const auto deleted = co_await ask(client.get(), delete_consumer("S", "c"), read_done);
    EXPECT_TRUE(deleted.ok());
    const auto gone = co_await ask(client.get(), consumer_info("S", "c"), read_consumer_info);
    EXPECT_EQ(gone.failure.number, kConsumerNotFound);
    const auto names = co_await ask(client.get(), consumer_names("S"), read_consumer_names);
    EXPECT_TRUE(names.ok() && names.value.items.empty());
  });
}

TEST_P(NatsJetStreamConsumerTest, AReaderBeginsWhereItIsAsked) {
  run(this, [](NatsJetStreamConsumerTest* self) -> Task<void> {
    auto client = co_await open_with_stream(self, stream_of("S", "s.>"));
    for (const char* const subject : {"s.a", "s.b", "s.a", "s.b", "s.c"}) {
      const auto stored = co_await publish(client.get(), subject, subject);
      EXPECT_TRUE(stored.ok());
    }
    const auto third = co_await ask(client.get(), get_message("S", Which::at(3)), read_message);
    struct Begin {
      Deliver deliver;
      std::string_view filter;
      std::uint64_t pending;
    };
    static constexpr Begin kBegins[] = {{Deliver::all, "", 5},
                                        {Deliver::all, "s.a", 2},
                                        {Deliver::last, "", 1},
                                        {Deliver::fresh, "", 0},
                                        {Deliver::by_start_sequence, "", 2},
                                        {Deliver::by_start_time, "", 3},
                                        {Deliver::last_per_subject, ">", 3}};
    for (const Begin& begin : kBegins) {
      ConsumerConfig config;
      config.ack_policy = AckPolicy::none;
      config.memory_storage = true;
      config.replicas = 1;
      config.inactive_threshold = std::chrono::hours(1);
      config.deliver = begin.deliver;
      config.start_sequence = 4;
      config.start_time = third.value.time;
      if (!begin.filter.empty()) {
        config.filters.emplace_back(begin.filter);
      }
      const auto created = co_await ask(client.get(), create_consumer("S", config), read_consumer_info);
      EXPECT_TRUE(created.ok()) << created.failure.description;
      EXPECT_EQ(created.value.pending, begin.pending) << static_cast<int>(begin.deliver);
      EXPECT_EQ(created.value.config.deliver, begin.deliver);
      EXPECT_FALSE(created.value.name.empty());
    }
    const auto list = co_await ask(client.get(), consumer_list("S"), read_consumer_list);
    EXPECT_EQ(list.value.items.size(), 7U);
  });
}

// --- of servers since 2.11 ---

TEST_P(NatsJetStreamNewerTest, AMessageEndsAfterItsTimeAndLeavesAMarker) {
  run(this, [](NatsJetStreamNewerTest* self) -> Task<void> {
    StreamConfig config = stream_of("S", "s.>");
    config.allow_message_ttl = true;
    config.allow_rollup = true;
    config.subject_delete_marker_ttl = std::chrono::seconds(1);  // a longer one would also be the message's
    auto client = co_await open_with_stream(self, config);
    ConsumerConfig consumer;
    consumer.name = "c";
    consumer.durable = true;
    consumer.deliver = Deliver::by_start_sequence;
    consumer.start_sequence = 2;
    const auto created = co_await ask(client.get(), create_consumer("S", consumer), read_consumer_info);
    EXPECT_TRUE(created.ok()) << created.failure.description;
    // The marker does not stay either: a request waits for it.
    Puller puller(client.get(), "S", "c");
    puller.request({.expires = test::kLong});
    const auto stored = co_await publish(client.get(), "s.a", "1", {.ttl = std::chrono::seconds(1)});
    EXPECT_TRUE(stored.ok()) << stored.failure.description;
    const bool came = co_await Puller::more(&puller, 1);
    EXPECT_TRUE(came);
    EXPECT_EQ(puller.items.at(0).operation, KeyOperation::purge);
    EXPECT_EQ(puller.items.at(0).subject, "s.a");
  });
}

TEST_P(NatsJetStreamNewerTest, ABatchIsStoredWithItsLastMessage) {
  run(this, [](NatsJetStreamNewerTest* self) -> Task<void> {
    StreamConfig config = stream_of("S", "s.>");
    config.allow_atomic = true;
    auto client = co_await open_with_stream(self, config);
    for (std::uint64_t i = 1; i <= 2; ++i) {
      Headers headers;
      EXPECT_TRUE((PublishHeaders{.batch = "b", .batch_sequence = i}.add_to(headers)));
      EXPECT_TRUE(client->publish("s.a", as_bytes("x"), {.headers = headers.block()}));
    }
    const auto before = co_await ask(client.get(), stream_info("S"), read_stream_info);
    EXPECT_EQ(before.value.state.messages, 0U);
    const auto last =
        co_await publish(client.get(), "s.b", "y", {.batch = "b", .batch_sequence = 3, .batch_ends = true});
    EXPECT_TRUE(last.ok()) << last.failure.description;
    EXPECT_EQ(last.value.sequence, 3U);
    EXPECT_EQ(last.value.batch, "b");
    EXPECT_EQ(last.value.batch_size, 3U);
    const auto gap =
        co_await publish(client.get(), "s.b", "y", {.batch = "c", .batch_sequence = 2, .batch_ends = true});
    EXPECT_FALSE(gap.ok());
    const auto after = co_await ask(client.get(), stream_info("S"), read_stream_info);
    EXPECT_EQ(after.value.state.messages, 3U);
  });
}

TEST_P(NatsJetStreamNewerTest, AMessageForLaterIsPublishedThen) {
  run(this, [](NatsJetStreamNewerTest* self) -> Task<void> {
    StreamConfig config = stream_of("S", "s.>");
    config.allow_schedules = true;
    auto client = co_await open_with_stream(self, config);
    ConsumerConfig consumer;
    consumer.name = "c";
    consumer.durable = true;
    consumer.filters.emplace_back("s.target");
    const auto created = co_await ask(client.get(), create_consumer("S", consumer), read_consumer_info);
    EXPECT_TRUE(created.ok()) << created.failure.description;
    const WallTime at = created.value.created + std::chrono::seconds(2);
    const auto stored =
        co_await publish(client.get(), "s.plan", "body", {.schedule_at = at, .schedule_target = "s.target"});
    EXPECT_TRUE(stored.ok()) << stored.failure.description;
    Puller puller(client.get(), "S", "c");
    const bool came = co_await Puller::fetch(&puller, {.expires = test::kLong}, 1);
    EXPECT_TRUE(came);
    EXPECT_EQ(puller.items.at(0).body, "body");
    EXPECT_EQ(puller.items.at(0).subject, "s.target");
    EXPECT_GE(puller.items.at(0).time, at);
  });
}

TEST_P(NatsJetStreamNewerTest, AConsumerBeginsAgainAtASequence) {
  run(this, [](NatsJetStreamNewerTest* self) -> Task<void> {
    auto client = co_await open_with_stream(self, stream_of("S", "s.>"));
    for (const char* const body : {"1", "2", "3"}) {
      const auto stored = co_await publish(client.get(), "s.a", body);
      EXPECT_TRUE(stored.ok());
    }
    ConsumerConfig config;
    config.name = "c";
    config.durable = true;
    const auto created = co_await ask(client.get(), create_consumer("S", config), read_consumer_info);
    EXPECT_TRUE(created.ok());
    Puller puller(client.get(), "S", "c");
    const bool first = co_await Puller::fetch(&puller, {.batch = 3, .expires = test::kLong}, 3);
    const auto reset = co_await ask(client.get(), reset_consumer("S", "c", 2), read_consumer_info);
    EXPECT_TRUE(reset.ok()) << reset.failure.description;
    EXPECT_EQ(reset.value.pending, 2U);
    const bool again = co_await Puller::fetch(&puller, {.batch = 2, .expires = test::kLong}, 2);
    EXPECT_TRUE(first && again);
    EXPECT_EQ(puller.items.at(3).sequence, 2U);
    EXPECT_EQ(puller.items.at(3).deliveries, 1U);
    EXPECT_EQ(puller.items.at(4).sequence, 3U);
  });
}

}  // namespace
}  // namespace weft::nats::jetstream
