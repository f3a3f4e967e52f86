// SPDX-License-Identifier: MIT
#include "weft/trace/id_source.h"

#include <cstdint>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace weft::trace {
namespace {

using Key = std::pair<std::uint64_t, std::uint64_t>;

TEST(IdSource, IdsOfAllThreadsDifferAndNoneIsZero) {
  constexpr std::size_t kEach = 1000;
  constexpr std::size_t kThreads = 4;
  std::vector<std::vector<Key>> made(kThreads);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&made, i] {
      for (std::size_t j = 0; j < kEach; ++j) {
        const TraceId trace = random_trace_id();
        made[i].emplace_back(trace.high, trace.low);
        made[i].emplace_back(random_span_id().value, 0);
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  std::set<Key> all;
  for (const auto& keys : made) {
    all.insert(keys.begin(), keys.end());
  }
  EXPECT_EQ(all.size(), 2 * kEach * kThreads);
  EXPECT_EQ(all.count(Key{}), 0U);
}

TEST(IdSource, EachBitOfAnIdIsSometimesSet) {
  TraceId trace;
  SpanId span;
  for (int i = 0; i < 1000; ++i) {
    const TraceId next = random_trace_id();
    trace = {trace.high | next.high, trace.low | next.low};
    span = {span.value | random_span_id().value};
  }
  EXPECT_EQ(trace, (TraceId{~std::uint64_t{0}, ~std::uint64_t{0}}));
  EXPECT_EQ(span, SpanId{~std::uint64_t{0}});
}

}  // namespace
}  // namespace weft::trace
