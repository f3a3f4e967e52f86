// SPDX-License-Identifier: MIT
// A work queue that survives kill -9: producers queue jobs, workers share them, and a job that was queued is done,
// whichever of the processes dies. The queue is on this machine, or on servers of NATS (docs/fleet.md).
// `work_queue --help` explains the commands. Without one the program starts a hub, workers and a producer, kills a
// worker and the hub in the middle of the work, and counts.
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "child.h"
#include "weft/sys/clock.h"
#include "weft/sys/poll.h"
#include "weft/topic/topics.h"

namespace {

using namespace std::chrono_literals;

constexpr const char* kHelp =
    "usage: work_queue [--fleet FLEET | --directory DIR] [--survives FAULT] COMMAND\n"
    "  produce COUNT   queues so many jobs, and says so\n"
    "  work            does jobs until its input has ended and the queue is empty\n"
    "  hub             only hosts, until its input ends; without one a producer or a worker is the hub\n"
    "  --fleet         the servers that keep the queue, nats://HOST:PORT,...; by default the fleet of this user\n"
    "  --directory     the fleet of this user, with its sockets and its queue in DIR\n"
    "  --survives      process (default); power, of this machine only; machine, of three servers only\n"
    "Without a command: a demonstration.\n";

// Place: where the queue is. The rest of the program is the same in every place.
struct Place {
  std::string fleet;  // empty: this machine
  std::string directory;
  weft::Survives survives = weft::Survives::process;
  std::vector<std::string> words;  // the options that name it
};

weft::Result<weft::Topics> open(weft::Context& context, const Place& place) {
  weft::TopicsOptions options;
  if (!place.fleet.empty()) {
    options.fleet = place.fleet;
  }
  options.runtime_directory = place.directory;
  return weft::Topics::open(context, options);
}

weft::Result<weft::Stream> queue(weft::Topics& topics, const Place& place) {
  return topics.stream({.name = "jobs", .topics = {"jobs.>"}, .keep = weft::Keep::work, .survives = place.survives});
}

// The ids make it harmless to run this again after a failure: a queued job is not queued twice.
weft::Result<void> produce(weft::Topics& topics, const Place& place, int count) {
  weft::Stream jobs = WEFT_TRY(queue(topics, place));
  std::vector<weft::PendingPublish> pending;
  for (int i = 0; i < count; ++i) {
    const std::string job = "job-" + std::to_string(i);
    pending.push_back(WEFT_TRY(jobs.publish_later("jobs.print", job, {.id = job})));
  }
  for (weft::PendingPublish& each : pending) {
    WEFT_TRY(each.wait());
  }
  std::printf("queued %d\n", count);
  return {};
}

bool input_ended() {
  weft::sys::PollFd input{.fd = 0, .want = weft::sys::Interest::readable};
  const auto ready = weft::sys::poll_fds({&input, 1}, 0s);
  return ready && *ready != 0 && std::getchar() == EOF;
}

weft::Result<void> work(weft::Topics& topics, const Place& place) {
  weft::Stream jobs = WEFT_TRY(queue(topics, place));
  weft::ConsumerOptions how;
  how.ack_wait = 2s;           // a worker that is silent for this long has died; a longer job calls working()
  how.queue_messages_max = 4;  // so many jobs wait for another worker when this one dies
  weft::Consumer workers = WEFT_TRY(jobs.consumer("workers", how));
  for (;;) {
    auto job = workers.next_until(weft::sys::now() + 200ms);
    if (job) {
      std::printf("did %.*s\n", int(job->text().size()), job->text().data());
      std::fflush(stdout);
      // Refused when the job was given to another worker meanwhile, or the answer was lost: it may be done twice.
      if (const auto done = job->ack_confirmed(); !done) {
        std::fprintf(stderr, "work_queue: %s\n", done.error().message().c_str());
      }
      continue;
    }
    if (job.error() != weft::Errc::timed_out) {
      return job.error();
    }
    if (input_ended()) {
      const weft::StreamInfo info = WEFT_TRY(jobs.info());
      if (info.first == info.next) {
        return {};
      }
    }
  }
}

weft::Result<void> host(weft::Topics& topics, const Place& place) {
  const weft::Stream jobs = WEFT_TRY(queue(topics, place));  // the first handle that needs the hub hosts it
  std::printf("hosting\n");
  std::fflush(stdout);
  while (std::getchar() != EOF) {
  }
  return {};
}

// --- the demonstration ---

// Demonstration: the work of the workers, by job.
class Demonstration {
 public:
  explicit Demonstration(Place place) : place_(std::move(place)) {}

  weft::Result<void> run() {
    if (place_.fleet.empty()) {
      hub_.emplace(WEFT_TRY(start({"hub"})));
      if (hub_->line() != "hosting") {
        return hub_->wait() ? weft::Error(weft::Errc::not_supported, "without SQLite there is no hub, and no queue")
                            : weft::Error(weft::Errc::other, "the hub did not start");
      }
    }
    std::thread one([this] { tend(0); });
    std::thread two([this] { tend(1); });
    const auto queued = produce();
    {
      const std::lock_guard lock(mutex_);
      producing_ = false;
      for (Child* worker : workers_) {
        if (worker != nullptr) {
          worker->end_input();
        }
      }
    }
    one.join();
    two.join();
    WEFT_TRY(queued);
    return count();
  }

