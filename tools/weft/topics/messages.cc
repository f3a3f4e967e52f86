// SPDX-License-Identifier: MIT
#include "tools/weft/topics/messages.h"

#include <deque>
#include <initializer_list>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>

#include "tools/weft/dial.h"
#include "tools/weft/talk.h"
#include "weft/msg/message/message.h"
#include "weft/sys/clock.h"

namespace weft::cli {

namespace {

// The topic is the first argument, or --topic; the rest is the message. "-" is standard input as one message.
std::string take_topic(std::string topic, std::vector<std::string>& words) {
  if (topic.empty()) {
    if (words.empty()) {
      throw Usage("a topic is missing");
    }
    topic = std::move(words.front());
    words.erase(words.begin());
  }
  if (words.size() > 1) {
    throw Usage("a message of topics has one part; '" + printable(words[1]) + "' is one more");
  }
  return topic;
}

SourceOptions source_of(const SourceOptions& options, std::vector<std::string> words) {
  SourceOptions source = options;
  if (words.size() == 1 && words[0] == "-") {
    source.files.insert(source.files.begin(), "-");
  } else {
    source.parts = std::move(words);
  }
  return source;
}

void note_missed(Console& console, std::uint64_t missed) {
  if (missed != 0) {
    console.note(std::to_string(missed) + (missed == 1 ? " message was lost here" : " messages were lost here"));
  }
}

}  // namespace

int topic_pub(Console& console, const TopicPubOptions& options) {
  std::vector<std::string> words = options.words;
  const std::string topic = take_topic(options.topic, words);
  const Headers headers = headers_of(options.headers);
  Source source(source_of(options.source, std::move(words)));
  Member member(options.fleet);
  Publisher publisher = Member::take(member.topics().publisher(topic), printable(topic));
  Member::take(member.topics().sync(member.answer_deadline()), "the fleet");
  std::size_t subscriptions = 0;
  if (options.wait > 0) {
    subscriptions = Member::take(publisher.wait_subscribers(options.wait, member.message_deadline()),
                                 std::to_string(options.wait) + " subscriptions of " + printable(topic));
  }
  std::uint64_t sent = 0;
  for (auto parts = source.next(); parts; parts = source.next()) {
    Member::take(publisher.publish_until(member.message_deadline(), as_bytes((*parts)[0]), headers), "publish");
    ++sent;
  }
  report_published(console, sent, subscriptions);
  return 0;
}

int topic_sub(Console& console, const TopicSubOptions& options) {
  if (options.prefix && options.glob) {
    throw Usage("a filter is a prefix or a glob");
  }
  std::vector<std::string> filters = options.filters;
  filters.insert(filters.end(), options.topics.begin(), options.topics.end());
  if (filters.empty()) {
    throw Usage("a filter is missing: a topic, or tokens such as px.*");
  }
  Member member(options.fleet);
  Subscription subscription =
      Member::take(member.topics().subscribe(std::initializer_list<std::string_view>{}), "subscribe");
  for (const std::string& text : filters) {
    const std::string what = "subscribe " + printable(text);
    if (options.prefix) {
      Member::take(subscription.add(Filter::prefix(text)), what);
    } else if (options.glob) {
      Member::take(subscription.add(Filter::glob(text)), what);
    } else {
      Member::take(subscription.add(text), what);
    }
  }
  for (std::uint64_t i = 0; options.count == 0 || i < options.count; ++i) {
    const TopicMessage message = Member::take(subscription.next_until(member.message_deadline()), "no message came");
    note_missed(console, message.missed());
    show(console, options.shown, {{"topic", std::string(message.topic())}}, message.text(), message.headers());
  }
  return 0;
}

int topic_ls(Console& console, const TopicLsOptions& options) {
  Member member(options.fleet);
  const std::vector<NodeInfo> nodes =
      Member::take(member.topics().sync(member.answer_deadline()), "the handles of the fleet");
  const std::vector<std::string> owned =
      Member::take(member.topics().list(options.filter.empty() ? ">" : options.filter), "the owned topics");
  for (const NodeInfo& node : options.filter.empty() ? nodes : std::vector<NodeInfo>()) {
    if (console.json) {
      console.record({{"kind", std::string("node")}, {"name", node.node}, {"endpoint", node.endpoint}});
    } else {
      console.prose("node " + printable(node.node) + " " + printable(node.endpoint), 4);
    }
  }
  for (const std::string& topic : owned) {
    if (console.json) {
      console.record({{"kind", std::string("owned")}, {"topic", topic}});
    } else {
      console.line("owned " + printable(topic));
    }
  }
  return 0;
}

int request(Console& console, const RequestOptions& options) {
  std::vector<std::string> words = options.words;
  const std::string topic = take_topic(options.topic, words);
  const Headers headers = headers_of(options.headers);
  Source source(source_of(options.source, std::move(words)));
  Member member(options.fleet);
  for (auto parts = source.next(); parts; parts = source.next()) {
    const TopicMessage reply =
        Member::take(member.topics().request(topic, std::string_view((*parts)[0]), member.answer_deadline(), headers),
                     "request " + printable(topic));
    show(console, options.shown, {}, reply.text(), {});
  }
  return 0;
}

namespace {

// Asked: the requests that a service got, for the thread that prints them.
class Asked {
 public:
  explicit Asked(std::uint64_t most) : most_(most), event_(need(sys::EventFd::make(), "an event descriptor")) {}

