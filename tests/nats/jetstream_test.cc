// SPDX-License-Identifier: MIT
// The messages of JetStream beside servers of two ages, and beside the command nats.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/nats_server.h"
#include "weft/nats/jetstream/consumer.h"
#include "weft/nats/jetstream/delivery.h"
#include "weft/nats/jetstream/key_value.h"
#include "weft/nats/jetstream/message.h"
#include "weft/nats/jetstream/names.h"
#include "weft/nats/jetstream/publish.h"
#include "weft/nats/jetstream/stream.h"

namespace weft::nats::jetstream {
namespace {

using rt::Task;
using test::in_long;
using test::NatsServer;
using test::Watch;

// The output of a program, which is killed after a long while.
std::string output_of(std::vector<std::string> words) {
  words.insert(words.begin(),
               {"/usr/bin/timeout", "-s", "KILL", std::to_string(test::kLong / std::chrono::seconds(1))});
  std::vector<char*> pointers;
  for (std::string& word : words) {
    pointers.push_back(word.data());
  }
  pointers.push_back(nullptr);
  int ends[2];
  EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 2);
  pid_t pid = -1;
  EXPECT_EQ(::posix_spawn(&pid, words[0].c_str(), &actions, nullptr, pointers.data(), environ), 0);
  posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  std::string output;
  char bytes[4096];
  for (ssize_t size = 1; size > 0;) {
    size = ::read(ends[0], bytes, sizeof bytes);
    output.append(bytes, static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
  }
  ::close(ends[0]);
  int status = 0;
  EXPECT_EQ(::waitpid(pid, &status, 0), pid);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << output;
  return output;
}

template <typename Value>
Reply<Value> read_of(const Result<Reply<Value>>& reply) {
  if (reply) {
    return *reply;
  }
  ADD_FAILURE() << reply.error().message();
  Reply<Value> none;
  none.failure.code = 1;
  return none;
}

// Sends a request and reads its answer.
template <typename Value>
Task<Reply<Value>> ask(Client* client, Result<Request> request, Result<Reply<Value>> (*read)(std::string_view)) {
  if (!request) {
    co_return read_of<Value>(request.error());
  }
  const auto answer = co_await client->request(request->subject, as_bytes(request->body), in_long());
  if (!answer) {
    co_return read_of<Value>(answer.error());
  }
  co_return read_of(read(as_text(answer->body())));
}

Task<Reply<PublishAck>> publish(Client* client, std::string subject, std::string body, PublishHeaders asked = {}) {
  Headers headers;
  EXPECT_TRUE(asked.add_to(headers));
  const auto answer = co_await client->request(subject, as_bytes(body), in_long(), headers.block());
  if (!answer) {
    co_return read_of<PublishAck>(answer.error());
  }
  co_return read_of(read_publish_ack(as_text(answer->body())));
}

// A copy of the answer to get_direct().
struct Direct {
  Error error;
  std::string stream;
  std::string subject;
  std::string body;
  std::uint64_t sequence = 0;
  WallTime time;
  KeyOperation operation = KeyOperation::put;
};
Task<Direct> direct(Client* client, Result<Request> request) {
  Direct copy;
  const auto answer = co_await client->request(request->subject, as_bytes(request->body), in_long());
  if (!answer) {
    copy.error = answer.error();
    co_return copy;
  }
  const auto message = read_direct(answer->headers(), answer->body());
  if (!message) {
    copy.error = message.error();
    co_return copy;
  }
  copy.stream = message->stream;
  copy.subject = message->subject;
  copy.body = as_text(message->body);
  copy.sequence = message->sequence;
  copy.time = message->time;
  copy.operation = read_key_operation(message->headers);
  co_return copy;
}

// Answers to pull requests of one consumer.
class Puller {
 public:
  struct Item {
    std::string reply;
    std::string body;
    PullStatus status;
    std::uint64_t sequence = 0;
    std::uint64_t deliveries = 0;
  };

