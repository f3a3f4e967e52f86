// SPDX-License-Identifier: MIT
#include "weft/logging/line_queue.h"

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "weft/logging/test_line.h"
#include <gtest/gtest.h>

namespace weft::logging {
namespace {

using Outcome = LineQueue::Outcome;

constexpr const char* kEvent = "event";

Outcome add(LineQueue& queue, std::int64_t time_ns, std::uint64_t number, std::uint64_t thread = 0) {
  const Field fields[] = {{"thread", thread}, {"number", number}};
  return queue.add({time_ns, Level::info, "a", kEvent, fields}, nullptr, kEvent, {});
}

std::vector<std::string> take(LineQueue& queue) {
  std::string all;
  queue.take([&all](std::string_view line) { all += line; });
  return test::split_lines(all);
}

LogCounts counts_of(const LineQueue& queue) {
  LogCounts counts;
  queue.add_counts(counts);
  return counts;
}

TEST(LineQueue, ReturnsTheLinesOfAThreadInTheirOrder) {
  const auto queue = std::make_unique<LineQueue>(LineQueue::kBytesMin);
  EXPECT_FALSE(queue->has_work());
  constexpr std::uint64_t kLines = 5000;  // of several chunks
  for (std::uint64_t i = 0; i < kLines; ++i) {
    EXPECT_NE(add(*queue, 5, i), Outcome::refused);
  }
  EXPECT_TRUE(queue->has_work());
  const auto lines = take(*queue);
  ASSERT_EQ(lines.size(), kLines);
  for (std::uint64_t i = 0; i < kLines; ++i) {
    EXPECT_TRUE(lines[i].ends_with("number=" + std::to_string(i)));
  }
  EXPECT_FALSE(queue->has_work());
  EXPECT_EQ(counts_of(*queue).lines, kLines);
}

TEST(LineQueue, MergesTheLinesOfThreadsByTime) {
  const auto queue = std::make_unique<LineQueue>(LineQueue::kBytesMin);
  for (std::uint64_t thread = 0; thread < 3; ++thread) {
    std::thread([&queue, thread] {
      for (std::uint64_t i = 0; i < 100; ++i) {
        EXPECT_EQ(add(*queue, static_cast<std::int64_t>(i * 3 + thread), i * 3 + thread), Outcome::taken);
      }
    }).join();
  }
  const auto lines = take(*queue);
  ASSERT_EQ(lines.size(), 300U);
  for (std::uint64_t i = 0; i < 300; ++i) {
    EXPECT_TRUE(lines[i].ends_with("number=" + std::to_string(i)));
  }
}

TEST(LineQueue, BeyondItsBytesALineIsRefusedAndCounted) {
  const auto queue = std::make_unique<LineQueue>(LineQueue::kBytesMin);
  std::uint64_t taken = 0;
  bool pressed = false;
  for (std::uint64_t i = 0;; ++i) {
    const Outcome outcome = add(*queue, 1, i);
    if (outcome == Outcome::refused) {
      break;
    }
    ASSERT_LT(i, LineQueue::kBytesMin);
    pressed = pressed || outcome == Outcome::pressing;
    ++taken;
  }
  EXPECT_TRUE(pressed);
  EXPECT_EQ(add(*queue, 1, 0), Outcome::refused);
  EXPECT_EQ(counts_of(*queue).dropped_queue, 2U);
  EXPECT_EQ(counts_of(*queue).lines, taken);
  EXPECT_GT(taken * 100, LineQueue::kBytesMin * 8 / 10);  // a line has about 80 bytes, and its head
  EXPECT_EQ(take(*queue).size(), taken);
  EXPECT_NE(add(*queue, 1, 0), Outcome::refused);
}

TEST(LineQueue, AfterCloseALineIsRefusedAndTheOthersAreTaken) {
  const auto queue = std::make_unique<LineQueue>(LineQueue::kBytesMin);
  EXPECT_EQ(add(*queue, 1, 0), Outcome::taken);
  queue->close();
  EXPECT_EQ(add(*queue, 1, 1), Outcome::refused);
  EXPECT_EQ(counts_of(*queue).dropped_stopped, 1U);
  EXPECT_EQ(take(*queue).size(), 1U);
}

TEST(LineQueue, CountsTheFieldsThatALineLacks) {
  const auto queue = std::make_unique<LineQueue>(LineQueue::kBytesMin);
  const std::string large(kTextMax, 'x');
  const std::vector<Field> fields(20, Field("text", large));
  EXPECT_EQ(queue->add({1, Level::info, "a", kEvent, fields}, nullptr, kEvent, {}), Outcome::taken);
  EXPECT_EQ(counts_of(*queue).fields_dropped, 15U);
  EXPECT_EQ(take(*queue).size(), 1U);
}

TEST(LineQueue, SumsTheSuppressedLinesOfAllThreads) {
  const auto queue = std::make_unique<LineQueue>(LineQueue::kBytesMin);
  LineQueue::Manner manner;
  manner.repeats_max = 1;
  for (int thread = 0; thread < 2; ++thread) {
    std::thread([&] {
      for (int i = 0; i < 5; ++i) {
        EXPECT_EQ(queue->add({1, Level::info, "a", kEvent, {}}, nullptr, kEvent, manner), Outcome::taken);
      }
    }).join();
  }
  EXPECT_TRUE(queue->take_suppressed(0, false).empty());
  const auto suppressed = queue->take_suppressed(1, false);
  ASSERT_EQ(suppressed.size(), 1U);
  EXPECT_EQ(suppressed[0].event, kEvent);
  EXPECT_EQ(suppressed[0].lines, 8U);
  EXPECT_TRUE(queue->take_suppressed(1, true).empty());
  EXPECT_EQ(counts_of(*queue).suppressed, 8U);
  EXPECT_EQ(take(*queue).size(), 2U);
}

TEST(LineQueue, NoLineOfManyThreadsIsLostTornOrOutOfOrder) {
  constexpr std::uint64_t kThreads = 4;
  constexpr std::uint64_t kLines = 3000;
  const auto queue = std::make_unique<LineQueue>(LineQueue::kBytesMin * 4);
  std::atomic<std::uint64_t> ended{0};
  std::vector<std::thread> threads;
  for (std::uint64_t thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      for (std::uint64_t i = 0; i < kLines; ++i) {
        EXPECT_NE(add(*queue, static_cast<std::int64_t>(i), i, thread), Outcome::refused);
      }
      ended.fetch_add(1);
    });
  }
  std::vector<std::uint64_t> next(kThreads, 0);
  for (bool last = false; !last;) {
    last = ended.load() == kThreads;
    for (const std::string& line : take(*queue)) {
      const auto fields = test::LineReader(line).read_text();
      ASSERT_TRUE(fields) << line;
      const auto number = [&](const char* name) {
        const std::u16string& text = fields->at(name);
        return std::stoull(std::string(text.begin(), text.end()));
      };
      EXPECT_EQ(number("number"), next.at(number("thread"))++);
    }
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(next, std::vector<std::uint64_t>(kThreads, kLines));
}

}  // namespace
}  // namespace weft::logging
