// SPDX-License-Identifier: MIT
#include "tools/weft/table.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <iterator>
#include <memory>
#include <string>
#include <utility>

#include "tools/weft/bench.h"
#include "tools/weft/call.h"
#include "tools/weft/configuration.h"
#include "tools/weft/declare.h"
#include "tools/weft/doctor.h"
#include "tools/weft/keys.h"
#include "tools/weft/link.h"
#include "tools/weft/pages.h"
#include "tools/weft/proxy.h"
#include "tools/weft/report.h"
#include "tools/weft/talk.h"
#include "tools/weft/tap.h"
#include "tools/weft/top.h"

namespace weft::cli {

namespace {

constexpr const char* kEndpoints = "Endpoints";
constexpr const char* kSystemAuthorities = "; else the system's authorities";

void declare_security(CLI::App& app, LinkOptions& link) {
  app.add_flag("--curve-server", link.curve_server, "Be the server of CURVE; needs --curve-key")->group(kSecurity);
  text(app, "--curve-key", link.curve_key, "FILE", "Our pair, as `weft keygen --out FILE` writes it")->group(kSecurity);
  text(app, "--curve-server-key", link.curve_server_key, "KEY",
       "Be a client of CURVE: the server's public key, or its file; without --curve-key the client's pair is fresh")
      ->group(kSecurity);
  declare_tls(app, link, " for tls+tcp and wss", kSystemAuthorities);
}

void declare_link(CLI::App& app, LinkOptions& link) {
  texts(app, "-b,--bind", link.bind, "ENDPOINT", "Listen there; repeatable. Port * lets the system choose")
      ->group(kEndpoints);
  texts(app, "-c,--connect", link.connect, "ENDPOINT", "Connect to it; repeatable")->group(kEndpoints);
  texts(app, "-s,--set", link.settings, "NAME=VALUE", "An option of the socket (docs/options.md), times in ms")
      ->group(kEndpoints);
  number(app, "--timeout", link.timeout, "SECONDS", "For each message or peer; without it a wait has no end")
      ->group(kEndpoints);
  app.add_flag("-v,--verbose", link.verbose, "Say what happens to connections, on standard error")->group(kEndpoints);
  declare_security(app, link);
}

const char* count_help(Role role) {
  if (!role_sends(role) || role_replies(role)) {
    return "End after so many messages";
  }
  return "Send so many messages; a PART is sent once without it";
}

template <Role role>
Run declare_talk(CLI::App& app) {
  auto options = std::make_shared<TalkOptions>();
  declare_link(app, options->link);
  SourceOptions& source = options->source;
  number(app, "-n,--count", source.count, "N", count_help(role))->group(kMessages);
  app.add_flag("--hex", source.hex, "Bytes are hexadecimal, in arguments, in lines and in what is printed")
      ->group(kMessages);
  if constexpr (role_receives(role)) {
    app.add_flag("--raw", options->raw, "Print the bytes as they are, with nothing between them")->group(kMessages);
  }
  if constexpr (role_sends(role)) {
    app.add_option("PART", source.parts,
                   role_replies(role) ? "The reply to each message; several are the parts of one"
                                      : "The message; several are the parts of one. Without it: lines of input")
        ->type_name("TEXT")
        ->transform(unmarked());
  }
  if constexpr (role_sends(role) && !role_replies(role)) {
    declare_source(app, source);
  }
  if constexpr (role == Role::pub || role == Role::push) {
    number(app, "-w,--wait", options->wait, "N",
           role == Role::pub ? kWaitHelp : "Begin when so many peers are there (1)")
        ->group(kMessages);
  }
  if constexpr (role == Role::pub) {
    texts(app, "-t,--topic", options->topics, "TOPIC", "The first part of every message")->group(kMessages);
  } else if constexpr (role == Role::sub) {
    texts(app, "-t,--topic", options->topics, "PREFIX", "Only messages that begin so; repeatable")->group(kMessages);
    app.add_flag("--glob", options->glob, "The topics are globs, such as px.*.usd")->group(kMessages);
  } else if constexpr (role_replies(role)) {
    app.add_flag("--echo", options->echo, "Reply with the request; what a rep without PART does")->group(kMessages);
  } else if constexpr (role == Role::dealer) {
    app.add_flag("--receive", options->receive, "Send nothing; print what comes")->group(kMessages);
  }
  return [options](Console& console) { return talk(console, role, *options); };
}

Run declare_keygen(CLI::App& app) {
  auto options = std::make_shared<KeygenOptions>();
  text(app, "-o,--out", options->out, "FILE", "Write FILE (mode 600) and FILE.pub; neither may be there");
  text(app, "--public", options->public_of, "FILE", "Print the public key of the secret key in FILE");
  return [options](Console& console) { return keygen(console, *options); };
}

Run declare_proxy(CLI::App& app) {
  auto options = std::make_shared<DeviceOptions>();
  text(app, "DEVICE", options->device, "forwarder|queue|streamer",
       "PUB to SUB, REQ and DEALER to REP and DEALER, PUSH to PULL")
      ->required();
  text(app, "FRONTEND", options->frontend, "ENDPOINT", "For publishers, clients, or pushers")->required();
  text(app, "BACKEND", options->backend, "ENDPOINT", "For subscribers, servers, or workers")->required();
  app.add_flag("--connect-frontend", options->connect_frontend, "Connect to FRONTEND instead of listening there");
  app.add_flag("--connect-backend", options->connect_backend, "Connect to BACKEND instead of listening there");
  text(app, "--capture", options->capture, "ENDPOINT", "Listen there as a PUB of every message");
  number(app, "--every", options->every, "SECONDS", "Print counters so often");
  return [options](Console& console) { return run_device(console, *options); };
}

Run declare_bench(CLI::App& app) {
  auto options = std::make_shared<BenchOptions>();
  declare_link(app, options->link);
  number(app, "--size", options->size, "BYTES", "Of each message (64)");
  number(app, "--seconds", options->seconds, "SECONDS", "For round trips, and again for throughput (1)");
  return [options](Console& console) { return bench(console, *options); };
}

Run declare_tap(CLI::App& app) {
  auto options = std::make_shared<TapOptions>();
  text(app, "LISTEN", options->listen, "ENDPOINT", "Clients connect to it, tcp:// or ipc://")->required();
  text(app, "REMOTE", options->remote, "ENDPOINT", "Their bytes go there, and back, as they are; tcp:// or ipc://")
      ->required();
  number(app, "--bodies", options->bodies, "N", "Show the first N bytes of each part (32); 0: only sizes");
  number(app, "-n,--count", options->count, "N", "End after so many messages of both directions");
  return [options](Console& console) { return tap(console, *options); };
}

void declare_admin(CLI::App& app, AdminPort& port) {
  text(app, "--token-file", port.token_file, "FILE", "Its first line is the token of the admin port")->group(kSecurity);
  declare_tls(app, port, ", for a port that requests one", kSystemAuthorities);
}

Run declare_call(CLI::App& app) {
  auto options = std::make_shared<CallOptions>();
  text(app, "ENDPOINT", options->endpoint, "ENDPOINT", "A server of remote calls, tcp://, tls+tcp:// or ipc://")
      ->required();
  text(app, "METHOD", options->method, "METHOD", "The method's name; without it the server's methods are listed");
  app.add_option("BODY", options->body.words, "The request; - is standard input; without it the request is empty")
      ->type_name("TEXT")
      ->transform(unmarked());
  text(app, "--file", options->body.file, "FILE", "The request is the file's bytes; - is standard input")
      ->group(kMessages);
  app.add_flag("--hex", options->shown.hex, "The request and the answer are hexadecimal")->group(kMessages);
  app.add_flag("--raw", options->shown.raw, "Print the answer's bytes as they are")->group(kMessages);
  text(app, "--schema", options->schema, "FILE", "A .fbs of FlatBuffers: the request and the answer are JSON")
      ->group(kMessages);
  text(app, "--request", options->request, "TABLE", "The request's table in --schema; else its root_type")
      ->group(kMessages);
  text(app, "--response", options->response, "TABLE", "The answer's table in --schema; else its root_type")
      ->group(kMessages);
  number(app, "--timeout", options->timeout, "SECONDS", "For the connection and the answer (10)");
  declare_tls(app, *options, "", kSystemAuthorities);
  return [options](Console& console) {
    options->body.hex = options->shown.hex;
    return call(console, *options);
  };
}

Run declare_top(CLI::App& app) {
  auto options = std::make_shared<TopOptions>();
  text(app, "ADMIN", options->admin.endpoint, "ENDPOINT", "The program's admin port, tcp://, tls+tcp:// or ipc://")
      ->required();
  number(app, "-i,--interval", options->interval, "SECONDS", "Between two samples (1)");
  number(app, "-n,--count", options->count, "N", "End after so many samples");
  app.add_flag("--traces", options->traces, "The slowest recorded operations of the last two minutes, instead");
  app.add_flag("--once", options->once, "Print the totals at once, and end; rates need two reads");
  number(app, "--timeout", options->timeout, "SECONDS", "For each answer of the admin port (5)");
  declare_admin(app, options->admin);
  return [options](Console& console) { return top(console, *options); };
}

Run declare_doctor(CLI::App& app) {
  auto strict = std::make_shared<bool>(false);
  app.add_flag("--strict", *strict, "Exit code 1 when a line is a warning");
  return [strict](Console& console) { return doctor(console, *strict); };
}

Run declare_report(CLI::App& app) {
  auto options = std::make_shared<ReportOptions>();
  text(app, "--admin", options->admin.endpoint, "ENDPOINT", "Add the counters of the program with this admin port");
  number(app, "--timeout", options->timeout, "SECONDS", "For its answer (5)");
  declare_admin(app, options->admin);
  return [options](Console& console) { return report(console, *options); };
}

Run declare_config(CLI::App& app) {
  auto options = std::make_shared<ConfigurationOptions>();
  text(app, "ACTION", options->action, "check|show",
       "Check FILE, with its environment and certificates; or show each key with its value, or with its default")
      ->required();
  text(app, "FILE", options->file, "FILE", "A server's configuration (docs/configuration.md)");
  text(app, "--prefix", options->prefix, "PREFIX", "Of environment variables that set keys (WEFT); '' for none");
  app.add_flag("--no-files", options->no_files, "Do not read the certificates that FILE names");
  return [options](Console& console) { return configuration(console, *options); };
}

int print_page(Console& console, const std::string& page) {
  console.print(console.json ? to_json({{"page", page}}) + "\n" : page);
  return 0;
}

Run declare_completion(CLI::App& app) {
  auto shell = std::make_shared<std::string>();
  text(app, "SHELL", *shell, "bash|zsh|fish", "Whose completion")->required();
  return [shell](Console& console) { return print_page(console, completion(*shell)); };
}

Run declare_manual(CLI::App& app) {
  struct Options {
    std::vector<std::string> words;
    std::string out;
  };
  auto options = std::make_shared<Options>();
  app.add_option("NAME", options->words, "The page of this command; without it that of weft")->type_name("COMMAND");
  text(app, "-o,--out", options->out, "DIR", "Write every page into DIR: weft.1, weft-sub.1, weft-kv-get.1");
  return [options](Console& console) {
    if (!options->out.empty()) {
      write_manuals(options->out);
      return 0;
    }
    std::string name;
    for (const std::string& word : options->words) {
      name += (name.empty() ? "" : " ") + word;
    }
    return print_page(console, manual(name));
  };
}

std::vector<Command> socket_commands() {
  return {
      {"pub",
       "Publish messages",
       {{"weft pub --bind tcp://*:5556 --topic px.AAPL 188.20", "one message of two parts, once a subscriber is there"},
        {"seq 100 | weft pub --bind tcp://*:5556 --rate 10", "lines of standard input, ten a second"}},
       declare_talk<Role::pub>},
      {"sub",
       "Subscribe, and print what comes",
       {{"weft sub --connect tcp://127.0.0.1:5556 --topic px. --json", "an object of JSON for each message"},
        {"weft sub --connect tcp://127.0.0.1:5556 --count 1 --timeout 5", "exit code 1 if nothing comes in 5 s"}},
       declare_talk<Role::sub>},
      {"push",
       "Send messages to workers, in turn",
       {{"weft push --connect tcp://127.0.0.1:5557 'task 1'", "waits until a worker took it"},
        {"weft push --bind ipc:///tmp/jobs --lines jobs.txt --wait 2", "begins when two workers are there"}},
       declare_talk<Role::push>},
      {"pull",
       "Take messages as a worker, and print them",
       {{"weft pull --bind tcp://*:5557 --hex", "bytes as hexadecimal"},
        {"weft pull --connect ipc:///tmp/jobs --raw --count 1 > job", "the bytes as they are"}},
       declare_talk<Role::pull>},
      {"req",
       "Send requests, and print the replies",
       {{"weft req --connect tcp://127.0.0.1:5555 hello --timeout 5", "one request"},
        {"weft req --connect tcp://127.0.0.1:5555 ping --count 5 --interval 1", "one a second"}},
       declare_talk<Role::req>},
      {"rep",
       "Print requests, and reply to them",
       {{"weft rep --bind tcp://*:5555", "replies with the request"},
        {"weft rep --bind tcp://*:5555 200 OK --count 10", "replies with these two parts, ten times"}},
       declare_talk<Role::rep>},
      {"dealer",
       "Send messages, and print as many replies",
       {{"weft dealer --connect tcp://127.0.0.1:5555 '' hello", "to a REP, whose messages begin with an empty part"},
        {"weft dealer --bind tcp://*:5558 --receive", "only prints"}},
       declare_talk<Role::dealer>},
      {"router",
       "Print messages with their senders' routing ids, and reply",
       {{"weft router --bind tcp://*:5555 --echo", "replies with the message"},
        {"weft router --bind tcp://*:5555 --hex", "prints only; routing ids are bytes"}},
       declare_talk<Role::router>},
  };
}

std::vector<Command> tool_commands() {
  return {
      {"keygen",
       "Make a pair of CURVE keys",
       {{"weft keygen --out server.key", "server.key stays secret; clients need server.key.pub"},
        {"weft sub --connect tcp://127.0.0.1:5556 --curve-server-key server.key.pub", "uses it"}},
       declare_keygen},
      {"proxy",
       "Carry messages between two endpoints, until Ctrl-C",
       {{"weft proxy forwarder tcp://*:5559 tcp://*:5560 --every 1", "publishers at 5559, subscribers at 5560"},
        {"weft proxy queue tcp://*:5555 tcp://worker:5555 --connect-backend", "requests to a server behind it"}},
       declare_proxy},
      {"tap",
       "Pass bytes on between two endpoints, and print what is said in ZMTP, until Ctrl-C",
       {{"weft tap tcp://*:5556 tcp://127.0.0.1:5555", "clients of 5556 speak with the server at 5555"},
        {"weft tap ipc:///tmp/seen ipc:///tmp/jobs --count 10 --bodies 0", "ten messages, without their bytes"},
        {"weft tap tcp://*:5556 tcp://127.0.0.1:5555 --json", "an object of JSON for each thing said"}},
       declare_tap},
      {"bench",
       "Measure round trips and throughput between two endpoints",
       {{"weft bench", "both ends in this process, over tcp"},
        {"weft bench --bind tcp://*:5600", "the end that answers, on another machine"},
        {"weft bench --connect tcp://other:5600 --size 1024", "the end that measures"}},
       declare_bench},
      {"call",
       "Call a method of a server, or list its methods",
       {{"weft call tcp://127.0.0.1:7000", "the methods of the server, a line each"},
        {"weft call tcp://127.0.0.1:7000 text.reverse weft", "a request and an answer of bytes"},
        {"weft call tcp://127.0.0.1:7000 calc.add '{\"a\": 1, \"b\": 2}' --schema calc.fbs --request Sum --response "
         "Total",
         "tables of FlatBuffers as JSON"}},
       declare_call},
      {"top",
       "Show the sockets, sessions, cores and topics of a program with an admin port, until Ctrl-C",
       {{"weft top tcp://127.0.0.1:9090", "a table that a terminal shows anew each second"},
        {"weft top tcp://127.0.0.1:9090 --once", "the totals, for a script or a look"},
        {"weft top tcp://127.0.0.1:9090 --interval 10 --count 6 --json", "six objects of JSON, with rates"},
        {"weft top tcp://127.0.0.1:9090 --traces --once", "the slowest operations, with the ids of their traces"},
        {"weft top tls+tcp://shop.example:9100 --tls-ca ca.pem --token-file admin.token", "from another machine"}},
       declare_top},
      {"config",
       "Check a server's file of configuration, or show its keys",
       {{"weft config check server.toml", "each problem with its line; exit code 1 if there is one"},
        {"weft config show", "every key with its default, bounds and meaning"},
        {"weft config show server.toml --json", "the values of a file, and where each was set"}},
       declare_config},
      {"doctor",
       "Say what limits Weft on this machine, and what to change",
       {{"weft doctor", "one line a finding; warnings with their advice"},
        {"weft doctor --json --strict", "for scripts: exit code 1 when something is to be changed"}},
       declare_doctor},
      {"report",
       "Print versions, the build, the machine and its limits, for a bug report",
       {{"weft report > report.txt", "no names of users or of the machine, no paths, no environment"},
        {"weft report --json --admin tcp://127.0.0.1:9090 > report.json", "with a program's counters"}},
       declare_report},
      {"completion",
       "Print the completion of weft for a shell",
       {{"source <(weft completion bash)", "for this bash"},
        {"weft completion zsh > ~/.zfunc/_weft", "in a folder of fpath"},
        {"weft completion fish > ~/.config/fish/completions/weft.fish", "for fish"}},
       declare_completion},
      {"manual",
       "Print a manual page, for man",
       {{"weft manual kv get | man -l -", "the page of weft kv get"}, {"weft manual --out man1", "every page"}},
       declare_manual},
  };
}

}  // namespace

std::span<const Command> commands() {
  static const std::vector<Command> table = [] {
    std::vector<Command> all = socket_commands();
    for (auto* const rows : {topic_commands, tool_commands}) {
      std::vector<Command> more = rows();
      std::move(more.begin(), more.end(), std::back_inserter(all));
    }
    return all;
  }();
  return table;
}

std::span<const Group> groups() {
  static constexpr std::array<Group, 4> kGroups = {
      {{"topic", "Topics of a fleet: publish, subscribe, list"},
       {"stream", "Kept topics: declare, publish, read, consume, acknowledge"},
       {"kv", "Keys with values: get, put, delete, watch"},
       {"fleet", "Fleets on servers of NATS: servers for a try, a check"}}};
  return kGroups;
}

}  // namespace weft::cli
