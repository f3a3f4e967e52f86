// SPDX-License-Identifier: MIT
// weft-topics: the topics of a fleet from a shell: its handles, publish, subscribe, and kept topics. It joins the fleet
// and never hosts its hub. Exit codes: 0; 1: failed; 2: usage.
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/sys/clock.h"
#include "weft/topic/topics.h"

namespace {

using namespace std::chrono_literals;
using weft::Result;

constexpr const char* kHelp =
    "usage: weft-topics [OPTION...] COMMAND [ARGUMENT...]\n"
    "  ls                     the other handles of the fleet, and the topics that are owned\n"
    "  pub TOPIC [BODY|-]     publishes BODY, or standard input\n"
    "  sub FILTER...          prints the messages of topics, or of tokens such as px.*\n"
    "  tap                    prints the messages of every topic\n"
    "  streams                what the fleet's hub keeps: each stream, what it keeps, the fault that it survives,\n"
    "                         its first and its next sequence, its bytes; then its consumers, each with the\n"
    "                         sequence below which all is acknowledged, and the number of those that wait\n"
    "  kv ls [BUCKET [FILTER]]  the buckets, or the keys of one\n"
    "  kv get BUCKET KEY      the value\n"
    "  kv put BUCKET KEY VALUE|-  prints the revision; makes the bucket if there is none\n"
    "  kv delete BUCKET KEY   prints the revision\n"
    "  kv watch BUCKET [FILTER]  the values, and each change\n"
    "Options, before the command:\n"
    "  --fleet FLEET          local (the default), local:NAME, tcp://HOST:PORT,...\n"
    "  --space SPACE          the first token of every topic\n"
    "  --directory DIR        of a local fleet\n"
    "  --header NAME:VALUE    pub: one more header\n"
    "  --wait-subscribers N   pub: waits until so many are ready\n"
    "  --prefix, --glob       sub: the filters are prefixes, or globs of Redis\n"
    "  --count N              sub, tap, kv watch: ends after so many messages\n"
    "  --timeout SECONDS      for the fleet's answers (30), and for the next message (for ever)\n"
    "  --json                 each line is an object of JSON; bytes beyond ASCII are the code points 80 to ff\n";

struct Arguments {
  weft::TopicsOptions topics;
  std::vector<std::string> words;
  weft::Headers headers;
  std::uint64_t wait_subscribers = 0;
  std::uint64_t count = 0;  // 0: no end
  std::optional<std::chrono::seconds> timeout;
  bool prefix = false;
  bool glob = false;
  bool json = false;

  [[nodiscard]] weft::Instant deadline() const { return weft::sys::now() + timeout.value_or(30s); }
  [[nodiscard]] weft::Instant next_deadline() const { return timeout ? deadline() : weft::kNever; }
};

// Returns false if the text is not a number up to 10^9.
bool read_number(const std::string& text, std::uint64_t& into) {
  if (text.empty() || text.size() > 9 || text.find_first_not_of("0123456789") != std::string::npos) {
    return false;
  }
  into = std::strtoull(text.c_str(), nullptr, 10);
  return true;
}

// One option. Empty: it was read; otherwise the mistake.
std::string read_option(Arguments& all, std::string_view option, const char* value, bool& took) {
  std::uint64_t seconds = 0;
  took = false;
  if (option == "--json") {
    all.json = true;
  } else if (option == "--prefix") {
    all.prefix = true;
  } else if (option == "--glob") {
    all.glob = true;
  } else {
    took = true;
    const std::string text = value != nullptr ? value : "";
    const std::size_t colon = text.find(':');
    bool good = value != nullptr;
    if (option == "--fleet") {
      all.topics.fleet = text;
    } else if (option == "--space") {
      all.topics.space = text;
    } else if (option == "--directory") {
      all.topics.runtime_directory = text;
    } else if (option == "--header") {
      good = good && colon != std::string::npos && all.headers.add(text.substr(0, colon), text.substr(colon + 1));
    } else if (option == "--wait-subscribers") {
      good = good && read_number(text, all.wait_subscribers);
    } else if (option == "--count") {
      good = good && read_number(text, all.count);
    } else if (option == "--timeout") {
      good = good && read_number(text, seconds);
      all.timeout = std::chrono::seconds(seconds);
    } else {
      return "no option is named " + std::string(option);
    }
    return good ? "" : "the value of " + std::string(option) + " is missing or malformed";
  }
  return {};
}

// Empty: well formed.
std::string check_kv(const std::vector<std::string>& words) {
  const std::string verb = words.size() < 2 ? "" : words[1];
  const std::size_t count = words.size() < 2 ? 0 : words.size() - 2;
  const bool good = verb == "ls"                        ? count <= 2
                    : verb == "watch"                   ? count == 1 || count == 2
                    : verb == "get" || verb == "delete" ? count == 2
                                                        : verb == "put" && count == 3;
  return good ? "" : "kv takes ls, get, put, delete or watch, with a bucket";
}

std::string read_arguments(Arguments& all, int argc, char** argv) {
  all.topics.hosts = false;
  int i = 1;
  for (; i < argc && std::string_view(argv[i]).starts_with("--"); ++i) {
    bool took = false;
    std::string mistake = read_option(all, argv[i], i + 1 < argc ? argv[i + 1] : nullptr, took);
    if (!mistake.empty()) {
      return mistake;
    }
    i += took ? 1 : 0;
  }
  all.words.assign(argv + i, argv + argc);
  const std::size_t count = all.words.size();
  const std::string command = count == 0 ? "" : all.words[0];
  if (command.empty()) {
    return "a command is missing";
  }
  if (all.prefix && all.glob) {
    return "a filter is a prefix or a glob";
  }
  if (command == "kv") {
    return check_kv(all.words);
  }
  if (command == "ls" || command == "tap" || command == "streams") {
    return count == 1 ? "" : command + " takes no arguments";
  }
  if (command == "pub") {
    return count == 2 || count == 3 ? "" : "pub takes a topic and a body";
  }
  if (command == "sub") {
    return count >= 2 ? "" : "sub takes filters";
  }
  return "no command is named " + command;
}

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20 || byte >= 0x7f) {
      char code[8];
      std::snprintf(code, sizeof code, "\\u%04x", byte);
      out += code;
    } else {
      out += c;
    }
  }
  return out + '"';
}

