// SPDX-License-Identifier: MIT
// The other process of kept_processes_test and kept_faults_test: `kept_side DIRECTORY|nats://... COMMAND ...`. It ends
// when it is killed or done.
//   host: hosts the hub, writes "hosting", and waits for the end of its input.
//   publish NAME COUNT: publishes NAME:0, NAME:1, ... to the stream, and writes "kept N" for each acknowledged one.
//   hear COUNT: subscribes to the topics as volatile ones, writes "hearing", receives so many messages in order, and
//     writes "heard N missed M".
//   consume: takes messages as a member of the consumer, writes "got TEXT", then acknowledges and waits for it.
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <string>
#include <string_view>
#include <utility>

#include "weft/sys/clock.h"
#include "weft/topic/topics.h"

namespace {

using namespace std::chrono_literals;

template <typename T>
T must(const char* what, weft::Result<T> result) {
  if (!result) {
    std::printf("failed %s: %s\n", what, result.error().message().c_str());
    std::fflush(stdout);
    std::_Exit(1);
  }
  return *std::move(result);
}

void say(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

bool on_nats = false;

weft::Stream open_stream(weft::Topics& topics) {
  weft::StreamOptions options{.name = "jobs"};
  if (on_nats) {
    options.topics = {"jobs.>"};
    options.survives = weft::Survives::process;
  }
  return must("stream", topics.stream(options));
}

void publish(weft::Topics& topics, const std::string& name, int first, int count) {
  weft::Stream jobs = open_stream(topics);
  std::deque<std::pair<int, weft::PendingPublish>> pending;
  const auto settle = [&] {
    const auto published = pending.front().second.wait();
    must("publish", published);
    say("kept " + name + ":" + std::to_string(pending.front().first));
    pending.pop_front();
  };
  for (int i = first; i < count; ++i) {
    const std::string text = name + ":" + std::to_string(i);
    pending.emplace_back(i, must("publish_later", jobs.publish_later("jobs." + name, text, {.id = text})));
    if (pending.size() >= 500) {
      settle();
    }
  }
  while (!pending.empty()) {
    settle();
  }
  say("done");
}

void hear(weft::Topics& topics, int count) {
  weft::Subscription subscription = must("subscribe", topics.subscribe("jobs.>"));
  say("hearing");
  std::uint64_t missed = 0;
  for (int i = 0; i < count; ++i) {
    const weft::TopicMessage message = must("next", subscription.next_until(weft::sys::now() + 30s));
    missed += message.missed();
    if (const std::string expected = "p:" + std::to_string(i); message.text() != expected) {
      say("failed order: " + std::string(message.text()) + " instead of " + expected);
      return;
    }
  }
  say("heard " + std::to_string(count) + " missed " + std::to_string(missed));
}

void consume(weft::Topics& topics) {
  weft::Stream jobs = open_stream(topics);
  weft::Consumer workers = must("consumer", jobs.consumer("workers", {.ack_wait = 1s, .queue_messages_max = 64}));
  say("consuming");
  while (auto delivery = workers.next()) {
    say("got " + std::string(delivery->text()));
    delivery->ack();
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    return 2;
  }
  weft::Context context;
  weft::TopicsOptions options;
  on_nats = std::string_view(argv[1]).starts_with("nats://");
  (on_nats ? options.fleet : options.runtime_directory) = argv[1];
  const std::string_view command = argv[2];
  options.hosts = command == "host";
  weft::Topics topics = must("open", weft::Topics::open(context, options));
  if (command == "host") {
    open_stream(topics);
    say("hosting");
    while (std::getchar() != EOF) {
    }
  } else if (command == "publish" && argc == 6) {
    publish(topics, argv[3], std::atoi(argv[4]), std::atoi(argv[5]));
  } else if (command == "hear" && argc == 4) {
    hear(topics, std::atoi(argv[3]));
  } else if (command == "consume") {
    consume(topics);
  }
  return 0;
}
