// SPDX-License-Identifier: MIT
#include "weft/logging/log.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <iterator>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "weft/logging/test_line.h"
#include "weft/sys/clock.h"
#include "weft/sys/path.h"
#include <gtest/gtest.h>

namespace weft::logging {
namespace {

using test::LineReader;

const Duration kLong = std::chrono::seconds(60);  // of a busy machine

// An output that keeps its lines.
struct Kept {
  std::mutex mutex;
  std::string text;

  LogOptions options() {
    LogOptions options;
    options.output = [this](std::string_view lines) {
      const std::lock_guard lock(mutex);
      text += lines;
    };
    return options;
  }
  std::vector<std::string> lines() {
    const std::lock_guard lock(mutex);
    return test::split_lines(text);
  }
  // The values of a field, of the lines that have it.
  std::vector<std::string> values(const std::string& name) {
    std::vector<std::string> found;
    for (const std::string& line : lines()) {
      const auto fields = LineReader(line).read_text();
      EXPECT_TRUE(fields) << line;
      if (fields && fields->contains(name)) {
        const std::u16string& value = fields->at(name);
        found.emplace_back(value.begin(), value.end());
      }
    }
    return found;
  }
  std::size_t count(const std::string& name, const std::string& value) {
    const auto all = values(name);
    return static_cast<std::size_t>(std::count(all.begin(), all.end(), value));
  }
};

// An output that takes no line until it may.
struct Stuck {
  std::promise<void> reached;
  std::promise<void> proceed;
  bool first = true;  // of the writer's thread
  std::atomic<std::size_t> lines{0};
  std::string text;  // after the log has stopped

