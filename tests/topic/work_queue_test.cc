// SPDX-License-Identifier: MIT
// examples/work_queue.cc on servers of NATS: the program that `ctest -R example.work_queue` runs on a hub.
#include <cstdio>
#include <filesystem>
#include <string>

#include "tests/topic/nats_cluster.h"
#include "tests/topic/on_each_server.h"
#include "weft/sys/path.h"
#include "weft/topic/topics.h"
#include <gtest/gtest.h>

namespace weft::topic {
namespace {

// WorkQueue: its demonstration, line by line.
class WorkQueue {
 public:
  explicit WorkQueue(const std::string& place)
      : output_(::popen((std::string(WEFT_WORK_QUEUE) + " " + place + " 2>&1").c_str(), "r")) {}
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;
  ~WorkQueue() { ::pclose(output_); }

  [[nodiscard]] std::string line() {
    std::string text;
    for (int c = std::fgetc(output_); c != EOF && c != '\n'; c = std::fgetc(output_)) {
      text += static_cast<char>(c);
    }
    return text;
  }

 private:
  std::FILE* const output_;
};

class WorkQueueOnNats : public OnEachServer {
 protected:
  // A server dies when the demonstration has killed a worker.
  template <typename Kill>
  static void expect_all_done(const std::string& place, const Kill& kill_a_server) {
    WorkQueue demonstration(place);
    bool killed = false;
    std::string last;
    for (std::string line = demonstration.line(); !line.empty(); line = demonstration.line()) {
      std::printf("[ INFO ] %s\n", line.c_str());
      if (line == "kill -9 of a worker") {
        kill_a_server();
        killed = true;
      }
      last = line;
    }
    EXPECT_TRUE(killed);
    EXPECT_TRUE(last.starts_with("400 of 400 jobs done")) << last;
  }
};
INSTANTIATE_TEST_SUITE_P(Servers, WorkQueueOnNats, testing::Values("nats", "nats_current"),
                         [](const auto& kind) { return kind.param; });

TEST_P(WorkQueueOnNats, EachJobIsDoneWhenAWorkerAndTheServerAreKilled) {
  const std::string directory = *sys::make_private_directory();
  {
    nats::test::NatsServer server("jetstream { store_dir: \"" + directory + "\" }\n", {}, program_);
    expect_all_done("--fleet " + server.url(), [&] { server.restart(); });
  }
  std::filesystem::remove_all(directory);
}

TEST_P(WorkQueueOnNats, EachJobIsDoneWhenAWorkerAndOneOfThreeServersAreKilled) {
  NatsCluster cluster(program_);
  TopicsOptions options;
  options.fleet = cluster.urls();
  const auto declared = declare_in_cluster(
      options, {.name = "jobs", .topics = {"jobs.>"}, .keep = Keep::work, .survives = Survives::machine});
  ASSERT_TRUE(declared) << declared.error().message();
  expect_all_done("--survives machine --fleet " + cluster.urls(), [&] { cluster.server(1).restart(); });
}

}  // namespace
}  // namespace weft::topic