  static constexpr std::size_t kWaitingMax = 1024;

  // Any thread. Errors: unreachable (the command takes no more); resource_exhausted (kWaitingMax are not printed yet).
  Result<void> add(const TopicMessage& message) {
    const std::lock_guard lock(mutex_);
    if (most_ != 0 && taken_ == most_) {
      return Error(Errc::unreachable, "the service has ended");
    }
    if (waiting_.size() == kWaitingMax) {
      return Error(Errc::resource_exhausted, "1,024 requests are not printed yet");
    }
    ++taken_;
    waiting_.push_back({std::string(message.text()), std::string(message.headers())});
    event_.signal();
    return {};
  }

  struct Request {
    std::string body;
    std::string headers;
  };
  // Failure: none came in time; throws Stopped.
  Request next(Instant deadline) {
    for (;;) {
      event_.drain();
      {
        const std::lock_guard lock(mutex_);
        if (!waiting_.empty()) {
          Request first = std::move(waiting_.front());
          waiting_.pop_front();
          return first;
        }
      }
      if (!wait_ready(event_.fd(), sys::Interest::readable, deadline)) {
        throw Failure("no request came in time");
      }
    }
  }

 private:
  const std::uint64_t most_;
  sys::EventFd event_;
  std::mutex mutex_;
  std::uint64_t taken_ = 0;      // mutex
  std::deque<Request> waiting_;  // mutex
};

}  // namespace

int reply(Console& console, const ReplyOptions& options) {
  std::vector<std::string> words = options.words;
  const std::string topic = take_topic(options.topic, words);
  const std::optional<std::string> answer =
      words.empty() ? std::nullopt : std::optional(options.shown.hex ? from_hex(words[0]) : words[0]);
  Asked asked(options.count);
  Member member(options.fleet);
  const auto handle = [&](const TopicMessage& message) -> Result<Message> {
    WEFT_TRY(asked.add(message));
    return Message::copy_of(answer ? std::string_view(*answer) : message.text());
  };
  Service service =
      Member::take(member.topics().serve(topic, {.group = options.group}, handle), "serve " + printable(topic));
  for (std::uint64_t i = 0; options.count == 0 || i < options.count; ++i) {
    const Asked::Request next = asked.next(member.message_deadline());
    show(console, options.shown, {{"topic", topic}}, next.body, next.headers);
  }
  service.stop();
  return 0;
}

}  // namespace weft::cli
