// SPDX-License-Identifier: MIT
// Streams, stored messages and buckets of JetStream beside servers of two ages, and beside the command nats.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "tests/nats/jetstream_server.h"
#include "weft/nats/jetstream/key_value.h"
#include "weft/nats/jetstream/message.h"
#include "weft/nats/jetstream/names.h"

namespace weft::nats::jetstream {
namespace {

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

// Runs the command nats at the server.
std::string nats_command(const NatsServer& server, std::vector<std::string> words) {
  words.insert(words.begin(), {WEFT_NATS_COMMAND, "--server", server.url(), "--no-context"});
  return output_of(std::move(words));
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
Task<Direct> direct(Client* client, Result<ApiRequest> request) {
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

INSTANTIATE_TEST_SUITE_P(Servers, NatsJetStreamTest, testing::Values("debian", "current"),
                         [](const testing::TestParamInfo<std::string>& age) { return "nats_" + age.param; });

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
    config.discard = DiscardPolicy::refuse;
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
  EXPECT_EQ(nats_command(server(), {"kv", "get", "b", "user.a=20b", "--raw"}), "second");
  const std::string history = nats_command(server(), {"kv", "history", "b", "user.a=20b"});
  EXPECT_NE(history.find("first"), std::string::npos) << history;
  EXPECT_NE(history.find("second"), std::string::npos) << history;
  EXPECT_NE(nats_command(server(), {"kv", "ls"}).find("b"), std::string::npos);
  (void)nats_command(server(), {"kv", "put", "b", "theirs", "of nats"});
  (void)nats_command(server(), {"kv", "del", "b", "user.a=20b", "--force"});
  (void)nats_command(server(), {"kv", "put", "b", "purged", "x"});
  (void)nats_command(server(), {"kv", "purge", "b", "purged", "--force"});
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
  const std::string after = nats_command(server(), {"kv", "history", "b", "user.a=20b"});
  EXPECT_EQ(after.find("first"), std::string::npos) << after;
  EXPECT_NE(after.find("PURGE"), std::string::npos) << after;
  EXPECT_EQ(nats_command(server(), {"kv", "get", "b", "theirs", "--raw"}), "of nats");
}

}  // namespace
}  // namespace weft::nats::jetstream
