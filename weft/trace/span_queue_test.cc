// SPDX-License-Identifier: MIT
#include "weft/trace/span_queue.h"

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace weft::trace {
namespace {

using Outcome = SpanQueue::Outcome;
using Records = std::vector<std::unique_ptr<SpanRecord>>;
constexpr std::size_t kMuch = std::size_t{1} << 30;

std::unique_ptr<SpanRecord> record_of(std::string name) {
  auto record = std::make_unique<SpanRecord>();
  record->name = std::move(name);
  return record;
}

std::string names_of(const Records& records) {
  std::string names;
  for (const auto& record : records) {
    names += record->name;
  }
  return names;
}

TEST(SpanQueue, GivesSpansInTheOrderOfTheirEndsUpToANumber) {
  SpanQueue queue(8, kMuch);
  for (const char* name : {"a", "b", "c"}) {
    EXPECT_EQ(queue.push(record_of(name)), Outcome::taken);
  }
  Records taken;
  queue.take(2, kMuch, taken);
  EXPECT_EQ(names_of(taken), "ab");
  EXPECT_EQ(queue.spans(), 1U);
  queue.take(2, kMuch, taken);
  EXPECT_EQ(names_of(taken), "abc");
  EXPECT_EQ(queue.spans(), 0U);
  EXPECT_EQ(queue.bytes(), 0U);
  queue.take(2, kMuch, taken);
  EXPECT_EQ(taken.size(), 3U);
}

TEST(SpanQueue, RefusesASpanBeyondItsNumber) {
  SpanQueue queue(2, kMuch);
  EXPECT_EQ(queue.push(record_of("a")), Outcome::taken);
  EXPECT_EQ(queue.push(record_of("b")), Outcome::taken);
  EXPECT_EQ(queue.push(record_of("c")), Outcome::full_spans);
  Records taken;
  queue.take(1, kMuch, taken);
  EXPECT_EQ(queue.push(record_of("d")), Outcome::taken);
  queue.take(2, kMuch, taken);
  EXPECT_EQ(names_of(taken), "abd");
}

TEST(SpanQueue, RefusesASpanBeyondItsBytes) {
  const std::size_t one = record_of("a")->bytes();
  SpanQueue queue(100, 2 * one);
  EXPECT_EQ(queue.push(record_of(std::string(2 * one, 'x'))), Outcome::full_bytes);
  EXPECT_EQ(queue.push(record_of("a")), Outcome::taken);
  EXPECT_EQ(queue.bytes(), one);
  EXPECT_EQ(queue.push(record_of("bb")), Outcome::full_bytes);
  EXPECT_EQ(queue.push(record_of("b")), Outcome::taken);
  EXPECT_EQ(queue.push(record_of("c")), Outcome::full_bytes);
  EXPECT_EQ(queue.bytes(), 2 * one);
}

TEST(SpanQueue, ABatchEndsBeforeTheSpanThatExceedsItsBytesAndHasOneAtLeast) {
  const std::size_t one = record_of("a")->bytes();
  SpanQueue queue(100, kMuch);
  for (const char* name : {"a", "b", "c"}) {
    EXPECT_EQ(queue.push(record_of(name)), Outcome::taken);
  }
  Records taken;
  queue.take(100, 2 * one, taken);
  EXPECT_EQ(names_of(taken), "ab");
  queue.take(100, 1, taken);
  EXPECT_EQ(names_of(taken), "abc");
}

TEST(SpanQueue, TellsOfABatchUntilTheFunctionIsTakenBack) {
  SpanQueue queue(100, kMuch);
  int calls = 0;
  queue.notify(2, [&calls] { ++calls; });
  EXPECT_EQ(queue.push(record_of("a")), Outcome::taken);
  EXPECT_EQ(calls, 0);
  EXPECT_EQ(queue.push(record_of("b")), Outcome::taken);
  EXPECT_EQ(queue.push(record_of("c")), Outcome::taken);
  EXPECT_EQ(calls, 2);
  queue.notify(0, {});
  EXPECT_EQ(queue.push(record_of("d")), Outcome::taken);
  EXPECT_EQ(calls, 2);
}

TEST(SpanQueue, ThreadsLoseNoSpanBetweenPushAndTake) {
  constexpr int kEach = 2000;
  SpanQueue queue(64, kMuch);
  std::atomic<int> pushed{0};
  std::atomic<int> finished{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      for (int j = 0; j < kEach; ++j) {
        if (queue.push(record_of("a")) == Outcome::taken) {
          ++pushed;
        }
      }
      ++finished;
    });
  }
  Records taken;
  while (finished != 3 || queue.spans() != 0) {
    queue.take(16, kMuch, taken);
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(taken.size(), static_cast<std::size_t>(pushed.load()));
  EXPECT_EQ(queue.bytes(), 0U);
}

}  // namespace
}  // namespace weft::trace
