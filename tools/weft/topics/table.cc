// SPDX-License-Identifier: MIT
// The rows of topics, streams, buckets and the hub.
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tools/weft/bridge/command.h"
#include "tools/weft/declare.h"
#include "tools/weft/topics/buckets.h"
#include "tools/weft/topics/hub.h"
#include "tools/weft/topics/kept.h"
#include "tools/weft/topics/messages.h"
#include "tools/weft/topics/nats_acl.h"
#include "tools/weft/topics/nats_doctor.h"
#include "tools/weft/topics/nats_servers.h"

namespace weft::cli {

namespace {

constexpr const char* kFleet = "Fleet";
constexpr const char* kSettings = "Settings";

void declare_local(CLI::App& app, FleetOptions& fleet) {
  text(app, "--fleet", fleet.fleet, "FLEET", "local (the default), or local:NAME")->group(kFleet);
  text(app, "--directory", fleet.directory, "DIR", "Where its programs meet; else the runtime directory of the user")
      ->group(kFleet);
}

void declare_kept(CLI::App& app, FleetOptions& fleet) {
  declare_local(app, fleet);
  text(app, "--hub", fleet.hub, "ENDPOINT",
       "tls+tcp://HOST:PORT, tcp://HOST:PORT, ipc://PATH: a hub of another host or user; else that of the fleet")
      ->group(kFleet);
  declare_tls(app, fleet, " for tls+tcp", "");
  text(app, "--curve-key", fleet.curve_key, "FILE",
       "For a hub at tcp://: our pair, as `weft keygen --out FILE` writes it")
      ->group(kSecurity);
  text(app, "--curve-server-key", fleet.curve_hub_key, "KEY", "The public key of that hub, or its file")
      ->group(kSecurity);
  text(app, "--space", fleet.space, "SPACE", "The first token of every name")->group(kFleet);
  number(app, "--timeout", fleet.timeout, "SECONDS", "For each answer (30) and each message (no end)")->group(kFleet);
}

void declare_fleet(CLI::App& app, FleetOptions& fleet) {
  text(app, "--fleet", fleet.fleet, "FLEET",
       "local (the default), local:NAME, tcp://HOST:PORT,..., tls+tcp://HOST:PORT,... or nats://HOST:PORT,...")
      ->group(kFleet);
  text(app, "--directory", fleet.directory, "DIR", "Where the programs of a local fleet meet")->group(kFleet);
  text(app, "--space", fleet.space, "SPACE", "The first token of every topic")->group(kFleet);
  text(app, "--listen", fleet.listen, "ENDPOINT", "Of a tcp fleet: where its handles connect; else a free port")
      ->group(kFleet);
  number(app, "--timeout", fleet.timeout, "SECONDS", "For each answer (30) and each message (no end)")->group(kFleet);
  text(app, "--curve-key", fleet.curve_key, "FILE", "The fleet's pair, as `weft keygen --out FILE` writes it")
      ->group(kSecurity);
  text(app, "--creds", fleet.credentials, "FILE", "Of a nats fleet: the credentials of its user")->group(kSecurity);
  declare_tls(app, fleet, " for tls+tcp", "");
}

void declare_shown(CLI::App& app, ShownOptions& shown) {
  app.add_flag("--hex", shown.hex, "Bytes are hexadecimal")->group(kMessages);
  app.add_flag("--raw", shown.raw, "Print the bodies as they are, with nothing between them")->group(kMessages);
}

void declare_count(CLI::App& app, std::uint64_t& count, const char* help) {
  number(app, "-n,--count", count, "N", help)->group(kMessages);
}

// Words that the command takes apart: a topic may be --topic instead.
void declare_words(CLI::App& app, std::vector<std::string>& words, std::string& topic, const char* help) {
  text(app, "-t,--topic", topic, "TOPIC", "The topic, instead of the first argument")->group(kMessages);
  app.add_option("TOPIC", words, help)->type_name("[BODY]")->transform(unmarked());
}

void declare_headers(CLI::App& app, std::vector<std::string>& headers) {
  texts(app, "-H,--header", headers, "NAME:VALUE", "A header of each message; repeatable")->group(kMessages);
}

constexpr const char* kBodyHelp =
    "The topic and the message. BODY is -: standard input as one message. Without BODY: lines of input";

// --- topics ---

Run declare_topic_pub(CLI::App& app) {
  auto options = std::make_shared<TopicPubOptions>();
  declare_words(app, options->words, options->topic, kBodyHelp);
  declare_fleet(app, options->fleet);
  declare_source(app, options->source);
  app.add_flag("--hex", options->source.hex, "Bytes are hexadecimal, in arguments and lines")->group(kMessages);
  declare_count(app, options->source.count, "Send so many messages; a BODY is sent once without it");
  declare_headers(app, options->headers);
  number(app, "-w,--wait", options->wait, "N", kWaitHelp)->group(kMessages);
  return [options](Console& console) { return topic_pub(console, *options); };
}

Run declare_topic_sub(CLI::App& app) {
  auto options = std::make_shared<TopicSubOptions>();
  app.add_option("FILTER", options->filters, "Topics, or tokens: px.*, news.>")
      ->type_name("FILTER")
      ->transform(unmarked());
  declare_fleet(app, options->fleet);
  texts(app, "-t,--topic", options->topics, "FILTER", "The same as an argument; repeatable")->group(kMessages);
  app.add_flag("--prefix", options->prefix, "The filters are prefixes")->group(kMessages);
  app.add_flag("--glob", options->glob, "The filters are globs, such as user.*.st[ao]rt?d")->group(kMessages);
  declare_shown(app, options->shown);
  declare_count(app, options->count, "End after so many messages");
  return [options](Console& console) { return topic_sub(console, *options); };
}

Run declare_topic_tap(CLI::App& app) {
  auto options = std::make_shared<TopicSubOptions>();
  options->filters = {">"};
  declare_fleet(app, options->fleet);
  declare_shown(app, options->shown);
  declare_count(app, options->count, "End after so many messages");
  return [options](Console& console) { return topic_sub(console, *options); };
}

Run declare_topic_ls(CLI::App& app) {
  auto options = std::make_shared<TopicLsOptions>();
  text(app, "FILTER", options->filter, "FILTER", "Only owned topics that match");
  declare_fleet(app, options->fleet);
  return [options](Console& console) { return topic_ls(console, *options); };
}

Run declare_request(CLI::App& app) {
  auto options = std::make_shared<RequestOptions>();
  declare_words(app, options->words, options->topic, kBodyHelp);
  declare_fleet(app, options->fleet);
  declare_source(app, options->source);
  declare_shown(app, options->shown);
  declare_count(app, options->source.count, "Send so many requests; a BODY is sent once without it");
  declare_headers(app, options->headers);
  return [options](Console& console) {
    options->source.hex = options->shown.hex;
    return request(console, *options);
  };
}

Run declare_reply(CLI::App& app) {
  auto options = std::make_shared<ReplyOptions>();
  declare_words(app, options->words, options->topic, "The topic, and the reply; without BODY the reply is the request");
  declare_fleet(app, options->fleet);
  text(app, "--group", options->group, "GROUP", "One member of each group gets a request")->group(kFleet);
  declare_shown(app, options->shown);
  declare_count(app, options->count, "End after so many requests");
  return [options](Console& console) { return reply(console, *options); };
}

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
  text(app, "--survives", options->survives, "process|power", "The fault that loses no message (power)")
      ->group(kSettings);
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
  app.add_flag("--no-ack", options->no_ack, "Only print; `weft stream ack` acknowledges by sequence")->group(kMessages);
  declare_shown(app, options->shown);
  declare_count(app, options->count, "End after so many messages");
  return [options](Console& console) { return stream_consume(console, *options); };
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

// --- the hub ---

Run declare_hub(CLI::App& app) {
  auto options = std::make_shared<HubRunOptions>();
  declare_local(app, options->fleet);
  text(app, "--store", options->store, "DIR", "Of the file of the store; else the state directory of the user")
      ->group(kSettings);
  bytes(app, "--store-max", options->store_bytes_max, "Of the file; without it as much as the disk holds")
      ->group(kSettings);
  number(app, "--clients-max", options->clients_max, "N",
         "Connections of members, to 16384 and the hard limit of descriptors (1024)")
      ->group(kSettings);
  number(app, "--address-max", options->address_clients_max, "N",
         "Of them from one address, such as that of a NAT, at --listen (half)")
      ->group(kSettings);
  text(app, "--listen", options->listen, "ENDPOINT",
       "Also for other hosts: tls+tcp://HOST:PORT, with --tls-cert, --tls-key and --tls-ca; or tcp://HOST:PORT, with "
       "--curve-key and --curve-members")
      ->group(kSettings);
  text(app, "--group", options->group, "GROUP", "Also for the members of this group, at --group-socket")
      ->group(kSettings);
  text(app, "--group-socket", options->group_socket, "PATH",
       "A socket in a directory of mode 0750, which the hub can make")
      ->group(kSettings);
  text(app, "--admin", options->serving.admin, "ENDPOINT", "An admin port: /metrics, /healthz and /readyz")
      ->group(kSettings);
  number(app, "--drain", options->drain, "SECONDS", "From SIGTERM, while /readyz fails, to the stop (0)")
      ->group(kSettings);
  text(app, "--token-file", options->serving.token_file, "FILE", "Its first line is the token of the admin port")
      ->group(kSecurity);
  text(app, "--curve-key", options->curve_key, "FILE", "The hub's pair, as `weft keygen --out FILE` writes it")
      ->group(kSecurity);
  text(app, "--curve-members", options->curve_members, "FILE",
       "The public keys of members, as `weft keygen` writes them: lines `public KEY`; others are refused. SIGHUP reads "
       "it again")
      ->group(kSecurity);
  app.add_flag("--admin-no-client-cert", options->serving.admin_no_client_cert,
               "Clients of --admin need no certificate of --tls-ca, only the token")
      ->group(kSecurity);
  text(app, "--tls-cert", options->serving.tls_certificate, "FILE", "PEM: the certificate of --listen and of --admin")
      ->group(kSecurity);
  text(app, "--tls-key", options->serving.tls_key, "FILE", "PEM: its key")->group(kSecurity);
  text(app, "--tls-ca", options->serving.tls_authorities, "FILE",
       "PEM: the authorities of members at --listen and of clients of --admin")
      ->group(kSecurity);
  return [options](Console& console) { return run_hub(console, *options); };
}

// --- a bridge ---

Run declare_bridge(CLI::App& app) {
  auto options = std::make_shared<BridgeOptions>();
  text(app, "FILE", options->file, "FILE", "The sections of the bridge, and its fleet")->required();
  app.add_flag("--check", options->check, "Check FILE and the keys that it names, and end")->group(kSettings);
  text(app, "--admin", options->serving.admin, "ENDPOINT", "An admin port: /metrics, /healthz and /readyz")
      ->group(kSettings);
  text(app, "--token-file", options->serving.token_file, "FILE", "Its first line is the token of the admin port")
      ->group(kSecurity);
  app.add_flag("--admin-no-client-cert", options->serving.admin_no_client_cert,
               "Clients of --admin need no certificate of --tls-ca, only the token")
      ->group(kSecurity);
  text(app, "--tls-cert", options->serving.tls_certificate, "FILE", "PEM: the certificate of --admin")
      ->group(kSecurity);
  text(app, "--tls-key", options->serving.tls_key, "FILE", "PEM: its key")->group(kSecurity);
  text(app, "--tls-ca", options->serving.tls_authorities, "FILE", "PEM: the authorities of clients of --admin")
      ->group(kSecurity);
  return [options](Console& console) { return run_bridge(console, *options); };
}

// --- a fleet on NATS ---

Run declare_fleet_up(CLI::App& app) {
  auto options = std::make_shared<FleetUpOptions>();
  number(app, "--servers", options->servers, "N", "1 to 9 (3); several are a cluster");
  number(app, "--port", options->port, "PORT", "Of the first server, and the next ports; else each chooses a free one");
  text(app, "--program", options->program, "FILE", "The program nats-server; else that on the path");
  text(app, "--store", options->store, "DIR", "Where they keep topics; else they keep nothing");
  return [options](Console& console) { return fleet_up(console, *options); };
}

Run declare_fleet_doctor(CLI::App& app) {
  struct Options {
    FleetOptions fleet{};
    bool strict = false;
  };
  auto options = std::make_shared<Options>();
  options->fleet.fleet.clear();
  text(app, "FLEET", options->fleet.fleet, "FLEET", "nats://HOST:PORT,... or tls://HOST:PORT,...")->required();
  app.add_flag("--strict", options->strict, "Exit code 1 when there is a warning");
  number(app, "--timeout", options->fleet.timeout, "SECONDS", "For each answer (5)");
  text(app, "--creds", options->fleet.credentials, "FILE", "The credentials of the user of the handles")
      ->group(kSecurity);
  declare_tls(app, options->fleet, " for tls+tcp", "");
  return [options](Console& console) { return fleet_doctor(console, options->fleet, options->strict); };
}

Run declare_fleet_acl(CLI::App& app) {
  auto options = std::make_shared<FleetAclOptions>();
  text(app, "--space", options->space, "SPACE", "The first token of every topic");
  texts(app, "--publish", options->publish, "TOPIC", "Topics that the user publishes: a topic, or tokens; repeatable");
  texts(app, "--subscribe", options->subscribe, "TOPIC", "Topics that the user subscribes to");
  texts(app, "--request", options->request, "TOPIC", "Services that the user asks");
  texts(app, "--serve", options->serve, "TOPIC", "Services that the user is");
  return [options](Console& console) { return fleet_acl(console, *options); };
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

std::vector<Command> topic_commands() {
  std::vector<Command> all = {
      {"topic pub",
       "Publish messages to a topic",
       {{"weft topic pub px.AAPL 188.20", "once a subscription of px.AAPL is ready"},
        {"cat photo.jpg | weft topic pub photos -", "standard input as one message"},
        {"weft topic pub px.AAPL --lines prices.txt --rate 10", "each line, ten a second"}},
       declare_topic_pub},
      {"topic sub",
       "Print the messages of topics",
       {{"weft topic sub 'px.*' news.de", "topics, or tokens"},
        {"weft topic sub --glob 'user.*.st[ao]rt?d' --json", "an object of JSON for each message"}},
       declare_topic_sub},
      {"topic tap",
       "Print the messages of every topic",
       {{"weft topic tap --count 10", "ten of them"}},
       declare_topic_tap},
      {"topic ls",
       "List the other handles of a fleet, and the topics that are owned",
       {{"weft topic ls --fleet tcp://10.0.0.1:7300", "of a fleet of hosts"}},
       declare_topic_ls},
  };
  for (auto* const rows : {stream_rows, bucket_rows}) {
    for (Command& row : rows()) {
      all.push_back(std::move(row));
    }
  }
  all.push_back({"request",
                 "Send requests to a service of a fleet, and print the replies",
                 {{"weft request svc.upper hello --timeout 2", "exit code 1 if nobody serves the topic"}},
                 declare_request});
  all.push_back({"reply",
                 "Serve a topic: print requests, and reply to them",
                 {{"weft reply svc.echo", "replies with the request"},
                  {"weft reply svc.time 12:00 --group clocks --count 1", "one reply of one member of a group"}},
                 declare_reply});
  all.push_back({"hub",
                 "Be the hub of a local fleet: the server of its kept topics, until SIGTERM or Ctrl-C",
                 {{"weft hub", "the fleet of this user, its store in the state directory"},
                  {"weft hub --store /var/lib/weft --admin tcp://127.0.0.1:9090", "with /metrics and /healthz"},
                  {"weft hub --listen tls+tcp://0.0.0.0:7400 --tls-cert hub.pem --tls-key hub.key --tls-ca ca.pem",
                   "also for other hosts, whose programs have certificates"},
                  {"weft hub --fleet local:shop", "a second one waits, and takes over when the first one ends"}},
                 declare_hub});
  all.push_back({"bridge",
                 "Carry messages between programs of ZeroMQ and a fleet, until SIGTERM or Ctrl-C",
                 {{"weft bridge bridge.toml", "the sections of the file"},
                  {"weft bridge bridge.toml --check", "each problem with its line; exit code 1 if there is one"},
                  {"weft bridge bridge.toml --admin tcp://127.0.0.1:9091", "with /metrics and /readyz"}},
                 declare_bridge});
  all.push_back({"fleet up",
                 "Run servers of NATS on this machine until Ctrl-C, to try a fleet on them",
                 {{"weft fleet up", "three in a cluster; prints the text for --fleet"},
                  {"weft fleet up --servers 1 --port 4222", "one at the usual port"}},
                 declare_fleet_up});
  all.push_back({"fleet doctor",
                 "Check the servers of a fleet on NATS: version, bounds, encryption, permissions",
                 {{"weft fleet doctor nats://127.0.0.1:4222", "with a warning for each thing to change"},
                  {"weft fleet doctor tls://10.0.0.1:4222 --creds app.creds --strict", "exit code 1 after a warning"}},
                 declare_fleet_doctor});
  all.push_back({"fleet acl",
                 "Print the permissions of nats-server that a user of a fleet needs",
                 {{"weft fleet acl", "of a user who may do everything"},
                  {"weft fleet acl --publish 'px.>' --serve svc.quote", "of a user who publishes and serves"},
                  {"weft fleet acl --request 'svc.*' --json", "for other tools"}},
                 declare_fleet_acl});
  return all;
}

}  // namespace weft::cli
