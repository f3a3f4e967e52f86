// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <map>
#include <mutex>
#include <numeric>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/topic/nats_cluster.h"
#include "weft/sys/clock.h"
#include "weft/topic/topics.h"
#include <gtest/gtest.h>

namespace weft::topic {

using namespace std::chrono_literals;

inline constexpr int kMessages = 20'000;
// Of a case of the nightly effort: WEFT_KEPT_MESSAGES, or this number.
inline int many_messages() {
  const char* const text = std::getenv("WEFT_KEPT_MESSAGES");
  return text == nullptr ? 200'000 : std::atoi(text);
}
inline constexpr Duration kLoadMost = 300s;  // never passes unless something is broken

// Load: one handle publishes numbered messages, one reads them, one is a member of a consumer. The test makes the
// faults meanwhile.
// Affinity: the thread of the test.
class Load {
 public:
  Load(TopicsOptions options, Survives survives, int count, std::size_t body_size = 0)
      : options_(std::move(options)),
        survives_(survives),
        count_(count),
        padding_(body_size, '.'),
        acked_(static_cast<std::size_t>(count)),
        read_(acked_.size()),
        consumed_(acked_.size()) {
    const auto declared = declare_in_cluster(options_, stream());
    EXPECT_TRUE(declared) << declared.error().message();
    threads_.emplace_back([this] { publish(); });
    threads_.emplace_back([this] { read(); });
    threads_.emplace_back([this] { consume(); });
    EXPECT_TRUE(until([this] { return ready_ == 3; }));
  }
  Load(const Load&) = delete;
  Load& operator=(const Load&) = delete;
  ~Load() {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    changed_.notify_all();
    for (std::thread& each : threads_) {
      each.join();
    }
  }

  // Permits that messages with smaller numbers leave.
  void release(int messages) {
    const std::lock_guard lock(mutex_);
    released_ = messages;
    changed_.notify_all();
  }
  // The same, a little at a time.
  void release(int messages, Duration within) {
    constexpr int kSteps = 100;
    const int first = released_;
    const Instant begin = sys::now();
    for (int i = 1; i <= kSteps; ++i) {
      release(first + int(std::int64_t{messages - first} * i / kSteps));
      pass(deadline_after(begin, within * i / kSteps));
    }
  }
  [[nodiscard]] bool acknowledged(int messages) {
    return until([&] { return acknowledged_ >= messages; });
  }
  [[nodiscard]] int acknowledged() {
    const std::lock_guard lock(mutex_);
    return acknowledged_;
  }
  // Lets the load go on until then.
  void pass(Instant end) {
    std::unique_lock lock(mutex_);
    (void)changed_.wait_for(lock, std::max<Duration>(end - sys::now(), 0s), [] { return false; });
  }
  // Of the servers: `lossy` ones lose messages after their acknowledgements, store others twice, or store one in
  // another place after a reader got it. Then the numbers are printed, and the handles have to go on.
  enum class Servers : std::uint8_t { whole, lossy };
  // Of a parameter of OnEachServer. Debian's servers, 2.9.10, lost acknowledged messages and stored others twice in
  // runs of these cases. docs/fleet.md has the numbers.
  [[nodiscard]] static Servers servers_of(const std::string& kind) {
    return kind == "nats" ? Servers::lossy : Servers::whole;
  }
  // Waits for all messages, and expects the promises.
  void finish(const char* fault, Servers servers = Servers::whole) {
    release(count_);
    EXPECT_TRUE(acknowledged(count_)) << acknowledged_ << " of " << count_;
    const Places places = read_stream();
    std::vector<std::uint8_t> stored(acked_.size());
    for (const auto& [sequence, number] : places) {
      ++stored[static_cast<std::size_t>(number)];
    }
    const int in_all = std::accumulate(stored.begin(), stored.end(), 0);
    const bool all = until([&] {
      const auto unread = [&](std::size_t i) { return stored[i] != 0 && consumed_[i] == 0; };
      std::size_t first = 0;
      while (reads_ >= in_all && first < stored.size() && !unread(first)) {
        ++first;
      }
      return first == stored.size();
    });
    EXPECT_TRUE(all) << in_all << " stored, " << reads_ << " read, " << consumes_ << " consumed";
    const std::lock_guard lock(mutex_);
    int lost = 0;
    int stored_twice = 0;
    int consumed_again = 0;
    int read_otherwise = 0;
    // Of sequences that an acknowledgement or a delivery named, and at which the stream has another message.
    int moved = 0;
    for (const auto& [sequence, number] : read_at_) {
      const auto found = places.find(sequence);
      moved += found != places.end() && found->second != number ? 1 : 0;
    }
    for (std::size_t i = 0; i < acked_.size(); ++i) {
      lost += acked_[i] != 0 && stored[i] == 0 ? 1 : 0;
      const auto acked_at = places.find(acked_[i]);
      moved += acked_at != places.end() && acked_at->second != int(i) ? 1 : 0;
      stored_twice += stored[i] > 1 ? 1 : 0;
      read_otherwise += read_[i] != stored[i] ? 1 : 0;
      consumed_again += consumed_[i] > 1 ? 1 : 0;
    }
    if (servers == Servers::whole) {
      EXPECT_EQ(lost, 0);
      EXPECT_EQ(stored_twice, 0);
      EXPECT_EQ(read_otherwise, 0);
      EXPECT_EQ(moved, 0);
    }
    std::string again;
    for (const auto& [text, times] : failed_) {
      again += ", " + std::to_string(times) + " times \"" + text + "\"";
    }
    std::printf(
        "[ INFO ] %s: %d acknowledged, %d lost, %d stored twice, %d read otherwise, %d at the sequence of "
        "another one, %d out of order, %d consumed again%s\n",
        fault, acknowledged_, lost, stored_twice, read_otherwise, moved, late_, consumed_again, again.c_str());
  }

