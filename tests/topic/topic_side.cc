// SPDX-License-Identifier: MIT
// The other process of processes_test: `topic_side FLEET DIRECTORY COMMAND ...`. It writes one line when it is done,
// and ends when its standard input does.
//   publish TOPIC COUNT SUBSCRIBERS: waits for so many subscribers, then publishes 0, 1, ... with WhenFull::wait.
//     Writes "published N dropped M".
//   flood TOPIC SUBSCRIBERS: writes "flooding", and publishes until it is killed.
//   count TOPIC COUNT: subscribes with a queue for so many messages, writes "ready ENDPOINT", receives them in order.
//     Writes "received N missed M".
//   present NAME: with a presence of 300 ms, as NAME; writes "present".
//   echo FILTER ENDPOINT: routes FILTER to ENDPOINT, a plain publisher, unless it is "-". Writes "ready ENDPOINT", then
//     publishes each message that FILTER brings under "echo.", and a header with its topic; ends with "end".
//   serve TOPIC: writes "serving", then "taken" for each request: it answers all but "hang".
//   hold TOPIC: subscribes, writes "ready ENDPOINT", and receives nothing.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "weft/sys/clock.h"
#include "weft/topic/topics.h"

namespace {

using namespace std::chrono_literals;

weft::Instant soon() { return weft::sys::now() + 30s; }

[[noreturn]] void fail(const char* what, const weft::Error& error) {
  std::printf("failed %s: %s\n", what, error.message().c_str());
  std::fflush(stdout);
  std::_Exit(1);
}

template <typename T>
T must(const char* what, weft::Result<T> result) {
  if (!result) {
    fail(what, result.error());
  }
  if constexpr (!std::is_void_v<T>) {
    return *std::move(result);
  }
}

void say(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

void publish(weft::Topics& topics, const std::string& topic, std::uint64_t count, std::size_t subscribers) {
  weft::Publisher publisher = must("publisher", topics.publisher(topic, {.when_full = weft::WhenFull::wait}));
  (void)must("wait_subscribers", publisher.wait_subscribers(subscribers, soon()));
  for (std::uint64_t i = 0; i < count; ++i) {
    must("publish", publisher.publish(std::to_string(i)));
  }
  const weft::TopicsStatistics all = topics.statistics();
  say("published " + std::to_string(all.published) + " dropped " + std::to_string(all.dropped_full));
}

void flood(weft::Topics& topics, const std::string& topic, std::size_t subscribers) {
  weft::Publisher publisher = must("publisher", topics.publisher(topic));
  (void)must("wait_subscribers", publisher.wait_subscribers(subscribers, soon()));
  say("flooding");
  for (std::uint64_t i = 0;; ++i) {
    must("publish", publisher.publish(std::to_string(i)));
  }
}

void count(weft::Topics& topics, const std::string& topic, std::uint64_t messages) {
  const weft::SubscriptionOptions queue{.queue_messages_max = messages, .queue_bytes_max = std::size_t{64} << 20};
  weft::Subscription subscription = must("subscribe", topics.subscribe(topic, queue));
  say("ready " + topics.endpoint());
  std::uint64_t received = 0;
  std::uint64_t missed = 0;
  for (; received < messages; ++received) {
    const weft::TopicMessage message = must("next", subscription.next_until(soon()));
    missed += message.missed();
    if (message.text() != std::to_string(received)) {
      say("failed order: " + std::string(message.text()) + " instead of " + std::to_string(received));
      std::_Exit(1);
    }
  }
  say("received " + std::to_string(received) + " missed " + std::to_string(missed));
}

// A plain publisher sends one part, or topic and body.
void echo(weft::Topics& topics, const std::string& filter, const std::string& endpoint) {
  weft::Subscription subscription = must("subscribe", topics.subscribe(weft::Filter::prefix(filter)));
  if (endpoint != "-") {
    must("route", topics.route(filter + ">", endpoint));
  }
  weft::Publisher publisher = must("publisher", topics.publisher("echo.one"));
  say("ready " + topics.endpoint());
  while (true) {
    const weft::TopicMessage message = must("next", subscription.next_until(soon()));
    weft::Headers headers;
    must("header", headers.add("was", message.topic()));
    must("publish", publisher.publish(message.body(), headers));
    if (message.text() == "end") {
      return;
    }
  }
}

void serve(weft::Topics& topics, const std::string& topic) {
  weft::RequestQueue requests = must("serve", topics.serve(topic));
  (void)must("sync", topics.sync(soon()));
  std::thread([] {
    while (std::getchar() != EOF) {
    }
    std::_Exit(0);
  }).detach();
  say("serving");
  std::vector<weft::TakenRequest> hung;
  for (auto taken = requests.next(); taken; taken = requests.next()) {
    if (taken->text() == "hang") {
      hung.push_back(*std::move(taken));
    } else {
      must("reply", taken->reply(taken->text()));
    }
    say("taken");
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) {
    return 2;
  }
  weft::Context context;
  weft::TopicsOptions options;
  options.fleet = argv[1];
  options.runtime_directory = argv[2];
  if (argv[3] == std::string_view("present")) {
    options.node = argv[4];
    options.presence = 300ms;
  }
  weft::Topics topics = must("open", weft::Topics::open(context, options));
  const std::string_view command = argv[3];
  const std::string topic = argv[4];
  const auto number = [&](int index) { return argc > index ? std::strtoull(argv[index], nullptr, 10) : 0; };
  if (command == "publish") {
    publish(topics, topic, number(5), number(6));
  } else if (command == "flood") {
    flood(topics, topic, number(5));
  } else if (command == "count") {
    count(topics, topic, number(5));
  } else if (command == "present") {
    say("present");
  } else if (command == "echo" && argc == 6) {
    echo(topics, topic, argv[5]);
  } else if (command == "serve") {
    serve(topics, topic);
  } else if (command == "hold") {
    weft::Subscription subscription = must("subscribe", topics.subscribe(topic));
    say("ready " + topics.endpoint());
    while (std::getchar() != EOF) {
    }
    return 0;
  } else {
    return 2;
  }
  while (std::getchar() != EOF) {
  }
  return 0;
}
