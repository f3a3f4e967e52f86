// SPDX-License-Identifier: MIT
// weft-topics: the topics of a fleet from a shell: who is there, publish, subscribe. It joins the fleet and never hosts
// its hub. Exit codes: 0; 1: failed; 2: usage.
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
    "Options, before the command:\n"
    "  --fleet FLEET          local (the default), local:NAME, tcp://HOST:PORT,...\n"
    "  --space SPACE          the first token of every topic\n"
    "  --directory DIR        of a local fleet\n"
    "  --header NAME:VALUE    pub: one more header\n"
    "  --wait-subscribers N   pub: waits until so many are ready\n"
    "  --prefix, --glob       sub: the filters are prefixes, or globs of Redis\n"
    "  --count N              sub, tap: ends after so many messages\n"
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

// False: no number up to 10^9.
bool read_number(const std::string& text, std::uint64_t& into) {
  if (text.empty() || text.size() > 9 || text.find_first_not_of("0123456789") != std::string::npos) {
    return false;
  }
  into = std::strtoull(text.c_str(), nullptr, 10);
  return true;
}

// One option. Empty: it was read; else the mistake.
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
  if (command == "ls" || command == "tap") {
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

// One line: an object of JSON, or the values as they are.
void print(bool json, const std::vector<std::pair<const char*, std::string>>& fields) {
  std::string line;
  for (const auto& [name, value] : fields) {
    line += json ? (line.empty() ? "{" : ",") : (line.empty() ? "" : " ");
    line += json ? quoted(name) + ":" + quoted(value) : value;
  }
  line += json ? "}\n" : "\n";
  std::fwrite(line.data(), 1, line.size(), stdout);
  std::fflush(stdout);
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

Result<void> publish(weft::Topics& topics, const Arguments& all) {
  std::string body = all.words.size() > 2 ? all.words[2] : "";
  if (body == "-") {
    body.assign(std::istreambuf_iterator<char>(std::cin), {});
  }
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
  std::signal(SIGPIPE, SIG_IGN);
  if (const auto result = run(all); !result) {
    std::fprintf(stderr, "weft-topics: %s\n", result.error().message().c_str());
    return 1;
  }
}