 private:
  template <typename Condition>
  [[nodiscard]] bool until(const Condition& holds) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kLoadMost, holds);
  }
  [[nodiscard]] StreamOptions stream() const { return {.name = "jobs", .topics = {"jobs.>"}, .survives = survives_}; }
  template <typename End>
  void become_ready(const Result<End>& end) {
    EXPECT_TRUE(end) << end.error().message();
    const std::lock_guard lock(mutex_);
    ++ready_;
    changed_.notify_all();
  }
  [[nodiscard]] bool ended() {
    const std::lock_guard lock(mutex_);
    return ended_;
  }

  using Places = std::map<std::uint64_t, int>;  // of sequences: the number of the message

  [[nodiscard]] Places read_stream() const {
    Places places;
    Context context;
    Topics topics = *Topics::open(context, options_);
    const Instant end = deadline_after(sys::now(), kLoadMost);
    auto jobs = topics.stream(stream());
    auto reader = jobs ? jobs->read() : jobs.error();
    auto info = jobs ? jobs->info() : jobs.error();
    while (!(reader && info) && sys::now() < end) {  // servers that were cut off choose a leader first
      jobs = topics.stream(stream());
      reader = jobs ? jobs->read() : jobs.error();
      info = jobs ? jobs->info() : jobs.error();
    }
    EXPECT_TRUE(reader && info) << (reader ? info.error() : reader.error()).message();
    for (std::uint64_t last = 0; reader && info && last + 1 < info->next;) {
      const auto message = reader->next_until(deadline_after(sys::now(), kLoadMost));
      if (!message) {
        ADD_FAILURE() << last << " of " << info->next << ": " << message.error().message();
        break;
      }
      last = message->sequence();
      places.emplace(last, std::stoi(std::string(message->text())));
    }
    return places;
  }
  void publish() {
    constexpr std::size_t kInFlight = 1000;
    Context context;
    Topics topics = *Topics::open(context, options_);
    auto jobs = topics.stream(stream());
    become_ready(jobs);
    std::deque<std::pair<int, PendingPublish>> pending;
    const auto settle = [&] {
      auto [number, first] = std::move(pending.front());
      pending.pop_front();
      auto published = first.wait();
      while (!published && !ended()) {  // as a program does: once more with the same id
        {
          const std::lock_guard lock(mutex_);
          ++failed_[published.error().message()];
        }
        const std::string id = std::to_string(number);
        published = jobs->publish("jobs.a", id + padding_, {.id = id});
      }
      if (published) {
        const std::lock_guard lock(mutex_);
        acked_[static_cast<std::size_t>(number)] = published->sequence;
        ++acknowledged_;
        changed_.notify_all();
      }
    };
    for (int i = 0; jobs && i < count_; ++i) {
      for (bool may = false; !may;) {
        {
          std::unique_lock lock(mutex_);
          if (pending.empty()) {
            changed_.wait(lock, [&] { return ended_ || i < released_; });
          }
          if (ended_) {
            return;
          }
          may = i < released_ && pending.size() < kInFlight;
        }
        if (!may) {
          settle();
        }
      }
      const std::string id = std::to_string(i);
      auto sent = jobs->publish_later("jobs.a", id + padding_, {.id = id});
      ASSERT_TRUE(sent) << sent.error().message();
      pending.emplace_back(i, *std::move(sent));
    }
    while (!pending.empty()) {
      settle();
    }
  }
  void read() {
    Context context;
    Topics topics = *Topics::open(context, options_);
    auto jobs = topics.stream(stream());
    auto reader = jobs ? jobs->read() : jobs.error();
    become_ready(reader);
    std::uint64_t last = 0;
    int newest = -1;
    while (reader && !ended()) {
      const auto message = reader->next_until(sys::now() + 200ms);
      if (!message) {
        ASSERT_EQ(message.error(), Errc::timed_out) << message.error().message();
        continue;
      }
      EXPECT_GT(message->sequence(), last);
      last = message->sequence();
      const int number = std::stoi(std::string(message->text()));
      const std::lock_guard lock(mutex_);
      ++reads_;
      ++read_[static_cast<std::size_t>(number)];
      read_at_.emplace(last, number);
      late_ += number < newest ? 1 : 0;
      newest = std::max(newest, number);
      changed_.notify_all();
    }
  }
  void consume() {
    Context context;
    Topics topics = *Topics::open(context, options_);
    auto jobs = topics.stream(stream());
    auto member = jobs ? jobs->consumer("workers", {.ack_wait = 5s}) : jobs.error();
    become_ready(member);
    while (member && !ended()) {
      auto delivery = member->next_until(sys::now() + 200ms);
      if (!delivery) {
        ASSERT_EQ(delivery.error(), Errc::timed_out) << delivery.error().message();
        continue;
      }
      const int number = std::stoi(std::string(delivery->text()));
      delivery->ack();
      const std::lock_guard lock(mutex_);
      consumes_ += ++consumed_[static_cast<std::size_t>(number)] == 1 ? 1 : 0;
      changed_.notify_all();
    }
  }

  const TopicsOptions options_;
  const Survives survives_;
  const int count_;
  const std::string padding_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int ready_ = 0;
  int released_ = 0;
  bool ended_ = false;
  int acknowledged_ = 0;
  int reads_ = 0;
  int consumes_ = 0;                  // different messages
  int late_ = 0;                      // messages after one with a larger number
  std::vector<std::uint64_t> acked_;  // the sequence of each acknowledgement
  std::vector<std::uint8_t> read_;
  Places read_at_;
  std::vector<std::uint8_t> consumed_;
  std::map<std::string, int> failed_;  // publishes, which were repeated, by their errors
  std::vector<std::thread> threads_;
};

}  // namespace weft::topic
