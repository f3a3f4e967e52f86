// SPDX-License-Identifier: MIT
// PUB and SUB, XPUB and XSUB. A publisher cannot know when a subscription has reached it. So it begins each phase
// with control messages, which it repeats until every subscriber has reported one on the link. Subscriptions travel
// in order, and the one to control messages is the last: all later messages must arrive without loss.
#include <array>
#include <set>

#include "tests/interop/side.h"

namespace weft::interop {

namespace {

constexpr int kSubscribers = 5;
constexpr int kPhases = 2;  // in a round; between them the filters change

const std::array<std::string, 5> kTopics{"A.", "AB.", "B.", "ABC.", "C."};
std::string topic_of(int sequence) { return kTopics[static_cast<std::size_t>(sequence) % kTopics.size()]; }

using Filters = std::set<std::string>;
Filters filters_of(int subscriber, int phase) {
  const bool changed = phase % kPhases == 1;
  switch (subscriber) {
    case 0: return {""};
    case 1: return {"A"};
    case 2: return changed ? Filters{"AB", "B"} : Filters{"AB"};
    case 3: return changed ? Filters{} : Filters{"B"};
    default: return changed ? Filters{"A", "C"} : Filters{"A", "B"};
  }
}

std::string control(int phase, const char* word) {
  return "\xff" + std::string(1, static_cast<char>('a' + phase)) + word;
}

// The front of a message about `topic`, as far as a filter reads it.
std::string head_of(const Shape& shape, const std::string& topic) {
  return topic.substr(0, shape.multipart ? 8 : shape.size);
}

bool matches(const Filters& filters, const std::string& head) {
  for (const std::string& filter : filters) {
    if (head.starts_with(filter)) {
      return true;
    }
  }
  return false;
}

void wait_for_subscribers(Side& side, Socket& socket, int phase) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  for (int ready = 0; ready < kSubscribers;) {
    need(std::chrono::steady_clock::now() < deadline, "the subscribers do not see control messages");
    side.send_text(socket, control(phase, "sync"));
    ready += side.link().wait_line("ready", std::chrono::milliseconds(2)) ? 1 : 0;
  }
}

bool is_control(const std::vector<Message>& parts) { return parts.size() == 1 && parts[0].text().starts_with('\xff'); }

void wait_for_sync(Side& side, Socket& socket, int phase) {
  for (;;) {
    const std::vector<Message> parts = side.receive(socket);
    need(is_control(parts), "a message before the phase began");
    if (parts[0].text() == control(phase, "sync")) {
      side.link().send("ready");
      return;
    }
  }
}

// Takes every message of a phase that the filters let through, and nothing else.
void take_phase(Side& side, Socket& socket, int phase, const Filters& filters) {
  const Job& job = side.job();
  int next = 0;
  const auto skip = [&] {
    while (next < job.count && !matches(filters, head_of(job.shape, topic_of(next)))) {
      ++next;
    }
  };
  for (skip();; skip()) {
    const std::vector<Message> parts = side.receive(socket);
    if (is_control(parts)) {
      if (parts[0].text() == control(phase, "end")) {
        need(next == job.count, "message " + std::to_string(next) + " is missing at the end");
        return;
      }
      continue;
    }
    need(next < job.count, "a message more than expected");
    const MessageId id{static_cast<std::uint64_t>(phase), static_cast<std::uint64_t>(next)};
    const std::string wrong = check_message(job.shape, id, topic_of(next), parts);
    need(wrong.empty(), wrong);
    side.count_received();
    ++next;
  }
}

void change_filters(Socket& socket, const Filters& from, const Filters& to) {
  for (const std::string& filter : from) {
    if (!to.contains(filter)) {
      need(socket.unsubscribe(filter), "unsubscribe " + filter);
    }
  }
  for (const std::string& filter : to) {
    if (!from.contains(filter)) {
      need(socket.subscribe(filter), "subscribe " + filter);
    }
  }
}

void run_subscriber(Side& side, Socket& socket, int subscriber) {
  const Job& job = side.job();
  Filters filters;
  for (int round = 0; round < job.rounds; ++round) {
    side.begin_round(socket, round);
    for (int phase = (job.first_round + round) * kPhases, end = phase + kPhases; phase < end; ++phase) {
      const Filters changed = filters_of(subscriber, phase);
      change_filters(socket, filters, changed);
      filters = changed;
      need(socket.subscribe(control(phase, "")), "subscribe");
      wait_for_sync(side, socket, phase);
      take_phase(side, socket, phase, filters);
    }
  }
}

// --- XPUB and XSUB: one of each ---

void publish_all(Side& side, Socket& socket, std::uint64_t stream) {
  for (int i = 0; i < side.job().count; ++i) {
    side.send(socket, {stream, static_cast<std::uint64_t>(i)}, topic_of(i));
  }
  side.send_text(socket, "AB\xff");
}

void take_all(Side& side, Socket& socket, std::uint64_t stream, const std::string& filter) {
  for (int i = 0; i < side.job().count; ++i) {
    if (!head_of(side.job().shape, topic_of(i)).starts_with(filter)) {
      continue;
    }
    const MessageId id{stream, static_cast<std::uint64_t>(i)};
    const std::string wrong = check_message(side.job().shape, id, topic_of(i), side.receive(socket));
    need(wrong.empty(), wrong);
    side.count_received();
  }
  const std::vector<Message> end = side.receive(socket);
  need(end.size() == 1 && end[0].text() == "AB\xff", "a message more than expected");
}

void expect_text(Side& side, Socket& socket, const std::string& text) {
  const std::vector<Message> parts = side.receive(socket);
  need(parts.size() == 1 && parts[0].text() == text, "expected another subscription message");
}

}  // namespace