  Puller(Client* client, std::string stream, std::string consumer)
      : client_(client), stream_(std::move(stream)), consumer_(std::move(consumer)) {
    const auto id = client->subscribe("inbox.of.pulls", [this](const Message& m) {
      Item item{std::string(m.reply), std::string(as_text(m.body)), read_pull_status(m.headers)};
      if (const auto delivery = read_delivery(m.reply)) {
        EXPECT_EQ(delivery->stream, stream_);
        EXPECT_EQ(delivery->consumer, consumer_);
        EXPECT_GT(delivery->time, WallTime());
        item.sequence = delivery->stream_sequence;
        item.deliveries = delivery->deliveries;
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
  static Task<bool> fetch(Puller* self, PullRequest request, std::size_t count) {
    const auto pulled = pull(self->stream_, self->consumer_, request);
    EXPECT_TRUE(pulled);
    EXPECT_TRUE(self->client_->publish(pulled->subject, as_bytes(pulled->body), {.reply = "inbox.of.pulls"}));
    co_return co_await more(self, count);
  }
  void settle(const Item& item, std::string_view word) { EXPECT_TRUE(client_->publish(item.reply, as_bytes(word))); }

  [[nodiscard]] const Item& last() const { return items.at(items.size() - 1); }  // throws if there is none

  std::vector<Item> items;

 private:
  Client* const client_;
  const std::string stream_;
  const std::string consumer_;
  Watch watch_;
};

// The parameter: the age of the server.
class NatsJetStreamTest : public test::NatsTest, public testing::WithParamInterface<std::string> {
 public:
  using NatsTest::open;
  [[nodiscard]] const NatsServer& server() const { return *server_; }
  [[nodiscard]] std::string command(std::vector<std::string> words) const {
    words.insert(words.begin(), {WEFT_NATS_COMMAND, "--server", server_->url(), "--no-context"});
    return output_of(std::move(words));
  }

 protected:
  void SetUp() override {
    const bool current = GetParam() == "current";
    if (current ? test::current_server().empty() : std::string(WEFT_NATS_SERVER).empty()) {
      GTEST_SKIP() << (current ? "there is no current nats-server" : "there is no nats-server");
    }
    start_runtime();
    if (IsSkipped()) {
      return;
    }
    store_ = sys::make_private_directory().value();
    server_ = std::make_unique<NatsServer>("jetstream { store_dir: \"" + store_ + "\" }\n", std::vector<std::string>(),
                                           current ? test::current_server() : WEFT_NATS_SERVER);
  }
  void TearDown() override {
    NatsTest::TearDown();
    server_.reset();
    if (!store_.empty()) {
      std::filesystem::remove_all(store_);
    }
  }

 private:
  std::string store_;
  std::unique_ptr<NatsServer> server_;
};

INSTANTIATE_TEST_SUITE_P(Servers, NatsJetStreamTest, testing::Values("debian", "current"),
                         [](const testing::TestParamInfo<std::string>& age) { return "nats_" + age.param; });

StreamConfig stream_of(const char* name, const char* subject) {
  StreamConfig config;
  config.name = name;
  config.subjects.emplace_back(subject);
  return config;
}

// A client, and a new stream.
Task<std::unique_ptr<Client>> open_with_stream(NatsJetStreamTest* self, StreamConfig config) {
  auto client = self->open(self->server());
  const auto connected = co_await client->connected(in_long());
  EXPECT_TRUE(connected);
  const auto created = co_await ask(client.get(), create_stream(config), read_stream_info);
  EXPECT_TRUE(created.ok()) << created.failure.description;
  EXPECT_EQ(created.value.config.subjects, config.subjects);
  EXPECT_TRUE(created.value.config.others.empty());
  co_return client;
}

TEST_P(NatsJetStreamTest, AStreamIsDeclaredChangedListedAndDeleted) {
  run(this, [](NatsJetStreamTest* self) -> Task<void> {
    StreamConfig config = stream_of("S", "s.>");
    config.bytes_max = 1'000'000;
    auto client = co_await open_with_stream(self, config);
    const auto again = co_await ask(client.get(), create_stream(config), read_stream_info);
    EXPECT_TRUE(again.ok());
    config.subjects = {"s.>", "t"};
    const auto other = co_await ask(client.get(), create_stream(config), read_stream_info);
    EXPECT_EQ(other.failure.number, kStreamNameInUse);
    const auto changed = co_await ask(client.get(), update_stream(config), read_stream_info);
    EXPECT_TRUE(changed.ok());
    EXPECT_EQ(changed.value.config.subjects, config.subjects);
    const auto overlap = co_await ask(client.get(), create_stream(stream_of("T", "t")), read_stream_info);
    EXPECT_EQ(overlap.failure.error().code(), Errc::invalid_argument);
    StreamConfig copies = stream_of("C", "c");
    copies.replicas = 3;
    const auto refused = co_await ask(client.get(), create_stream(copies), read_stream_info);
    EXPECT_EQ(refused.failure.error().code(), Errc::not_supported);
    const auto names = co_await ask(client.get(), stream_names(), read_stream_names);
    EXPECT_EQ(names.value.items, std::vector<std::string>{"S"});
    const auto of_subject = co_await ask(client.get(), stream_names(0, "nobody"), read_stream_names);
    EXPECT_TRUE(of_subject.ok() && of_subject.value.items.empty());
    const auto list = co_await ask(client.get(), stream_list(), read_stream_list);
    EXPECT_EQ(list.value.items.size(), 1U);
    EXPECT_EQ(list.value.items.at(0).config.bytes_max, 1'000'000);
    const auto account = co_await ask(client.get(), account_info(), read_account_info);
    EXPECT_EQ(account.value.streams, 1U);
    const auto deleted = co_await ask(client.get(), delete_stream("S"), read_done);
    EXPECT_TRUE(deleted.ok());
    const auto gone = co_await ask(client.get(), stream_info("S"), read_stream_info);
    EXPECT_EQ(gone.failure.number, kStreamNotFound);
  });
}

TEST_P(NatsJetStreamTest, AMessageIsStoredOnceAndOnlyAsItExpects) {
  run(this, [](NatsJetStreamTest* self) -> Task<void> {
    StreamConfig config = stream_of("S", "s.>");
    config.message_size_max = 1000;
    config.messages_max = 3;
    config.discard = Discard::refuse;
    auto client = co_await open_with_stream(self, config);
    const auto first = co_await publish(client.get(), "s.a", "1", {.message_id = "one"});
    EXPECT_EQ(first.value.stream, "S");
    EXPECT_EQ(first.value.sequence, 1U);
    EXPECT_FALSE(first.value.duplicate);
    const auto twice = co_await publish(client.get(), "s.a", "1", {.message_id = "one"});
    EXPECT_EQ(twice.value.sequence, 1U);
    EXPECT_TRUE(twice.value.duplicate);
    const auto wrong = co_await publish(client.get(), "s.a", "2", {.expected_last_sequence = 7});
    EXPECT_EQ(wrong.failure.error().code(), Errc::conflict);
    EXPECT_EQ(actual_last_sequence(wrong.failure), 1U);
    const auto stale = co_await publish(client.get(), "s.a", "2", {.expected_last_subject_sequence = 0});
    EXPECT_EQ(stale.failure.error().code(), Errc::conflict);
    const auto id = co_await publish(client.get(), "s.a", "2", {.expected_last_message_id = "two"});
    EXPECT_EQ(id.failure.number, kWrongLastMessageId);
    const auto other = co_await publish(client.get(), "s.a", "2", {.expected_stream = "T"});
    EXPECT_EQ(other.failure.number, kStreamNotMatched);
    const auto right = co_await publish(client.get(), "s.a", "2",
                                        {.expected_stream = "S",
                                         .expected_last_sequence = 1,
                                         .expected_last_subject_sequence = 1,
                                         .expected_last_message_id = "one"});
    EXPECT_EQ(right.value.sequence, 2U);
    const auto fresh = co_await publish(client.get(), "s.b", "3", {.expected_last_subject_sequence = 0});
    EXPECT_EQ(fresh.value.sequence, 3U);
    const auto full = co_await publish(client.get(), "s.a", "4");
    EXPECT_EQ(full.failure.error().code(), Errc::resource_exhausted);
    const auto large = co_await publish(client.get(), "s.a", std::string(1001, 'x'));
    EXPECT_EQ(large.failure.error().code(), Errc::message_too_large);
    const auto nobody = co_await client->request("nobody", {}, in_long());
    EXPECT_EQ(nobody.error().code(), Errc::unreachable);
    const auto purged = co_await ask(client.get(), purge_stream("S", {.filter = "s.a", .keep = 1}), read_purged);
    EXPECT_EQ(purged.value, 1U);
    const auto info = co_await ask(client.get(), stream_info("S"), read_stream_info);
    EXPECT_EQ(info.value.state.messages, 2U);
    EXPECT_EQ(info.value.state.first_sequence, 2U);
    EXPECT_EQ(info.value.state.last_sequence, 3U);
  });
}

TEST_P(NatsJetStreamTest, AConsumerDeliversAndCountsWhatIsAcknowledged) {
  run(this, [](NatsJetStreamTest* self) -> Task<void> {
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

TEST_P(NatsJetStreamTest, AMessageThatIsNotAcknowledgedComesAgain) {
  run(this, [](NatsJetStreamTest* self) -> Task<void> {
    auto client = co_await open_with_stream(self, stream_of("S", "s.>"));
    const auto stored = co_await publish(client.get(), "s.a", "1");
    EXPECT_TRUE(stored.ok());
    ConsumerConfig config;
    config.name = "c";
    config.durable = true;
    config.ack_wait = std::chrono::milliseconds(50);
    const auto created = co_await ask(client.get(), create_consumer("S", config), read_consumer_info);
    EXPECT_TRUE(created.ok()) << created.failure.description;
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

TEST_P(NatsJetStreamTest, AnOldServerIgnoresARejectionWithAReason) {
  run(this, [](NatsJetStreamTest* self) -> Task<void> {
    auto client = co_await open_with_stream(self, stream_of("S", "s.>"));
    const auto stored = co_await publish(client.get(), "s.a", "1");
    EXPECT_TRUE(stored.ok());
    ConsumerConfig config;
    config.name = "c";
    config.durable = true;
    const auto created = co_await ask(client.get(), create_consumer("S", config), read_consumer_info);
    EXPECT_TRUE(created.ok());
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

TEST_P(NatsJetStreamTest, ARefusedMessageComesAgainAfterItsDelay) {
  run(this, [](NatsJetStreamTest* self) -> Task<void> {
    auto client = co_await open_with_stream(self, stream_of("S", "s.>"));
    const auto stored = co_await publish(client.get(), "s.a", "1");
    EXPECT_TRUE(stored.ok());
    ConsumerConfig config;
    config.name = "c";
    config.ack_wait = config.inactive_threshold = std::chrono::hours(1);
    const auto created = co_await ask(client.get(), create_consumer("S", config), read_consumer_info);
    EXPECT_TRUE(created.ok() && !created.value.config.durable);
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

TEST_P(NatsJetStreamTest, ARequestForMessagesEndsWithAStatus) {
  run(this, [](NatsJetStreamTest* self) -> Task<void> {
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

TEST_P(NatsJetStreamTest, AReaderBeginsWhereItIsAsked) {
  run(this, [](NatsJetStreamTest* self) -> Task<void> {
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

const std::string kBinary("\x00\xFF one", 6);

TEST_P(NatsJetStreamTest, AStoredMessageIsReadFromTheLeaderAndDirectly) {
  run(this, [](NatsJetStreamTest* self) -> Task<void> {
    StreamConfig config = stream_of("S", "s.>");
    config.allow_direct = true;
    auto client = co_await open_with_stream(self, config);
    const auto first = co_await publish(client.get(), "s.a", kBinary, {.message_id = "id"});
    const auto second = co_await publish(client.get(), "s.b", "two");
    EXPECT_TRUE(first.ok() && second.ok());
    const auto stored = co_await ask(client.get(), get_message("S", Which::next_of("s.*", 0)), read_message);
    EXPECT_EQ(stored.value.sequence, 1U);
    EXPECT_EQ(stored.value.content, kBinary);
    EXPECT_EQ(stored.value.headers().find(kMessageIdHeader), "id");
    const auto none = co_await ask(client.get(), get_message("S", Which::at(9)), read_message);
    EXPECT_EQ(none.failure.number, kNoMessageFound);
    struct Case {
      Which which;
      std::uint64_t sequence;
    };
    for (const Case& each : {Case{Which::at(1), 1}, Case{Which::last_of("s.b"), 2}, Case{Which::next_of("s.>", 2), 2},
                             Case{Which::at(9), 0}, Case{Which::last_of("s.c"), 0}}) {
      const auto message = co_await direct(client.get(), get_direct("S", each.which));
      if (each.sequence == 0) {
        EXPECT_EQ(message.error.code(), Errc::not_found);
        continue;
      }
      EXPECT_EQ(message.error, Error()) << message.error.message();
      EXPECT_EQ(message.stream, "S");
      EXPECT_EQ(message.sequence, each.sequence);
      EXPECT_EQ(message.subject, each.sequence == 1 ? "s.a" : "s.b");
      EXPECT_EQ(message.body, each.sequence == 1 ? kBinary : "two");
      if (each.sequence == 1) {
        EXPECT_EQ(message.time, stored.value.time);
      }
    }
    const auto deleted = co_await ask(client.get(), delete_message("S", 1, true), read_done);
    EXPECT_TRUE(deleted.ok());
    const auto twice = co_await ask(client.get(), delete_message("S", 1, false), read_done);
    EXPECT_EQ(twice.failure.error().code(), Errc::not_found);
  });
}

TEST_P(NatsJetStreamTest, ABucketIsTheSameForTheCommandNats) {
  if (!std::filesystem::exists(WEFT_NATS_COMMAND)) {
    GTEST_SKIP() << "there is no nats: deps/setup.sh tests builds it with Go";
  }
  run(this, [](NatsJetStreamTest* self) -> Task<void> {
    BucketConfig bucket;
    bucket.bucket = "b";
    bucket.history = 5;
    const StreamConfig config = bucket_stream(bucket).value();
    auto client = co_await open_with_stream(self, config);
    std::string key;
    EXPECT_TRUE(append_key("user.a b", key));
    std::string subject;
    append_key_subject("b", key, subject);
    for (const char* const value : {"first", "second"}) {
      const auto put = co_await publish(client.get(), subject, value);
      EXPECT_TRUE(put.ok());
    }
    const auto stale = co_await publish(client.get(), subject, "third", {.expected_last_subject_sequence = 1});
    EXPECT_EQ(stale.failure.error().code(), Errc::conflict);
  });
  EXPECT_EQ(command({"kv", "get", "b", "user.a=20b", "--raw"}), "second");
  const std::string history = command({"kv", "history", "b", "user.a=20b"});
  EXPECT_NE(history.find("first"), std::string::npos) << history;
  EXPECT_NE(history.find("second"), std::string::npos) << history;
  EXPECT_NE(command({"kv", "ls"}).find("b"), std::string::npos);
  (void)command({"kv", "put", "b", "theirs", "of nats"});
  (void)command({"kv", "del", "b", "user.a=20b", "--force"});
  (void)command({"kv", "put", "b", "purged", "x"});
  (void)command({"kv", "purge", "b", "purged", "--force"});
  run(this, [](NatsJetStreamTest* self) -> Task<void> {
    auto client = self->open(self->server());
    const auto connected = co_await client->connected(in_long());
    EXPECT_TRUE(connected);
    struct Case {
      std::string_view key;
      KeyOperation operation;
      std::string_view value;
    };
    for (const Case& each : {Case{"theirs", KeyOperation::put, "of nats"}, Case{"user.a=20b", KeyOperation::erase, ""},
                             Case{"purged", KeyOperation::purge, ""}}) {
      std::string subject;
      append_key_subject("b", each.key, subject);
      const auto message = co_await direct(client.get(), get_direct("KV_b", Which::last_of(subject)));
      EXPECT_EQ(message.error, Error()) << each.key << message.error.message();
      EXPECT_EQ(message.operation, each.operation) << each.key;
      EXPECT_EQ(message.body, each.value);
      EXPECT_EQ(key_of_subject("b", message.subject), each.key);
    }
    // An erasure of ours is one for the command.
    Headers headers;
    EXPECT_TRUE(add_key_operation(KeyOperation::purge, headers));
    EXPECT_TRUE((PublishHeaders{.rollup = PublishHeaders::Rollup::subject}.add_to(headers)));
    const auto answer = co_await client->request("$KV.b.user.a=20b", {}, in_long(), headers.block());
    EXPECT_TRUE(answer && read_of(read_publish_ack(as_text(answer->body()))).ok());
  });
  const std::string after = command({"kv", "history", "b", "user.a=20b"});
  EXPECT_EQ(after.find("first"), std::string::npos) << after;
  EXPECT_NE(after.find("PURGE"), std::string::npos) << after;
  EXPECT_EQ(command({"kv", "get", "b", "theirs", "--raw"}), "of nats");
}

}  // namespace
}  // namespace weft::nats::jetstream
