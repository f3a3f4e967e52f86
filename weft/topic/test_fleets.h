// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "weft/sys/clock.h"
#include "weft/sys/path.h"
#include "weft/sys/poll.h"
#include "weft/topic/test_time.h"
#include "weft/topic/topics.h"
#include <gtest/gtest.h>

namespace weft::topic {

using namespace std::chrono_literals;

// TestFleet: handles of one fleet in one process. Each test has a fleet of its own.
class TestFleet {
 public:
  explicit TestFleet(std::string_view kind) : kind_(kind) {
    static std::atomic<int> next{0};
    name_ = "t" + std::to_string(sys::process_id()) + "-" + std::to_string(next++);
    if (kind_ == "local") {
      auto made = sys::make_private_directory();
      EXPECT_TRUE(made);
      directory_ = *made;
    }
  }
  TestFleet(const TestFleet&) = delete;
  TestFleet& operator=(const TestFleet&) = delete;
  ~TestFleet() {
    if (!directory_.empty()) {
      std::filesystem::remove_all(directory_);
    }
  }

  [[nodiscard]] TopicsOptions options() const {
    TopicsOptions options;
    options.runtime_directory = directory_;
    if (kind_ == "tcp") {
      options.fleet = "tcp://" + seed_;
      options.listen = "tcp://127.0.0.1:0";
    } else {
      options.fleet = kind_ + ":" + name_;
    }
    return options;
  }
  Topics open(Context& context, TopicsOptions options) {
    auto topics = Topics::open(context, options);
    EXPECT_TRUE(topics) << topics.error().message();
    if (kind_ == "tcp" && seed_.empty()) {
      seed_ = topics->endpoint().substr(6);
    }
    return *std::move(topics);
  }
  Topics open(Context& context) { return open(context, options()); }
  [[nodiscard]] const std::string& directory() const { return directory_; }

 private:
  std::string kind_;
  std::string name_;
  std::string directory_;
  std::string seed_;
};

}  // namespace weft::topic
