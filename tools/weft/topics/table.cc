// SPDX-License-Identifier: MIT
// The rows of topics, the hub, the bridge and a fleet on NATS.
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tools/weft/bridge/command.h"
#include "tools/weft/declare.h"
#include "tools/weft/topics/declare_topics.h"
#include "tools/weft/topics/hub.h"
#include "tools/weft/topics/messages.h"
#include "tools/weft/topics/nats_acl.h"
#include "tools/weft/topics/nats_doctor.h"
#include "tools/weft/topics/nats_servers.h"

namespace weft::cli {

namespace {

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
  auto options = std::make_shared<FleetDoctorOptions>();
  options->fleet.fleet.clear();
  text(app, "FLEET", options->fleet.fleet, "FLEET", "nats://HOST:PORT,... or tls://HOST:PORT,...")->required();
  app.add_flag("--strict", options->strict, "Exit code 1 when there is a warning");
  number(app, "--timeout", options->fleet.timeout, "SECONDS", "For each answer (5)");
  text(app, "--creds", options->fleet.credentials, "FILE", "The credentials of the user of the handles")
      ->group(kSecurity);
  declare_tls(app, options->fleet, " for tls+tcp", "");
  texts(app, "--monitor", options->monitors, "URL",
        "http://HOST:PORT of a server's monitor, which tells when its disk has a message; repeatable");
  return [options](Console& console) { return fleet_doctor(console, *options); };
}

Run declare_fleet_acl(CLI::App& app) {
  auto options = std::make_shared<FleetAclOptions>();
  text(app, "--space", options->space, "SPACE", "The first token of every topic");
  texts(app, "--publish", options->publish, "TOPIC", "Topics that the user publishes: a topic, or tokens; repeatable");
  texts(app, "--subscribe", options->subscribe, "TOPIC", "Topics that the user subscribes to");
  texts(app, "--request", options->request, "TOPIC", "Services that the user asks");
  texts(app, "--serve", options->serve, "TOPIC", "Services that the user is");
  texts(app, "--stream", options->streams, "NAME",
        "Streams that the user may do everything with; --publish: its topics");
  texts(app, "--consume", options->consumed, "NAME", "Streams, which are there, that the user reads and consumes");
  texts(app, "--bucket", options->buckets, "NAME", "Buckets that the user may do everything with");
  texts(app, "--watch", options->watched, "NAME", "Buckets, which are there, that the user reads and watches");
  return [options](Console& console) { return fleet_acl(console, *options); };
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
  for (Command& row : kept_commands()) {
    all.push_back(std::move(row));
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
                 "Check the servers of a fleet on NATS: version, bounds, encryption, permissions, streams",
                 {{"weft fleet doctor nats://127.0.0.1:4222", "with a warning for each thing to change"},
                  {"weft fleet doctor nats://10.0.0.1:4222 --monitor http://10.0.0.1:8222",
                   "also the faults that each stream survives, by the server's own settings"},
                  {"weft fleet doctor tls://10.0.0.1:4222 --creds app.creds --strict", "exit code 1 after a warning"}},
                 declare_fleet_doctor});
  all.push_back({"fleet acl",
                 "Print the permissions of nats-server that a user of a fleet needs",
                 {{"weft fleet acl", "of a user who may do everything"},
                  {"weft fleet acl --publish 'px.>' --serve svc.quote", "of a user who publishes and serves"},
                  {"weft fleet acl --stream orders --publish 'orders.>'", "of a user who keeps topics"},
                  {"weft fleet acl --request 'svc.*' --json", "for other tools"}},
                 declare_fleet_acl});
  return all;
}

}  // namespace weft::cli
