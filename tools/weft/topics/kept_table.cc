// SPDX-License-Identifier: MIT
// The rows of streams and buckets.
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tools/weft/topics/buckets.h"
#include "tools/weft/topics/declare_topics.h"
#include "tools/weft/topics/kept.h"

namespace weft::cli {

namespace {

constexpr const char* kSurvivesHelp =
    "The fault that loses no message (power); on NATS process, or machine with three servers";

// --- streams ---

CLI::Option* declare_stream(CLI::App& app, std::string& name) {
  return text(app, "NAME", name, "NAME", "The stream")->required();
}

Run declare_stream_add(CLI::App& app) {
  auto options = std::make_shared<StreamAddOptions>();
  declare_stream(app, options->name);
  app.add_option("TOPIC", options->topics, "Filters of its topics; without one every topic")->type_name("FILTER");
  declare_kept(app, options->fleet);
  text(app, "--keep", options->keep, "log|work|latest",
       "Every message (log), every one until its consumer has it, or "
       "the newest of each topic")
      ->group(kSettings);
  text(app, "--survives", options->survives, "process|machine|power", kSurvivesHelp)->group(kSettings);
  bytes(app, "--bytes-max", options->bytes_max, "Of all its messages (1G)")->group(kSettings);
  text(app, "--when-full", options->when_full, "oldest|refuse", "Drop the oldest messages, or refuse the new one")
      ->group(kSettings);
  number(app, "--age-max", options->age_max, "SECONDS", "For which a message is kept; 0: any age")->group(kSettings);
  number(app, "--id-window", options->id_window, "SECONDS", "For which a message's id is known (120)")
      ->group(kSettings);
  app.add_flag("--redeclare", options->redeclare, "Change the settings of a stream that is there")->group(kSettings);
  return [options](Console& console) { return stream_add(console, *options); };
}

Run declare_stream_ls(CLI::App& app) {
  auto options = std::make_shared<StreamOneOptions>();
  declare_kept(app, options->fleet);
  return [options](Console& console) { return stream_ls(console, *options); };
}

Run declare_stream_info(CLI::App& app) {
  auto options = std::make_shared<StreamOneOptions>();
  declare_stream(app, options->name);
  declare_kept(app, options->fleet);
  return [options](Console& console) { return stream_info(console, *options); };
}

Run declare_stream_rm(CLI::App& app) {
  auto options = std::make_shared<StreamOneOptions>();
  declare_stream(app, options->name);
  declare_kept(app, options->fleet);
  text(app, "--consumer", options->consumer, "NAME", "Only this consumer of the stream");
  return [options](Console& console) { return stream_rm(console, *options); };
}

Run declare_stream_publish(CLI::App& app) {
  auto options = std::make_shared<StreamPublishOptions>();
  auto expected = std::make_shared<std::uint64_t>(0);
  declare_stream(app, options->name);
  declare_words(app, options->words, options->topic, kBodyHelp);
  declare_kept(app, options->fleet);
  declare_source(app, options->source);
  app.add_flag("--hex", options->source.hex, "Bytes are hexadecimal, in arguments and lines")->group(kMessages);
  declare_count(app, options->source.count, "Send so many messages; a BODY is sent once without it");
  declare_headers(app, options->headers);
  text(app, "--id", options->id, "ID", "Of the message: one that was stored before is not stored again")
      ->group(kMessages);
  const CLI::Option* const expect =
      sequence(app, "--expect-last", *expected, "Only if the topic's last message has this sequence; 0: it has none")
          ->group(kMessages);
  number(app, "--ttl", options->time_to_live, "SECONDS", "For which the message is readable; 0: any time")
      ->group(kMessages);
  number(app, "--delay", options->delay, "SECONDS", "After which the message is readable; its sequence is printed as 0")
      ->group(kMessages);
  app.add_flag("--atomic", options->atomic,
               "All messages or none, at most 1000; --id and --expect-last are of the first")
      ->group(kMessages);
  number(app, "--window", options->window, "N", "Messages on their way to the hub (1); more are faster")
      ->group(kMessages);
  return [options, expected, expect](Console& console) {
    if (expect->count() != 0) {
      options->expect_last = *expected;
    }
    return stream_publish(console, *options);
  };
}

constexpr const char* kFromHelp = "first (the default), last, next, last-per-topic, a sequence, or @SECONDS since 1970";

Run declare_stream_read(CLI::App& app) {
  auto options = std::make_shared<StreamReadOptions>();
  declare_stream(app, options->name);
  text(app, "FILTER", options->filter, "FILTER", "Of topics: orders.*; without it every topic");
  declare_kept(app, options->fleet);
  text(app, "--from", options->from, "WHERE", kFromHelp)->group(kMessages);
  app.add_flag("--stored", options->stored, "End after the messages that are stored now")->group(kMessages);
  declare_shown(app, options->shown);
  declare_count(app, options->count, "End after so many messages");
  return [options](Console& console) { return stream_read(console, *options); };
}

Run declare_stream_consume(CLI::App& app) {
  auto options = std::make_shared<StreamConsumeOptions>();
  declare_stream(app, options->name);
  text(app, "CONSUMER", options->consumer, "CONSUMER", "Its members share the messages; made if it is not there")
      ->required();
  text(app, "FILTER", options->filter, "FILTER", "Of a new consumer: of topics");
  declare_kept(app, options->fleet);
  text(app, "--from", options->from, "WHERE", (std::string("Of a new consumer: ") + kFromHelp).c_str())
      ->group(kSettings);
  number(app, "--ack-wait", options->ack_wait, "SECONDS", "Of a new consumer: then the message comes again (30)")
      ->group(kSettings);
  number(app, "--tries-max", options->tries_max, "N", "Of a new consumer: then the message is a dead letter")
      ->group(kSettings);
  text(app, "--dead-letters", options->dead_letters, "TOPIC", "Of a new consumer: where dead letters go")
      ->group(kSettings);
  app.add_flag("--redeclare", options->redeclare,
               "Give a consumer that is there these settings; another --from moves it")
      ->group(kSettings);
  auto priority = std::make_shared<std::uint64_t>(0);
  const CLI::Option* const given =
      number(app, "--priority", *priority, "N", "Of this member, 0 to 9: messages go to the lowest number with room")
          ->group(kMessages);
  app.add_flag("--no-ack", options->no_ack, "Only print; `weft stream ack` acknowledges by sequence")->group(kMessages);
  declare_shown(app, options->shown);
  declare_count(app, options->count, "End after so many messages");
  return [options, priority, given](Console& console) {
    if (given->count() != 0) {
      options->priority = *priority;
    }
    return stream_consume(console, *options);
  };
}

Run declare_stream_ack(CLI::App& app) {
  auto options = std::make_shared<StreamAckOptions>();
  declare_stream(app, options->name);
  text(app, "CONSUMER", options->consumer, "CONSUMER", "The consumer")->required();
  app.add_option("SEQUENCE", options->sequences, "Of messages that wait for it")->type_name("N")->required();
  declare_kept(app, options->fleet);
  return [options](Console& console) { return stream_ack(console, *options); };
}

Run declare_stream_purge(CLI::App& app) {
  auto options = std::make_shared<StreamPurgeOptions>();
  auto before = std::make_shared<std::uint64_t>(0);
  declare_stream(app, options->name);
  declare_kept(app, options->fleet);
  text(app, "-t,--topic", options->topic, "TOPIC", "Only this topic, of a stream that keeps the latest");
  const CLI::Option* const given = sequence(app, "--before", *before, "Only messages before this sequence");
  return [options, before, given](Console& console) {
    if (given->count() != 0) {
      options->before = *before;
    }
    return stream_purge(console, *options);
  };
}

// --- buckets ---

std::shared_ptr<BucketOptions> declare_bucket(CLI::App& app, bool key) {
  auto options = std::make_shared<BucketOptions>();
  text(app, "BUCKET", options->bucket, "BUCKET", "The bucket: one token")->required();
  if (key) {
    text(app, "KEY", options->key, "KEY", "Tokens with a dot between two: db.host")->required();
  }
  declare_kept(app, options->fleet);
  return options;
}

using WithRevision = int (*)(Console&, const BucketOptions&);
Run with_revision(CLI::App& app, const std::shared_ptr<BucketOptions>& options, WithRevision run) {
  auto revision = std::make_shared<std::uint64_t>(0);
  const CLI::Option* const given =
      sequence(app, "--revision", *revision, "Only if the key's newest change has this revision; 0: it has none");
  return [options, revision, given, run](Console& console) {
    if (given->count() != 0) {
      options->revision = *revision;
    }
    return run(console, *options);
  };
}

Run declare_kv_get(CLI::App& app) {
  const auto options = declare_bucket(app, true);
  declare_shown(app, options->shown);
  return [options](Console& console) { return kv_get(console, *options); };
}

Run declare_kv_put(CLI::App& app) {
  const auto options = declare_bucket(app, true);
  app.add_option("VALUE", options->value.words, "The value; - is standard input")
      ->type_name("TEXT")
      ->expected(0, 1)
      ->transform(unmarked());
  text(app, "-f,--file", options->value.file, "FILE", "FILE is the value, byte by byte; - is standard input");
  app.add_flag("--hex", options->value.hex, "VALUE is hexadecimal");
  app.add_flag("--if-absent", options->absent, "Only if the key has no value");
  number(app, "--ttl", options->time_to_live, "SECONDS", "For which the key has this value; 0: any time");
  text(app, "--survives", options->survives, "process|machine|power", kSurvivesHelp)->group(kSettings);
  return with_revision(app, options, kv_put);
}

Run declare_kv_delete(CLI::App& app) { return with_revision(app, declare_bucket(app, true), kv_delete); }

Run declare_kv_watch(CLI::App& app) {
  const auto options = declare_bucket(app, false);
  text(app, "FILTER", options->filter, "FILTER", "Of keys: db.*; without it every key");
  app.add_flag("--all", options->all, "The older values that the bucket keeps, too");
  declare_shown(app, options->shown);
  declare_count(app, options->count, "End after so many changes");
  return [options](Console& console) { return kv_watch(console, *options); };
}

Run declare_kv_ls(CLI::App& app) {
  auto options = std::make_shared<BucketOptions>();
  text(app, "BUCKET", options->bucket, "BUCKET", "Its keys; without it the buckets");
  text(app, "FILTER", options->filter, "FILTER", "Of keys: db.*; without it every key");
  declare_kept(app, options->fleet);
  return [options](Console& console) { return kv_ls(console, *options); };
}

std::vector<Command> stream_rows() {
  return {
      {"stream add",
       "Declare a stream: topics whose messages are kept",
       {{"weft stream add orders 'orders.>'", "every message, until 1 GiB drops the oldest"},
        {"weft stream add jobs 'jobs.>' --keep work", "each message until a consumer has acknowledged it"}},
       declare_stream_add},
      {"stream ls",
       "List the streams and their consumers",
       {{"weft stream ls --json", "an object of JSON for each stream"}},
       declare_stream_ls},
      {"stream info",
       "Show the settings and counts of a stream",
       {{"weft stream info orders", "its topics, bounds, messages and consumers"}},
       declare_stream_info},
      {"stream publish",
       "Publish messages that are kept, and print their sequences",
       {{"weft stream publish orders orders.eu 'a chair'", "prints the sequence when the message is on the disk"},
        {"weft stream publish orders orders.eu --id 17 'a table'", "tried again, it is stored once"},
        {"seq 10000 | weft stream publish orders orders.eu --window 500", "lines, many under way"}},
       declare_stream_publish},
      {"stream read",
       "Print the messages of a stream in order, then the new ones",
       {{"weft stream read orders", "from the first message, until Ctrl-C"},
        {"weft stream read orders 'orders.*' --from last --stored", "the newest one, and end"}},
       declare_stream_read},
      {"stream consume",
       "Print messages as a member of a consumer, and acknowledge them",
       {{"weft stream consume orders billing --count 1", "the next message that no member has acknowledged"},
        {"weft stream consume orders billing --no-ack --json", "prints sequences for `weft stream ack`"}},
       declare_stream_consume},
      {"stream ack",
       "Acknowledge messages of a consumer by their sequences",
       {{"weft stream ack orders billing 17 18", "exit code 1 if one of them does not wait"}},
       declare_stream_ack},
      {"stream purge",
       "Delete messages of a stream",
       {{"weft stream purge orders", "all of them"},
        {"weft stream purge orders --before 1000", "those before a sequence"}},
       declare_stream_purge},
      {"stream rm",
       "Remove a stream with its messages, or one of its consumers",
       {{"weft stream rm orders", "the stream"}, {"weft stream rm orders --consumer billing", "the consumer"}},
       declare_stream_rm},
  };
}

std::vector<Command> bucket_rows() {
  return {
      {"kv get",
       "Print the value of a key",
       {{"weft kv get config color", "exit code 1 if it has none"},
        {"weft kv get photos cat --raw > cat.jpg", "the bytes as they are"}},
       declare_kv_get},
      {"kv put",
       "Set the value of a key, and print its revision",
       {{"weft kv put config color blue", "makes the bucket if there is none"},
        {"weft kv put photos cat --file cat.jpg", "a file"},
        {"weft kv put config color red --revision 7", "exit code 1 if another program changed it since"}},
       declare_kv_put},
      {"kv delete",
       "Delete the value of a key, and print the revision",
       {{"weft kv delete config color", "watches get the deletion"}},
       declare_kv_delete},
      {"kv watch",
       "Print the values of a bucket, then each change",
       {{"weft kv watch config 'db.*'", "until Ctrl-C"}},
       declare_kv_watch},
      {"kv ls",
       "List the buckets, or the keys of one",
       {{"weft kv ls", "the buckets"}, {"weft kv ls config 'db.*'", "keys"}},
       declare_kv_ls},
  };
}

}  // namespace

std::vector<Command> kept_commands() {
  std::vector<Command> all = stream_rows();
  for (auto* const rows : {stream_move_commands, bucket_rows, bucket_move_commands}) {
    for (Command& row : rows()) {
      all.push_back(std::move(row));
    }
  }
  return all;
}

}  // namespace weft::cli
