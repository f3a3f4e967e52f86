// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weft/sys/clock.h"
#include "weft/sys/path.h"
#include "weft/sys/poll.h"
#include "weft/topic/test_time.h"
#include "weft/topic/topics.h"
#include <gtest/gtest.h>
#ifdef WEFT_NATS_SERVER
#include "tests/support/nats_server.h"
#endif

namespace weft::topic {

using namespace std::chrono_literals;

// The kinds of fleets that the cases run on. A program with WEFT_NATS_SERVER runs them on servers that the fleet
// starts: one, or three in a cluster, of Debian or current ones. Between three a service is known later; gate_test.cc
// has its cases.
#ifdef WEFT_NATS_SERVER
inline const std::string kFleets[] = {"nats", "nats3", "nats_current", "nats3_current"};
inline const std::string kFleetsOfServices[] = {"nats", "nats_current"};
inline const std::string kKeptFleets[] = {"nats", "nats_current"};
#else
inline const std::string kFleets[] = {"inproc", "local", "tcp"};
inline const std::string kFleetsOfServices[] = {"inproc", "local", "tcp"};
inline const std::string kKeptFleets[] = {"local"};
#endif

// WEFT_ON_FLEETS(suite, kinds): the suite's cases on these fleets. WEFT_ON_PEERS(suite): on those whose handles have
// connections to each other; on NATS they do not know of each other's topics, services and ends.
#define WEFT_ON_FLEETS(suite, kinds) \
  INSTANTIATE_TEST_SUITE_P(Fleets, suite, testing::ValuesIn(kinds), [](const auto& kind) { return kind.param; })
#ifdef WEFT_NATS_SERVER
#define WEFT_ON_PEERS(suite) GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(suite)
#else
#define WEFT_ON_PEERS(suite) WEFT_ON_FLEETS(suite, kFleets)
#endif

[[nodiscard]] inline bool is_nats(std::string_view kind) { return kind.starts_with("nats"); }

// TestFleet: handles of one fleet in one process. Each test has a fleet of its own.
class TestFleet {
 public:
  // `keeps`: the servers have JetStream.
  explicit TestFleet(std::string_view kind, [[maybe_unused]] bool keeps = false) : kind_(kind) {
    static std::atomic<int> next{0};
    name_ = "t" + std::to_string(sys::process_id()) + "-" + std::to_string(next++);
    if (kind_ == "local" || (keeps && is_nats(kind_))) {
      auto made = sys::make_private_directory();
      EXPECT_TRUE(made);
      directory_ = *made;
    }
#ifdef WEFT_NATS_SERVER
    if (is_nats(kind_) && !program().empty()) {
      const std::size_t count = kind_.starts_with("nats3") ? 3 : 1;
      std::string routes;
      for (std::size_t i = 0; i < count; ++i) {
        servers_.push_back(std::make_unique<nats::test::NatsServer>(
            keeps        ? "jetstream { store_dir: \"" + directory_ + "\" }\n"
            : count == 1 ? ""
                         : "cluster { name: t, listen: \"127.0.0.1:-1\", routes: [" + routes + "] }\n",
            std::vector<std::string>(), program()));
        routes = "\"nats://127.0.0.1:" + servers_.front()->cluster_port() + "\"";
      }
    }
#endif
  }
  TestFleet(const TestFleet&) = delete;
  TestFleet& operator=(const TestFleet&) = delete;
  ~TestFleet() {
#ifdef WEFT_NATS_SERVER
    servers_.clear();
#endif
    if (!directory_.empty()) {
      std::filesystem::remove_all(directory_);
    }
  }

  [[nodiscard]] TopicsOptions options() const {
    TopicsOptions options;
    options.runtime_directory = directory_;
    if (is_nats(kind_)) {
      options.fleet = urls();
    } else if (kind_ == "tcp") {
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
  // Of kind nats, and without a server to start: why the case cannot run.
  [[nodiscard]] const char* missing() const {
    if (!is_nats(kind_) || !urls().empty()) {
      return nullptr;
    }
    return is_current() ? "there is no current nats-server: deps/setup.sh tests builds it with Go"
                        : "there is no nats-server";
  }
#ifdef WEFT_NATS_SERVER
  [[nodiscard]] nats::test::NatsServer& server(std::size_t number = 0) { return *servers_[number]; }
#endif

 private:
  [[nodiscard]] bool is_current() const { return kind_.ends_with("_current"); }
#ifdef WEFT_NATS_SERVER
  [[nodiscard]] std::string program() const { return is_current() ? nats::test::current_server() : WEFT_NATS_SERVER; }
#endif
  // A client begins at any of them, so that messages cross the cluster.
  [[nodiscard]] std::string urls() const {
    std::string all;
#ifdef WEFT_NATS_SERVER
    for (const auto& each : servers_) {
      all += (all.empty() ? "" : ",") + each->url();
    }
#endif
    return all;
  }

  std::string kind_;
  std::string name_;
  std::string directory_;
  std::string seed_;
#ifdef WEFT_NATS_SERVER
  std::vector<std::unique_ptr<nats::test::NatsServer>> servers_;
#endif
};

}  // namespace weft::topic