  LogOptions options() {
    LogOptions options;
    options.settings.repeats_max = 0;
    options.queue_bytes = std::size_t{1} << 20;
    options.output = [this](std::string_view more) {
      if (std::exchange(first, false)) {
        reached.set_value();
        proceed.get_future().wait();
      }
      lines += static_cast<std::size_t>(std::count(more.begin(), more.end(), '\n'));
      text += more;
    };
    return options;
  }
};

std::string content_of(const std::string& file) {
  std::ifstream stream(file);
  return {std::istreambuf_iterator<char>(stream), {}};
}

std::shared_ptr<Log> make_log(LogOptions options) {
  auto log = Log::make(std::move(options));
  EXPECT_TRUE(log);
  return log ? *log : nullptr;
}

void flush(Log& log) { ASSERT_TRUE(log.flush_until(sys::now() + kLong)); }

std::uint64_t number_of(const std::string& text) { return std::stoull(text); }

TEST(Log, WritesTheLinesOfItsLevelAndAbove) {
  Kept kept;
  const auto log = make_log(kept.options());
  const Logger shop = log->logger("shop.orders").value();
  shop.trace("t");
  shop.debug("d");
  shop.info("i", {{"number", 1}});
  shop.warning("w", {{"name", "a b"}, {"flag", true}});
  shop.error("e");
  EXPECT_FALSE(shop.writes(Level::debug));
  EXPECT_TRUE(shop.writes(Level::info));
  flush(*log);
  EXPECT_EQ(kept.values("event"), (std::vector<std::string>{"i", "w", "e"}));
  EXPECT_EQ(kept.values("level"), (std::vector<std::string>{"info", "warning", "error"}));
  EXPECT_EQ(kept.values("component"), std::vector<std::string>(3, "shop.orders"));
  EXPECT_EQ(kept.values("name"), std::vector<std::string>{"a b"});
}

TEST(Log, ALoggerOfNoLogWritesNothing) {
  const Logger none;
  none.error("e", {{"number", 1}});
  EXPECT_FALSE(none.writes(Level::error));
}

TEST(Log, TheLongestRuleThatFitsDecidesALevel) {
  Kept kept;
  LogOptions options = kept.options();
  options.settings.level = Level::error;
  options.settings.levels = {"shop=warning", "shop.orders=debug", "shop.orders.slow=off"};
  const auto log = make_log(options);
  const auto level = [&](const char* name) { return log->level_of(name); };
  EXPECT_EQ(level("other"), Level::error);
  EXPECT_EQ(level("shop"), Level::warning);
  EXPECT_EQ(level("shopping"), Level::error);
  EXPECT_EQ(level("shop.carts"), Level::warning);
  EXPECT_EQ(level("shop.orders.fast"), Level::debug);
  EXPECT_EQ(level("shop.orders.slow"), Level::off);
  EXPECT_FALSE(log->logger("shop.orders.slow").value().writes(Level::error));
  EXPECT_TRUE(log->logger("shop.orders").value().writes(Level::debug));
}

TEST(Log, ALevelChangesForTheComponentsBelowIt) {
  Kept kept;
  const auto log = make_log(kept.options());
  const Logger orders = log->logger("shop.orders").value();
  const Logger other = log->logger("other").value();
  EXPECT_TRUE(log->set_level("shop", Level::trace));
  EXPECT_TRUE(orders.writes(Level::trace));
  EXPECT_FALSE(other.writes(Level::debug));
  EXPECT_TRUE(log->logger("shop.carts").value().writes(Level::trace));  // a later one, too
  EXPECT_TRUE(log->set_level("shop", Level::off));
  EXPECT_FALSE(orders.writes(Level::error));
  EXPECT_TRUE(log->set_level("", Level::debug));
  EXPECT_TRUE(other.writes(Level::debug));
  EXPECT_EQ(log->set_level("Shop", Level::info).error(), Errc::invalid_argument);
}

TEST(Log, LevelsAndFormatsChangeWhileThreadsLog) {
  Kept kept;
  LogOptions options = kept.options();
  options.settings.repeats_max = 0;
  options.queue_bytes = std::size_t{16} << 20;
  const auto log = make_log(options);
  constexpr std::uint64_t kLines = 3000;
  std::atomic<bool> go{true};
  std::vector<std::thread> threads;
  for (std::uint64_t number = 0; number < 2; ++number) {
    threads.emplace_back([&log, number] {
      const Logger own = log->logger(number == 0 ? "a" : "b").value();
      for (std::uint64_t i = 0; i < kLines; ++i) {
        own.error("always", {{"thread", number}, {"number", i}});
        own.debug("sometimes");
      }
    });
  }
  std::thread changing([&] {
    LogSettings settings;
    settings.repeats_max = 0;
    while (go) {
      EXPECT_TRUE(log->set_level("a", Level::debug));
      EXPECT_TRUE(log->set_level("", Level::error));
      EXPECT_TRUE(log->apply(settings));
      (void)log->counts();
    }
  });
  for (std::thread& thread : threads) {
    thread.join();
  }
  go = false;
  changing.join();
  log->stop(sys::now() + kLong);
  EXPECT_EQ(kept.count("event", "always"), 2 * kLines);
  EXPECT_EQ(log->counts().written, log->counts().lines);
}

TEST(Log, AnOutputThatTakesNoLineDelaysNoCallerAndEveryDropIsReported) {
  Stuck stuck;
  auto log = make_log(stuck.options());
  const Logger logger = log->logger("a").value();
  logger.info("first");
  stuck.reached.get_future().wait();
  const std::string large(1000, 'x');
  constexpr std::uint64_t kLines = 3000;  // three times the queue
  for (std::uint64_t i = 0; i < kLines; ++i) {
    logger.info("more", {{"text", large}});
  }
  const LogCounts full = log->counts();
  EXPECT_EQ(full.lines + full.dropped_queue, kLines + 1);
  EXPECT_GT(full.dropped_queue, kLines / 2);
  EXPECT_EQ(full.written, 0U);
  EXPECT_EQ(log->flush_until(sys::now()).error(), Errc::timed_out);
  stuck.proceed.set_value();
  log->stop(sys::now() + kLong);
  const LogCounts end = log->counts();
  EXPECT_EQ(end.written, end.lines);
  EXPECT_EQ(end.dropped_queue, full.dropped_queue);
  EXPECT_GE(end.reports, 1U);
  EXPECT_EQ(stuck.lines.load(), end.written + end.reports);
  std::uint64_t reported = 0;
  for (const std::string& line : test::split_lines(stuck.text)) {
    const auto fields = LineReader(line).read_text();
    ASSERT_TRUE(fields) << line;
    if (fields->at("event") == u"dropped") {
      const std::u16string& lines = fields->at("lines");
      reported += number_of(std::string(lines.begin(), lines.end()));
    }
  }
  EXPECT_EQ(reported, end.dropped_queue);
}

TEST(Log, RepeatsAreSuppressedCountedAndReported) {
  Kept kept;
  LogOptions options = kept.options();
  options.settings.repeats_max = 3;
  const auto log = make_log(options);
  const Logger logger = log->logger("a").value();
  constexpr std::uint64_t kLines = 1000;
  for (std::uint64_t i = 0; i < kLines; ++i) {
    logger.info("again", {{"number", i}});
  }
  logger.info("once");
  flush(*log);
  const LogCounts counts = log->counts();
  EXPECT_EQ(counts.lines + counts.suppressed, kLines + 1);
  EXPECT_EQ(kept.count("event", "once"), 1U);
  const std::uint64_t again = kept.count("event", "again");
  EXPECT_GE(again, 3U);
  std::uint64_t reported = 0;
  for (const std::string& lines : kept.values("lines")) {
    reported += number_of(lines);
  }
  EXPECT_EQ(again + reported, kLines);
  EXPECT_EQ(kept.values("of"), std::vector<std::string>(kept.count("event", "suppressed"), "again"));
  EXPECT_EQ(kept.values("by"), std::vector<std::string>(kept.count("event", "suppressed"), "a"));
}

TEST(Log, SuppressedLinesAreReportedAlsoIfNoOtherLineFollows) {
  std::promise<void> told;
  LogOptions options;
  options.settings.repeats_max = 1;
  bool once = true;
  options.output = [&](std::string_view lines) {
    if (once && lines.find("event=suppressed of=again by=a lines=") != std::string_view::npos) {
      once = false;
      told.set_value();
    }
  };
  const auto log = make_log(options);
  const Logger logger = log->logger("a").value();
  for (int i = 0; i < 10; ++i) {
    logger.info("again");
  }
  EXPECT_EQ(told.get_future().wait_for(kLong), std::future_status::ready);
}

TEST(Log, TheDestructorWritesTheLinesThatWait) {
  Kept kept;
  {
    const auto log = make_log(kept.options());
    const Logger logger = log->logger("a").value();
    for (int i = 0; i < 50; ++i) {
      logger.info("line");
    }
  }
  EXPECT_EQ(kept.lines().size(), 50U);
}

TEST(Log, AfterAStopLinesAreCountedAndCallsFail) {
  Kept kept;
  auto log = make_log(kept.options());
  const Logger logger = log->logger("a").value();
  logger.info("before");
  log->stop(sys::now() + kLong);
  log->stop(sys::now());
  logger.info("after");
  EXPECT_EQ(log->flush_until(sys::now()).error(), Errc::closed);
  EXPECT_EQ(log->counts().dropped_stopped, 1U);
  EXPECT_EQ(kept.lines().size(), 1U);
  const CounterSource source = log->counter_source();
  log.reset();
  logger.info("later");  // the logger outlives the log
  CounterReadings readings;
  source("program", readings);
  ASSERT_EQ(readings.size(), 1U);
  EXPECT_EQ(readings[0].table, &kLogTable);
  EXPECT_EQ(readings[0].values.size(), kLogTable.rows.size());
}

TEST(Log, ApplyReplacesSettingsAsAWhole) {
  Kept kept;
  const auto log = make_log(kept.options());
  const Logger logger = log->logger("a").value();
  logger.info("one");
  LogSettings settings;
  settings.format = Format::json;
  settings.level = Level::error;
  settings.levels = {"b=trace"};
  ASSERT_TRUE(log->apply(settings));
  logger.info("two");
  logger.error("three", {{"number", 3}});
  flush(*log);
  settings.level = Level::trace;
  settings.levels = {"b"};
  EXPECT_EQ(log->apply(settings).error(), Errc::invalid_argument);
  EXPECT_EQ(log->level_of("a"), Level::error);
  EXPECT_EQ(log->level_of("b"), Level::trace);
  const auto lines = kept.lines();
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_TRUE(LineReader(lines[0]).read_text());
  const auto json = LineReader(lines[1]).read_json();
  ASSERT_TRUE(json) << lines[1];
  EXPECT_EQ(json->at("number"), u"3");
}

TEST(Log, ComponentsAreBoundedAndTheSameNameIsTheSameOne) {
  Kept kept;
  const auto log = make_log(kept.options());
  for (std::size_t i = 0; i < Log::kComponentsMax; ++i) {
    ASSERT_TRUE(log->logger("c" + std::to_string(i)));
  }
  EXPECT_EQ(log->logger("one-more").error(), Errc::resource_exhausted);
  EXPECT_TRUE(log->logger("c7"));
  EXPECT_EQ(log->logger("C").error(), Errc::invalid_argument);
}

TEST(Log, WrongOptionsAreRefused) {
  const auto refused = [](const auto& change) {
    LogOptions options;
    change(options);
    const auto log = Log::make(options);
    return log ? Error() : log.error();
  };
  EXPECT_EQ(refused([](LogOptions& o) { o.queue_bytes = 1000; }), Errc::invalid_argument);
  EXPECT_EQ(refused([](LogOptions& o) { o.settings.rotation.files = 0; }), Errc::invalid_argument);
  EXPECT_EQ(refused([](LogOptions& o) { o.settings.levels = {"x"}; }), Errc::invalid_argument);
  EXPECT_EQ(refused([](LogOptions& o) { o.settings.file = "/none/at/all"; }), Errc::not_found);
}

class LogFileTest : public testing::Test {
 protected:
  void SetUp() override { directory_ = sys::make_private_directory().value(); }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  std::string directory_;
};

TEST_F(LogFileTest, AChangeOfTheFileLosesNoLine) {
  LogOptions options;
  options.settings.repeats_max = 0;
  options.settings.file = directory_ + "/0";
  const auto log = make_log(options);
  const Logger logger = log->logger("a").value();
  std::size_t lines = 0;
  for (int file = 0; file < 5; ++file) {
    options.settings.file = directory_ + "/" + std::to_string(file);
    ASSERT_TRUE(log->apply(options.settings));
    for (int i = 0; i < 100; ++i) {
      logger.info("line");
    }
    flush(*log);
  }
  options.settings.file = directory_ + "/none/log";
  EXPECT_EQ(log->apply(options.settings).error(), Errc::not_found);
  log->stop(sys::now() + kLong);
  for (int file = 0; file < 5; ++file) {
    lines += test::split_lines(content_of(directory_ + "/" + std::to_string(file))).size();
  }
  EXPECT_EQ(lines, 500U);
  EXPECT_GE(test::split_lines(content_of(directory_ + "/4")).size(), 100U);  // the lines after the last change
}

TEST_F(LogFileTest, AFileRotates) {
  LogOptions options;
  options.settings.repeats_max = 0;
  options.settings.file = directory_ + "/log";
  options.settings.rotation = {10'000, 2};
  const auto log = make_log(options);
  const Logger logger = log->logger("a").value();
  for (std::uint64_t i = 0; i < 1000; ++i) {
    logger.info("line", {{"number", i}});
  }
  log->stop(sys::now() + kLong);
  std::string all;
  for (const char* file : {"/log.2", "/log.1", "/log"}) {
    const std::string part = content_of(directory_ + file);
    EXPECT_LE(part.size(), 10'000U);
    all += part;
  }
  const auto lines = test::split_lines(all);
  EXPECT_GT(lines.size(), 200U);
  EXPECT_TRUE(lines.back().ends_with("number=999"));
  for (std::size_t i = 0; i < lines.size(); ++i) {
    EXPECT_TRUE(lines[i].ends_with("number=" + std::to_string(1000 - lines.size() + i))) << lines[i];
  }
  EXPECT_GE(log->counts().rotations, 5U);
}

TEST_F(LogFileTest, AFullDiskDropsAndCountsAndTheLogWorksOn) {
  LogOptions options;
  options.settings.file = "/dev/full";
  const auto log = make_log(options);
  const Logger logger = log->logger("a").value();
  logger.info("lost");
  logger.info("lost");
  flush(*log);
  EXPECT_EQ(log->counts().dropped_failed, 2U);
  EXPECT_EQ(log->counts().reports, 0U);
  options.settings.file = directory_ + "/log";
  ASSERT_TRUE(log->apply(options.settings));
  logger.info("kept");
  log->stop(sys::now() + kLong);
  const LogCounts end = log->counts();
  EXPECT_EQ(end.written, 1U);
  EXPECT_EQ(end.lines, end.written + end.dropped_failed);
  const std::string text = content_of(options.settings.file);
  EXPECT_NE(text.find("event=kept"), std::string::npos);
  EXPECT_NE(text.find("event=dropped lines=2\n"), std::string::npos);
}

TEST_F(LogFileTest, AStopGivesUpAPipeThatTakesNoBytes) {
  const std::string fifo = directory_ + "/fifo";
  ASSERT_EQ(std::system(("mkfifo " + fifo).c_str()), 0);    // NOLINT(cert-env33-c,concurrency-mt-unsafe)
  std::fstream reader(fifo, std::ios::in | std::ios::out);  // it reads nothing
  LogOptions options;
  options.settings.file = fifo;
  options.settings.repeats_max = 0;
  const auto log = make_log(options);
  const Logger logger = log->logger("a").value();
  const std::string large(1000, 'x');
  for (int i = 0; i < 1000; ++i) {
    logger.info("line", {{"text", large}});
  }
  log->stop(sys::now());
  const LogCounts end = log->counts();
  EXPECT_GT(end.dropped_failed, 100U);
  EXPECT_EQ(end.lines, end.written + end.dropped_failed);
}

TEST_F(LogFileTest, ReopenFollowsTheNameOfTheFile) {
  LogOptions options;
  options.settings.file = directory_ + "/log";
  const auto log = make_log(options);
  const Logger logger = log->logger("a").value();
  logger.info("one");
  flush(*log);
  std::filesystem::rename(options.settings.file, options.settings.file + ".old");
  log->reopen();
  logger.info("two");
  log->stop(sys::now() + kLong);
  EXPECT_NE(content_of(options.settings.file + ".old").find("event=one"), std::string::npos);
  EXPECT_EQ(test::split_lines(content_of(options.settings.file)).size(), 1U);
}

}  // namespace
}  // namespace weft::logging
