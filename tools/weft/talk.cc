// SPDX-License-Identifier: MIT
#include "tools/weft/talk.h"

#include <algorithm>
#include <array>
#include <optional>

#include "weft/base/text/utf8.h"
#include "weft/sys/clock.h"

namespace weft::cli {

namespace {

constexpr std::array<std::string_view, 8> kNames = {"pub", "sub", "push", "pull", "req", "rep", "dealer", "router"};

SocketType socket_type(Role role) {
  static constexpr std::array<SocketType, 8> kTypes = {SocketType::pub,    SocketType::sub,   SocketType::push,
                                                       SocketType::pull,   SocketType::req,   SocketType::rep,
                                                       SocketType::dealer, SocketType::router};
  // An XPUB receives the subscriptions, which the command waits for and counts.
  return role == Role::pub ? SocketType::xpub : kTypes[static_cast<std::size_t>(role)];
}

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
    const bool hex = options_.source.hex || (console_.json && !std::all_of(parts.begin(), parts.end(), weft::is_utf8));
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

// Audience: the subscriptions of a publisher's peers. With a topic only those that match it count.
// Affinity: one thread.
class Audience {
 public:
  Audience(Link& link, std::string topic) : link_(link), topic_(std::move(topic)) {}

  void wait_for(std::uint64_t count) {
    while (count_ < count) {
      handle(link_.receive());
    }
  }
  std::uint64_t count() {  // with the subscriptions that came meanwhile
    for (Parts news; link_.try_receive(news);) {
      handle(news);
    }
    return count_;
  }

 private:
  void handle(const Parts& news) {
    const std::string& text = news[0];
    if (text.empty() || (!topic_.empty() && !topic_.starts_with(std::string_view(text).substr(1)))) {
      return;
    }
    if (text[0] == '\1') {
      ++count_;
    } else if (text[0] == '\0' && count_ > 0) {
      --count_;
    }
  }

  Link& link_;
  std::string topic_;
  std::uint64_t count_ = 0;
};

int publish_all(Console& console, Link& link, const TalkOptions& options) {
  Source source(options.source);
  Audience audience(link, options.topics.empty() ? std::string() : options.topics[0]);
  link.open();
  audience.wait_for(options.wait);
  std::uint64_t sent = 0;
  std::uint64_t subscriptions = audience.count();
  for (auto parts = source.next(); parts; parts = source.next()) {
    if (!options.topics.empty()) {
      parts->insert(parts->begin(), options.topics[0]);
    }
    subscriptions = audience.count();
    link.send(*parts);
    ++sent;
  }
  link.deliver();
  report_published(console, sent, subscriptions);
  return 0;
}

int push_all(Console& console, Link& link, const TalkOptions& options) {
  Source source(options.source);
  link.open();
  link.wait_for_peers(options.wait);
  std::uint64_t sent = 0;
  for (auto parts = source.next(); parts; parts = source.next()) {
    link.send(*parts);
    ++sent;
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
  for (std::uint64_t i = 0; options.source.count == 0 || i < options.source.count; ++i) {
    printer.print(link.receive());
  }
  return 0;
}

// req: each message waits for its reply. dealer: the replies come after the messages.
int ask(Console& console, Link& link, Role role, const TalkOptions& options) {
  Source source(options.source);
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
  for (const std::string& part : options.source.parts) {
    answer.push_back(options.source.hex ? from_hex(part) : part);
  }
  const bool echo = options.echo || (role == Role::rep && answer.empty());
  if (options.echo && !answer.empty()) {
    throw Usage("--echo replies with the request, and a PART with itself");
  }
  if (role == Role::router) {
    need(link.socket().set(option::router_mandatory, true), "router_mandatory");
  }
  link.open();
  for (std::uint64_t i = 0; options.source.count == 0 || i < options.source.count; ++i) {
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

void report_published(Console& console, std::uint64_t sent, std::uint64_t subscriptions) {
  if (console.json) {
    console.record({{"sent", sent}, {"subscriptions", subscriptions}});
    return;
  }
  console.note(std::to_string(sent) + (sent == 1 ? " message to " : " messages to ") + std::to_string(subscriptions) +
               (subscriptions == 1 ? " subscription" : " subscriptions"));
}

std::string_view role_name(Role role) noexcept { return kNames[static_cast<std::size_t>(role)]; }

int talk(Console& console, Role role, const TalkOptions& options) {
  if (role == Role::pub && options.topics.size() > 1) {
    throw Usage("pub has one --topic");
  }
  Link link(console, socket_type(role), options.link);
  if (role == Role::sub) {
    subscribe(link, options);
  }
  if (role == Role::pub) {
    need(link.socket().set(option::xpub_verboser, true), "xpub_verboser");  // each subscriber's own subscription
  }
  switch (role) {
    case Role::pub: return publish_all(console, link, options);
    case Role::push: return push_all(console, link, options);
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
