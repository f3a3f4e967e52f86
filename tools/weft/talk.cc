// SPDX-License-Identifier: MIT
#include "tools/weft/talk.h"

#include <algorithm>
#include <array>
#include <optional>

#include "tools/weft/lines.h"
#include "weft/base/text/utf8.h"
#include "weft/sys/clock.h"

namespace weft::cli {

namespace {

constexpr std::array<std::string_view, 8> kNames = {"pub", "sub", "push", "pull", "req", "rep", "dealer", "router"};

SocketType socket_type(Role role, const TalkOptions& options) {
  static constexpr std::array<SocketType, 8> kTypes = {SocketType::pub,    SocketType::sub,   SocketType::push,
                                                       SocketType::pull,   SocketType::req,   SocketType::rep,
                                                       SocketType::dealer, SocketType::router};
  // An XPUB receives the subscriptions, so that the first message can wait for them.
  return role == Role::pub && options.wait > 0 ? SocketType::xpub : kTypes[static_cast<std::size_t>(role)];
}

// The messages that the command line, files or standard input give, at their pace.
class Source {
 public:
  explicit Source(const TalkOptions& options)
      : options_(options), lines_(options.files.empty() ? std::vector<std::string>{"-"} : options.files) {
    if (options.rate > 0 && options.interval > 0) {
      throw Usage("--rate and --interval exclude each other");
    }
    interval_ = options.rate > 0 ? seconds(1 / options.rate) : seconds(options.interval);
    for (const std::string& part : options.parts) {
      parts_.push_back(options.hex ? from_hex(part) : part);
    }
    count_ = options.count == 0 && !options.parts.empty() ? 1 : options.count;
  }

  std::optional<Parts> next() {
    if (count_ != 0 && given_ == count_) {
      return std::nullopt;
    }
    Parts parts = parts_;
    if (parts.empty()) {
      std::optional<std::string> line = lines_.next();
      if (!line) {
        return std::nullopt;
      }
      parts.push_back(options_.hex ? from_hex(*line) : std::move(*line));
    }
    pace();
    ++given_;
    return parts;
  }

 private:
  void pace() {
    if (interval_ <= Duration(0)) {
      return;
    }
    if (given_ == 0) {
      due_ = sys::now();
    }
    sleep_until(due_);
    due_ += interval_;
  }

  const TalkOptions& options_;
  LineReader lines_;
  Parts parts_;
  std::uint64_t count_ = 0;
  std::uint64_t given_ = 0;
  Duration interval_{0};
  Instant due_{};
};

class Printer {
 public:
  Printer(Console& console, const TalkOptions& options) : console_(console), options_(options) {}

  void print(const Parts& parts) {
    if (options_.raw) {
      for (const std::string& part : parts) {
        console_.print(part);
      }
      return;
    }
    Parts shown;
    const bool hex = options_.hex || (console_.json && !std::all_of(parts.begin(), parts.end(), weft::is_utf8));
    for (const std::string& part : parts) {
      shown.push_back(hex ? to_hex(part) : console_.json ? part : printable(part));
    }
    if (console_.json) {
      console_.record({{hex ? "hex" : "parts", shown}});
      return;
    }
    std::string line;
    for (const std::string& part : shown) {
      line += (&part == shown.data() ? "" : " ") + part;
    }
    console_.line(line);
  }

