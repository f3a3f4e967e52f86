// SPDX-License-Identifier: MIT
// Kept topics while publishers, members of a consumer and hubs die by kill -9.
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <map>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "side.h"
#include "tests/support/sanitized.h"
#include "weft/sys/path.h"
#include "weft/topic/test_fleets.h"
#include <gtest/gtest.h>

namespace weft::topic {
namespace {

constexpr int kMessages = kSanitized ? 20'000 : 200'000;

class KeptProcesses : public testing::Test {
 protected:
  KeptProcesses() : directory_(*sys::make_private_directory()) {}
  ~KeptProcesses() override { std::filesystem::remove_all(directory_); }
  std::unique_ptr<Side> side(std::vector<std::string> command) {
    command.insert(command.begin(), directory_);
    return std::make_unique<Side>(std::move(command));
  }
  Topics open(TopicsOptions options = {}) {
    options.runtime_directory = directory_;
    auto topics = Topics::open(context_, options);
    EXPECT_TRUE(topics) << topics.error().message();
    return *std::move(topics);
  }

  std::string directory_;
  Context context_;
};

// Expects of the log: each text once, and of one publisher in its order.
void expect_all(Topics& topics, const std::set<std::string>& kept) {
  Stream jobs = *topics.stream({.name = "jobs"});
  Reader reader = *jobs.read();
  std::set<std::string> stored;
  std::uint64_t inversions = 0;
  int last = -1;
  while (true) {
    auto message = reader.next_stored();
    ASSERT_TRUE(message) << message.error().message();
    if (!*message) {
      break;
    }
    const std::string text((*message)->text());
    EXPECT_TRUE(stored.insert(text).second) << text << " is stored twice";
    const int number = std::stoi(text.substr(text.find(':') + 1));
    inversions += number < last ? 1 : 0;
    last = number;
  }
  for (const std::string& text : kept) {
    ASSERT_TRUE(stored.contains(text)) << text << " was acknowledged, and is lost";
  }
  EXPECT_EQ(inversions, 0u) << "of one publisher";
  std::printf("[ INFO ] %zu acknowledged, %zu stored, 0 lost, %llu inversions\n", kept.size(), stored.size(),
              static_cast<unsigned long long>(inversions));
}

TEST_F(KeptProcesses, NothingAcknowledgedIsLostWhenHubsDie) {
  auto host = side({"host"});
  ASSERT_EQ(host->line(), "hosting");
  auto publisher = side({"publish", "p", "0", std::to_string(kMessages)});
  std::set<std::string> kept;
  int hubs = 1;
  for (std::string line = publisher->line(); line != "done"; line = publisher->line()) {
    ASSERT_TRUE(line.starts_with("kept ")) << line;
    kept.insert(line.substr(5));
    if (kept.size() % (kMessages / 8) == 0) {
      host->kill();
      host->wait();
      host = side({"host"});
      ++hubs;
    }
  }
  EXPECT_EQ(kept.size(), static_cast<std::size_t>(kMessages));
  std::printf("[ INFO ] %d hubs\n", hubs);
  host->kill();
  host->wait();
  Topics topics = open();
  expect_all(topics, kept);
}

TEST_F(KeptProcesses, WhatIsStoredReachesVolatileSubscribersOfOtherProcesses) {
  constexpr int kStored = 5'000;
  TopicsOptions options;
  options.peer_messages_max = kStored;  // the hub waits for no subscriber: beyond the mark it drops
  Topics topics = open(options);
  Stream jobs = *topics.stream({.name = "jobs"});
  Subscription own = *topics.subscribe("jobs.>", {.queue_messages_max = kStored});
  std::vector<std::unique_ptr<Side>> hearers;
  for (int i = 0; i < 2; ++i) {
    hearers.push_back(side({"hear", std::to_string(kStored)}));
    ASSERT_EQ(hearers.back()->line(), "hearing");
  }
  Publisher of_topic = *topics.publisher("jobs.p");
  ASSERT_EQ(*of_topic.wait_subscribers(3, soon()), 3u);
  auto publisher = side({"publish", "p", "0", std::to_string(kStored)});
  for (std::string line = publisher->line(); line != "done"; line = publisher->line()) {
    ASSERT_TRUE(line.starts_with("kept ")) << line;
  }
  for (const auto& hearer : hearers) {
    EXPECT_EQ(hearer->line(), "heard " + std::to_string(kStored) + " missed 0");
  }
  for (int i = 0; i < kStored; ++i) {
    ASSERT_EQ(own.next_until(soon())->text(), "p:" + std::to_string(i));
  }
  const TopicsStatistics all = topics.statistics();
  EXPECT_EQ(all.published, static_cast<std::uint64_t>(kStored));
  EXPECT_EQ(all.dropped_full, 0u);
  EXPECT_EQ(all.matched, all.delivered + all.dropped() + all.queued);
}

TEST_F(KeptProcesses, NothingAcknowledgedIsLostWhenPublishersDie) {
  auto host = side({"host"});
  ASSERT_EQ(host->line(), "hosting");
  std::set<std::string> kept;
  int next = 0;
  for (int round = 0; round < 5; ++round) {
    auto publisher = side({"publish", "p", std::to_string(next), std::to_string(kMessages)});
    std::string line = publisher->line();
    for (int i = 0; i < kMessages / 6 && line.starts_with("kept "); ++i, line = publisher->line()) {
      kept.insert(line.substr(5));
      next = std::stoi(line.substr(line.find(':') + 1)) + 1;
    }
    publisher->kill();
    for (; line.starts_with("kept ") && line.find(':') != std::string::npos; line = publisher->line()) {
      kept.insert(line.substr(5));
      next = std::stoi(line.substr(line.find(':') + 1)) + 1;
    }
  }
  // The next life begins with the first message without an acknowledgement: its ids make it once.
  auto publisher = side({"publish", "p", std::to_string(next), std::to_string(kMessages)});
  for (std::string line = publisher->line(); line != "done"; line = publisher->line()) {
    ASSERT_TRUE(line.starts_with("kept ")) << line;
    kept.insert(line.substr(5));
  }
  EXPECT_EQ(kept.size(), static_cast<std::size_t>(kMessages));
  host.reset();
  Topics topics = open();
  expect_all(topics, kept);
}

TEST_F(KeptProcesses, EachMessageReachesAMemberWhenMembersAndHubsDie) {
  auto host = side({"host"});
  ASSERT_EQ(host->line(), "hosting");
  auto publisher = side({"publish", "p", "0", std::to_string(kMessages)});
  std::thread reading([&] {  // so that its output never stops it
    std::string line = publisher->line();
    for (; line.starts_with("kept "); line = publisher->line()) {
    }
    EXPECT_EQ(line, "done");
  });
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::string, int> got;  // by text: how often
  bool all = false;
  std::vector<std::thread> threads;
  Side* living[2] = {};
  for (Side*& mine : living) {
    threads.emplace_back([&] {
      // Each member is killed after some messages, and another one takes its place.
      while (true) {
        auto process = side({"consume"});
        {
          const std::lock_guard lock(mutex);
          if (all) {
            process->kill();
            return;
          }
          mine = process.get();
        }
        int count = 0;
        for (std::string line = process->line(); !line.empty(); line = process->line()) {
          if (!line.starts_with("got ")) {
            continue;
          }
          {
            const std::lock_guard lock(mutex);
            ++got[line.substr(4)];
            all = all || got.size() >= kMessages;
          }
          changed.notify_all();
          if (++count == kMessages * 3 / 20) {
            process->kill();
          }
        }
        const std::lock_guard lock(mutex);
        mine = nullptr;
        if (all) {
          return;
        }
      }
    });
  }
  for (std::size_t killed = 0; killed < 4; ++killed) {
    {
      std::unique_lock lock(mutex);
      ASSERT_TRUE(changed.wait_for(lock, 60s, [&] { return got.size() >= (killed + 1) * (kMessages / 6); }))
          << "only " << got.size() << " came";
    }
    host->kill();
    host->wait();
    host = side({"host"});
    EXPECT_EQ(host->line(), "hosting");
  }
  reading.join();
  {
    std::unique_lock lock(mutex);
    EXPECT_TRUE(changed.wait_for(lock, 60s, [&] { return got.size() >= kMessages; })) << "only " << got.size();
    all = true;
    for (Side* const process : living) {
      if (process != nullptr) {
        process->kill();
      }
    }
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  std::uint64_t doubles = 0;
  for (const auto& [text, count] : got) {
    doubles += static_cast<std::uint64_t>(count - 1);
  }
  EXPECT_EQ(got.size(), static_cast<std::size_t>(kMessages));
  std::printf("[ INFO ] %zu delivered, %llu of them again\n", got.size(), static_cast<unsigned long long>(doubles));
}

}  // namespace
}  // namespace weft::topic
