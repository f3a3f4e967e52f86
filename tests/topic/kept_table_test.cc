// SPDX-License-Identifier: MIT
// The table "Kept topics by engine" of docs/fleet.md: each row is a call, and each cell its outcome.
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tests/topic/nats_cluster.h"
#include "tests/topic/on_each_server.h"
#include "weft/sys/path.h"
#include "weft/topic/test_time.h"
#include "weft/topic/topics.h"
#include <gtest/gtest.h>

namespace weft::topic {
namespace {

using Call = std::function<Error(Topics&)>;

template <typename T>
Error error_of(const Result<T>& result) {
  return result ? Error() : result.error();
}

StreamOptions stream_of(const char* name, Keep keep = Keep::log) {
  return {.name = name, .topics = {std::string(name) + ".>"}, .keep = keep, .survives = Survives::process};
}

Error declare(Topics& topics, const char* name, Survives survives) {
  StreamOptions options = stream_of(name);
  options.survives = survives;
  const auto made = topics.stream(options);
  if (made && made->survives() != survives) {
    return Error(Errc::other, "another promise");
  }
  return error_of(made);
}

Error move_consumer(Topics& topics, const char* name, const From& from) {
  Stream s = *topics.stream(stream_of(name));
  EXPECT_TRUE(s.consumer("c"));
  return error_of(s.consumer("c", {.from = from, .redeclare = true}));
}

const std::map<std::string, std::vector<Call>>& calls_of_rows() {
  static const std::map<std::string, std::vector<Call>> calls = {
      {"`survives` `nothing` or `process`",
       {[](Topics& t) { return declare(t, "nothing", Survives::nothing); },
        [](Topics& t) { return declare(t, "process", Survives::process); }}},
      {"`survives` `machine`", {[](Topics& t) { return declare(t, "machine", Survives::machine); }}},
      {"`survives` `power`, the default", {[](Topics& t) { return declare(t, "power", Survives::power); }}},
      {"a stream without `topics`",
       {[](Topics& t) { return error_of(t.stream({.name = "all", .survives = Survives::process})); }}},
      {"`same_id_window` below 100 ms", {[](Topics& t) {
         StreamOptions options = stream_of("window");
         options.same_id_window = 99ms;
         return error_of(t.stream(options));
       }}},
      {"a reader of a `work` stream", {[](Topics& t) {
         Stream work = *t.stream(stream_of("work", Keep::work));
         return error_of(work.read());
       }}},
      {"a consumer from the newest of each topic", {[](Topics& t) {
         Stream s = *t.stream(stream_of("newest"));
         return error_of(s.consumer("c", {.from = From::last_per_topic()}));
       }}},
      {"the move of a consumer to a sequence or a time (`from`, with `redeclare`)",
       {[](Topics& t) { return move_consumer(t, "move1", From::sequence(7)); },
        [](Topics& t) { return move_consumer(t, "move2", From::time(WallTime(1s))); }}},
      {"a consumer with `tries_max`, also with `dead_letters`",
       {[](Topics& t) {
          Stream s = *t.stream(stream_of("tries"));
          return error_of(s.consumer("c", {.tries_max = 3}));
        },
        [](Topics& t) {
          Stream s = *t.stream(stream_of("dead"));
          return error_of(s.consumer("c", {.tries_max = 3, .dead_letters = "dead.letters"}));
        }}},
      {"a bucket of keys, with `history`",
       {[](Topics& t) { return error_of(t.key_value("b", {.history = 3, .survives = Survives::process})); }}},
      {"a time to live of a message", {[](Topics& t) {
         Stream s = *t.stream(stream_of("ttl"));
         return error_of(s.publish("ttl.a", "x", {.time_to_live = 1s}));
       }}},
      {"a time to live of a key", {[](Topics& t) {
         KeyValue b = *t.key_value("ttl", {.survives = Survives::process});
         return error_of(b.put("k", "x", {.time_to_live = 1s}));
       }}},
      {"a time to live of a key in a bucket with `history`", {[](Topics& t) {
         KeyValue b = *t.key_value("past", {.history = 3, .survives = Survives::process});
         return error_of(b.put("k", "x", {.time_to_live = 1s}));
       }}},
      {"a batch that is stored in whole or not at all (`publish_all`)", {[](Topics& t) {
         Stream s = *t.stream(stream_of("batch"));
         const BatchMessage batch[] = {{.topic = "batch.a"}, {.topic = "batch.b"}};
         return error_of(s.publish_all(batch));
       }}},
      {"the priority of a member of a consumer (`priority`)", {[](Topics& t) {
         Stream s = *t.stream(stream_of("priority"));
         return error_of(s.consumer("c", {.priority = 1}));
       }}},
      {"a message with a delay", {[](Topics& t) {
         Stream s = *t.stream(stream_of("delay"));
         return error_of(s.publish("delay.a", "x", {.delay = 1s}));
       }}},
      {"a topic that a handle owns (`create`)", {[](Topics& t) { return error_of(t.create("owned", soon())); }}},
  };
  return calls;
}

// The rows below the heading: the call, then the cells of the engines.
std::vector<std::vector<std::string>> rows_of_page() {
  std::ifstream page(WEFT_FLEET_PAGE);
  std::vector<std::vector<std::string>> rows;
  bool below = false;
  for (std::string line; std::getline(page, line);) {
    if (line.starts_with("#")) {
      below = line == "## Kept topics by engine";
    } else if (below && line.starts_with("| ") && !line.starts_with("| a program asks for")) {
      std::vector<std::string> cells;
      for (std::size_t at = 2; at < line.size();) {
        const std::size_t end = line.find(" |", at);
        cells.push_back(line.substr(at, end - at));
        at = end + 3;
      }
      rows.push_back(cells);
    }
  }
  return rows;
}

// `is_current`: of the servers of 2.15.2, not of 2.9.10.
void expect_column(Topics& topics, std::size_t column, bool is_current = true) {
  const auto rows = rows_of_page();
  EXPECT_EQ(rows.size(), calls_of_rows().size());
  for (const auto& row : rows) {
    const auto calls = calls_of_rows().find(row[0]);
    ASSERT_NE(calls, calls_of_rows().end()) << row[0];
    ASSERT_EQ(row.size(), 4u) << row[0];
    ASSERT_TRUE(row[column] == "yes" || row[column] == "no" || row[column].starts_with("since ")) << row[column];
    const bool succeeds = row[column] == "yes" || (row[column] != "no" && is_current);
    for (const Call& call : calls->second) {
      const Error error = call(topics);
      EXPECT_EQ(error.code(), succeeds ? Errc::ok : Errc::not_supported) << row[0] << ": " << error.message();
      EXPECT_TRUE(error.code() == Errc::ok || error.text()[0] != '\0') << row[0] << ": the reason";
    }
  }
}

TEST(EnginesTable, AHubKeepsWhatItsColumnSays) {
  const std::string directory = *sys::make_private_directory();
  {
    Context context;
    TopicsOptions options;
    options.runtime_directory = directory;
    Topics topics = *Topics::open(context, options);
    if (topics.stream(stream_of("probe")).error() == Errc::not_supported) {
      GTEST_SKIP() << "this build has no SQLite";
    }
    expect_column(topics, 1);
  }
  std::filesystem::remove_all(directory);
}

class EnginesTableOnNats : public OnEachServer {
 protected:
  [[nodiscard]] static bool is_current() { return GetParam() == "nats_current"; }
  Context context_;
};
INSTANTIATE_TEST_SUITE_P(Servers, EnginesTableOnNats, testing::Values("nats", "nats_current"),
                         [](const auto& kind) { return kind.param; });

TEST_P(EnginesTableOnNats, OneServerKeepsWhatItsColumnSays) {
  const std::string directory = *sys::make_private_directory();
  {
    const nats::test::NatsServer server("jetstream { store_dir: \"" + directory + "\" }\n", {}, program_);
    TopicsOptions options;
    options.fleet = server.url();
    Topics topics = *Topics::open(context_, options);
    expect_column(topics, 2, is_current());
  }
  std::filesystem::remove_all(directory);
}

TEST_P(EnginesTableOnNats, ThreeServersKeepWhatTheirColumnSays) {
  NatsCluster cluster(program_);
  TopicsOptions options;
  options.fleet = cluster.urls();
  StreamOptions probe = stream_of("probe");
  probe.survives = Survives::machine;
  const auto declared = declare_in_cluster(options, probe);
  ASSERT_TRUE(declared) << declared.error().message();
  Topics topics = *Topics::open(context_, options);
  expect_column(topics, 3, is_current());
}

}  // namespace
}  // namespace weft::topic