 private:
  Console& console_;
  const TalkOptions& options_;
};

void subscribe(Link& link, const TalkOptions& options) {
  for (const std::string& topic : options.topics.empty() ? std::vector<std::string>{""} : options.topics) {
    link.subscribe(topic, options.glob);
  }
}

// XPUB: until so many subscriptions came.
void wait_for_subscribers(Link& link, std::uint64_t count) {
  for (std::uint64_t i = 0; i < count;) {
    const Parts news = link.receive();
    i += !news[0].empty() && news[0][0] == '\1' ? 1 : 0;
  }
}

int send_all(Console& console, Link& link, Role role, const TalkOptions& options) {
  Source source(options);
  link.open();
  if (role == Role::pub) {
    wait_for_subscribers(link, options.wait);
  } else {
    link.wait_for_peers(options.wait);
  }
  std::uint64_t sent = 0;
  Parts news;
  for (auto parts = source.next(); parts; parts = source.next()) {
    if (role == Role::pub && !options.topics.empty()) {
      parts->insert(parts->begin(), options.topics[0]);
    }
    link.send(*parts);
    ++sent;
    while (role == Role::pub && options.wait > 0 && link.try_receive(news)) {  // later subscriptions
    }
  }
  link.deliver();
  if (console.json) {
    console.record({{"sent", sent}});
  }
  return 0;
}

int receive_all(Console& console, Link& link, const TalkOptions& options) {
  Printer printer(console, options);
  link.open();
  for (std::uint64_t i = 0; options.count == 0 || i < options.count; ++i) {
    printer.print(link.receive());
  }
  return 0;
}

// req: each message waits for its reply. dealer: the replies come after the messages.
int ask(Console& console, Link& link, Role role, const TalkOptions& options) {
  Source source(options);
  Printer printer(console, options);
  link.open();
  std::uint64_t owed = 0;
  Parts reply;
  for (auto parts = source.next(); parts; parts = source.next()) {
    link.send(*parts);
    ++owed;
    if (role == Role::req) {
      printer.print(link.receive());
      --owed;
    }
    for (; owed > 0 && link.try_receive(reply); --owed) {
      printer.print(reply);
    }
  }
  for (; owed > 0; --owed) {
    printer.print(link.receive());
  }
  return 0;
}

// rep, router: prints each request, and replies with the message of the command line, or with the request.
int reply_all(Console& console, Link& link, Role role, const TalkOptions& options) {
  Printer printer(console, options);
  Parts answer;
  for (const std::string& part : options.parts) {
    answer.push_back(options.hex ? from_hex(part) : part);
  }
  const bool echo = options.echo || (role == Role::rep && answer.empty());
  if (options.echo && !answer.empty()) {
    throw Usage("--echo replies with the request, and a PART with itself");
  }
  if (role == Role::router) {
    need(link.socket().set(option::router_mandatory, true), "router_mandatory");
  }
  link.open();
  for (std::uint64_t i = 0; options.count == 0 || i < options.count; ++i) {
    Parts request = link.receive();
    printer.print(request);
    if (echo) {
      link.send(request);
    } else if (!answer.empty()) {
      Parts reply;
      if (role == Role::router) {
        // The requester's routing id, and the empty part that a REQ puts before its message.
        reply.push_back(request[0]);
        if (request.size() > 2 && request[1].empty()) {
          reply.emplace_back();
        }
      }
      reply.insert(reply.end(), answer.begin(), answer.end());
      link.send(reply);
    }
  }
  link.deliver();
  return 0;
}

}  // namespace

std::string_view role_name(Role role) noexcept { return kNames[static_cast<std::size_t>(role)]; }

int talk(Console& console, Role role, const TalkOptions& options) {
  if (!options.parts.empty() && !options.files.empty()) {
    throw Usage("a message is a PART or a line of --file, not both");
  }
  if (role == Role::pub && options.topics.size() > 1) {
    throw Usage("pub has one --topic");
  }
  Link link(console, socket_type(role, options), options.link);
  if (role == Role::sub) {
    subscribe(link, options);
  }
  if (role == Role::pub && options.wait > 0) {
    need(link.socket().set(option::xpub_verbose, true), "xpub_verbose");  // each subscriber's own subscription
  }
  switch (role) {
    case Role::pub:
    case Role::push: return send_all(console, link, role, options);
    case Role::sub:
    case Role::pull: return receive_all(console, link, options);
    case Role::rep:
    case Role::router: return reply_all(console, link, role, options);
    case Role::dealer:
      if (options.receive) {
        return receive_all(console, link, options);
      }
      [[fallthrough]];
    case Role::req: break;
  }
  return ask(console, link, role, options);
}

}  // namespace weft::cli