// One line: an object of JSON, or the values as they are. If the reader has gone, or the disk is full, the program
// ends.
void print(bool json, const std::vector<std::pair<const char*, std::string>>& fields) {
  std::string line;
  for (const auto& [name, value] : fields) {
    line += json ? (line.empty() ? "{" : ",") : (line.empty() ? "" : " ");
    line += json ? quoted(name) + ":" + quoted(value) : value;
  }
  line += json ? "}\n" : "\n";
  if (std::fwrite(line.data(), 1, line.size(), stdout) != line.size() || std::fflush(stdout) != 0) {
    std::perror("weft-topics: standard output");
    std::_Exit(1);  // as after SIGPIPE
  }
}

Result<void> list(weft::Topics& topics, const Arguments& all) {
  const auto nodes = WEFT_TRY(topics.sync(all.deadline()));
  for (const weft::NodeInfo& node : nodes) {
    print(all.json, {{"kind", "node"}, {"name", node.node}, {"endpoint", node.endpoint}});
  }
  const auto owned = WEFT_TRY(topics.list(">"));
  for (const std::string& topic : owned) {
    print(all.json, {{"kind", "owned"}, {"topic", topic}});
  }
  return {};
}

// `-`: standard input.
std::string text_or_input(const std::string& text) {
  return text == "-" ? std::string(std::istreambuf_iterator<char>(std::cin), {}) : text;
}

Result<void> publish(weft::Topics& topics, const Arguments& all) {
  const std::string body = text_or_input(all.words.size() > 2 ? all.words[2] : "");
  weft::Publisher publisher = WEFT_TRY(topics.publisher(all.words[1], {.when_full = weft::WhenFull::wait}));
  WEFT_TRY(topics.sync(all.deadline()));
  if (all.wait_subscribers != 0) {
    WEFT_TRY(publisher.wait_subscribers(all.wait_subscribers, all.deadline()));
  }
  return publisher.publish(std::string_view(body), all.headers);
}

Result<void> subscribe(weft::Topics& topics, const Arguments& all, const std::vector<std::string>& filters) {
  weft::Subscription subscription = WEFT_TRY(topics.subscribe(std::initializer_list<std::string_view>{}));
  for (const std::string& filter : filters) {
    if (all.prefix) {
      WEFT_TRY(subscription.add(weft::Filter::prefix(filter)));
    } else if (all.glob) {
      WEFT_TRY(subscription.add(weft::Filter::glob(filter)));
    } else {
      WEFT_TRY(subscription.add(filter));
    }
  }
  for (std::uint64_t i = 0; all.count == 0 || i < all.count; ++i) {
    const weft::TopicMessage message = WEFT_TRY(subscription.next_until(all.next_deadline()));
    if (message.missed() != 0) {
      std::fprintf(stderr, "weft-topics: %llu messages were lost here\n",
                   static_cast<unsigned long long>(message.missed()));
    }
    std::vector<std::pair<const char*, std::string>> fields = {{"topic", std::string(message.topic())},
                                                               {"body", std::string(message.text())}};
    if (all.json) {
      fields.emplace_back("headers", message.headers());
    }
    print(all.json, fields);
  }
  return {};
}

// --- kept topics ---