 private:
  static constexpr int kJobs = 400;

  weft::Result<Child> start(std::vector<std::string> command) {
    command.insert(command.begin(), place_.words.begin(), place_.words.end());
    return Child::start(std::move(command));
  }
  weft::Result<void> produce() {
    Child producer = WEFT_TRY(start({"produce", std::to_string(kJobs)}));
    const std::string line = producer.line();
    std::printf("the producer: %s\n", line.c_str());
    return producer.wait() ? weft::Result<void>() : weft::Error(weft::Errc::other, "the producer failed");
  }
  // One worker after the other. The one that did the fiftieth job is killed, and at the hundredth one the hub.
  void tend(std::size_t number) {
    for (bool killed = true; killed;) {
      auto worker = start({"work"});
      if (!worker) {
        return;
      }
      killed = false;
      {
        const std::lock_guard lock(mutex_);
        workers_[number] = &*worker;
        if (!producing_) {
          worker->end_input();
        }
      }
      for (std::string line = worker->line(); !line.empty(); line = worker->line()) {
        const std::lock_guard lock(mutex_);
        ++done_[line];
        if (!worker_killed_ && done_.size() >= kJobs / 8) {
          std::printf("kill -9 of a worker\n");
          std::fflush(stdout);
          worker->kill();
          worker_killed_ = killed = true;
        } else if (worker_killed_ && hub_ && done_.size() >= kJobs / 4) {
          std::printf("kill -9 of the hub\n");
          hub_->kill();
          hub_.reset();
        }
      }
      const std::lock_guard lock(mutex_);
      workers_[number] = nullptr;
      failed_ |= !worker->wait() && !killed;
    }
  }
  weft::Result<void> count() {
    std::size_t doubles = 0;
    for (const auto& [job, times] : done_) {
      doubles += times > 1 ? 1 : 0;
    }
    std::printf("%zu of %d jobs done, %zu of them twice\n", done_.size(), kJobs, doubles);
    if (failed_ || done_.size() != kJobs || !worker_killed_ || hub_) {
      return weft::Error(weft::Errc::other, "a job was lost, or no process was killed");
    }
    return {};
  }

  const Place place_;
  std::optional<Child> hub_;
  std::mutex mutex_;
  std::map<std::string, int> done_;  // "did JOB": how often
  Child* workers_[2] = {};
  bool producing_ = true;
  bool worker_killed_ = false;
  bool failed_ = false;
};

weft::Result<void> demonstrate(Place place) {
  if (!place.fleet.empty() || !place.directory.empty()) {
    return Demonstration(std::move(place)).run();
  }
  char directory[] = "/tmp/weft-work-XXXXXX";
  if (::mkdtemp(directory) == nullptr) {
    return weft::Error(weft::Errc::system, "make a directory", errno);
  }
  place.words.insert(place.words.end(), {"--directory", directory});
  const auto result = Demonstration(place).run();
  std::filesystem::remove_all(directory);
  return result;
}

weft::Result<void> run(const Place& place, std::string_view command, int count) {
  weft::Context context;
  weft::Topics topics = WEFT_TRY(open(context, place));
  if (command == "produce") {
    return produce(topics, place, count);
  }
  return command == "work" ? work(topics, place) : host(topics, place);
}

// Takes the options from the words. Returns false if one has no such value.
bool take_place(std::vector<std::string>& words, Place& place) {
  const std::map<std::string, weft::Survives> faults = {
      {"process", weft::Survives::process}, {"power", weft::Survives::power}, {"machine", weft::Survives::machine}};
  while (words.size() >= 2 && words[0].starts_with("--")) {
    if (words[0] == "--fleet") {
      place.fleet = words[1];
    } else if (words[0] == "--directory") {
      place.directory = words[1];
    } else if (words[0] == "--survives" && faults.contains(words[1])) {
      place.survives = faults.at(words[1]);
    } else {
      return false;
    }
    place.words.insert(place.words.end(), words.begin(), words.begin() + 2);
    words.erase(words.begin(), words.begin() + 2);
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> words(argv + 1, argv + argc);
  Place place;
  const bool understood = take_place(words, place);
  const int count = words.size() == 2 && words[0] == "produce" ? std::atoi(words[1].c_str()) : 0;
  const bool one = words.size() == 1 && (words[0] == "work" || words[0] == "hub");
  if (!understood || (!words.empty() && count <= 0 && !one)) {
    const bool asked = words[0] == "--help" || words[0] == "-h";
    std::fputs(kHelp, asked ? stdout : stderr);
    return asked ? 0 : 2;
  }
  std::signal(SIGPIPE, SIG_IGN);
  const auto result = words.empty() ? demonstrate(place) : run(place, words[0], count);
  if (!result && result.error() == weft::Errc::not_supported && place.fleet.empty()) {
    std::printf("%s\n", result.error().message().c_str());
    return 0;
  }
  if (!result) {
    std::fprintf(stderr, "work_queue: %s\n", result.error().message().c_str());
    return 1;
  }
}