void run_publisher(Side& side) {
  Socket socket = side.open(SocketType::pub);
  side.join({&socket});
  const Job& job = side.job();
  for (int round = 0; round < job.rounds; ++round) {
    side.begin_round(socket, round, kSubscribers);
    for (int phase = (job.first_round + round) * kPhases, end = phase + kPhases; phase < end; ++phase) {
      wait_for_subscribers(side, socket, phase);
      for (int i = 0; i < job.count; ++i) {
        side.send(socket, {static_cast<std::uint64_t>(phase), static_cast<std::uint64_t>(i)}, topic_of(i));
      }
      side.send_text(socket, control(phase, "end"));
    }
  }
  side.check_balance({&socket});
}

void run_subscribers(Side& side) {
  std::vector<Socket> sockets;
  std::vector<Socket*> all;
  for (int i = 0; i < kSubscribers; ++i) {
    sockets.push_back(side.open(SocketType::sub));
  }
  for (Socket& socket : sockets) {
    all.push_back(&socket);
  }
  side.join(all);
  in_threads(kSubscribers, [&](int i) { run_subscriber(side, sockets[static_cast<std::size_t>(i)], i); });
  side.check_balance(all);
}

void run_xpub(Side& side) {
  Socket socket = side.open(SocketType::xpub);
  side.join({&socket});
  // Subscriptions from before the connection come in any order.
  std::multiset<std::string> topics;
  for (int i = 0; i < 2; ++i) {
    const std::vector<Message> parts = side.receive(socket);
    topics.insert(parts.size() == 1 ? std::string(parts[0].text()) : "(several parts)");
  }
  need(topics == std::multiset<std::string>{"\1A", "\1AB"}, "the first subscriptions are not those that were made");
  publish_all(side, socket, 0);
  expect_text(side, socket, std::string("\0A", 2));
  publish_all(side, socket, 1);
  expect_text(side, socket, "\2upstream");
  side.check_balance({&socket});
}

void run_xsub(Side& side) {
  Socket socket = side.open(SocketType::xsub);
  side.join({&socket});
  side.send_text(socket, "\1A");
  side.send_text(socket, "\1AB");
  side.send_text(socket, "\1A");  // known: not sent on
  take_all(side, socket, 0, "A");
  side.send_text(socket, std::string_view("\0A", 2));
  side.send_text(socket, std::string_view("\0A", 2));
  take_all(side, socket, 1, "AB");
  side.send_text(socket, "\2upstream");
  side.check_balance({&socket});
}

}  // namespace weft::interop