Result<void> streams(weft::Topics& topics, const Arguments& all) {
  const auto kept = WEFT_TRY(topics.streams());
  for (const weft::StreamInfo& stream : kept) {
    print(all.json, {{"kind", "stream"},
                     {"name", stream.name},
                     {"keep", std::string(weft::name_of(stream.settings.keep))},
                     {"survives", std::string(weft::name_of(stream.settings.survives))},
                     {"first", std::to_string(stream.first)},
                     {"next", std::to_string(stream.next)},
                     {"bytes", std::to_string(stream.bytes)}});
    for (const weft::StreamInfo::Consumer& consumer : stream.consumers) {
      print(all.json, {{"kind", "consumer"},
                       {"stream", stream.name},
                       {"name", consumer.name},
                       {"floor", std::to_string(consumer.floor)},
                       {"waiting", std::to_string(consumer.waiting)}});
    }
  }
  return {};
}

// The bucket with the settings that it has. Only `makes` makes one.
Result<weft::KeyValue> open_bucket(weft::Topics& topics, const Arguments& all, const std::string& name, bool makes) {
  const std::string wire = (all.topics.space.empty() ? "" : all.topics.space + '.') + "kv." + name;
  const auto kept = WEFT_TRY(topics.streams());
  for (const weft::StreamInfo& stream : kept) {
    if (stream.name == wire) {
      return topics.key_value(name, {.history = stream.settings.history,
                                     .survives = stream.settings.survives,
                                     .bytes_max = stream.settings.bytes_max,
                                     .age_max = stream.settings.age_max});
    }
  }
  return makes ? topics.key_value(name) : weft::Error(weft::Errc::not_found, "there is no such bucket");
}

Result<void> list_buckets(weft::Topics& topics, const Arguments& all) {
  const std::string prefix = (all.topics.space.empty() ? "" : all.topics.space + '.') + "kv.";
  const auto kept = WEFT_TRY(topics.streams());
  for (const weft::StreamInfo& stream : kept) {
    if (stream.name.starts_with(prefix)) {
      print(all.json, {{"bucket", stream.name.substr(prefix.size())}});
    }
  }
  return {};
}

Result<void> watch(weft::KeyValue& bucket, const Arguments& all) {
  weft::KeyValueWatch changes = WEFT_TRY(bucket.watch(all.words.size() > 3 ? all.words[3] : ">"));
  for (std::uint64_t i = 0; all.count == 0 || i < all.count; ++i) {
    const weft::KeyValueEntry entry = WEFT_TRY(changes.next_until(all.next_deadline()));
    print(all.json, {{"change", entry.erased() ? "delete" : "put"},
                     {"key", std::string(entry.key())},
                     {"revision", std::to_string(entry.revision())},
                     {"value", std::string(entry.text())}});
  }
  return {};
}

Result<void> key_value(weft::Topics& topics, const Arguments& all) {
  const std::string& verb = all.words[1];
  if (all.words.size() == 2) {
    return list_buckets(topics, all);
  }
  weft::KeyValue bucket = WEFT_TRY(open_bucket(topics, all, all.words[2], verb == "put"));
  if (verb == "watch") {
    return watch(bucket, all);
  }
  if (verb == "ls") {
    const auto keys = WEFT_TRY(bucket.keys(all.words.size() > 3 ? all.words[3] : ">"));
    for (const std::string& key : keys) {
      print(all.json, {{"key", key}});
    }
    return {};
  }
  const std::string& key = all.words[3];
  if (verb == "get") {
    const weft::KeyValueEntry entry = WEFT_TRY(bucket.value(key));
    std::vector<std::pair<const char*, std::string>> fields = {{"value", std::string(entry.text())}};
    if (all.json) {
      fields.emplace_back("revision", std::to_string(entry.revision()));
    }
    print(all.json, fields);
    return {};
  }
  const std::string value = verb == "put" ? text_or_input(all.words[4]) : "";
  const std::uint64_t revision = WEFT_TRY(verb == "put" ? bucket.put(key, std::string_view(value)) : bucket.erase(key));
  print(all.json, {{"revision", std::to_string(revision)}});
  return {};
}

Result<void> run(const Arguments& all) {
  weft::Context context;
  weft::Topics topics = WEFT_TRY(weft::Topics::open(context, all.topics));
  const std::string& command = all.words[0];
  if (command == "ls") {
    return list(topics, all);
  }
  if (command == "pub") {
    return publish(topics, all);
  }
  if (command == "streams") {
    return streams(topics, all);
  }
  if (command == "kv") {
    return key_value(topics, all);
  }
  if (command == "tap") {
    return subscribe(topics, all, {">"});
  }
  return subscribe(topics, all, {all.words.begin() + 1, all.words.end()});
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && (std::string_view(argv[1]) == "--help" || std::string_view(argv[1]) == "-h")) {
    std::fputs(kHelp, stdout);
    return 0;
  }
  Arguments all;
  if (const std::string mistake = read_arguments(all, argc, argv); !mistake.empty()) {
    std::fprintf(stderr, "weft-topics: %s; --help explains\n", mistake.c_str());
    return 2;
  }
  std::signal(SIGPIPE, SIG_DFL);  // a parent may ignore it; the sockets of the library raise none
  if (const auto result = run(all); !result) {
    std::fprintf(stderr, "weft-topics: %s\n", result.error().message().c_str());
    return 1;
  }
}
