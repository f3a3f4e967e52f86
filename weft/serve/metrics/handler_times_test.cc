// SPDX-License-Identifier: MIT
#include "weft/serve/metrics/handler_times.h"

#include <chrono>
#include <string>

#include <gtest/gtest.h>

namespace weft::serve {
namespace {

using namespace std::chrono_literals;

constexpr sync::DurationRow kRow = {"shop", "handler_seconds", "shop, handler", "How long handlers run.", "nowhere"};

TEST(HandlerTimes, AHandlerThatRanHasAHistogramWithItsLabels) {
  HandlerTimes times;
  sync::DurationCounts& get = times.series({{"handler", "/a"}, {"method", "GET"}});
  (void)times.series({{"handler", "/never"}, {"method", "GET"}});
  get.add(3us);
  get.add(5us);
  sync::DurationReadings readings;
  times.read_into(kRow, {"shop", "books"}, readings);
  ASSERT_EQ(readings.size(), 1u);
  EXPECT_EQ(readings[0].row, &kRow);
  const std::vector<CounterLabel> labels = {{"shop", "books"}, {"handler", "/a"}, {"method", "GET"}};
  EXPECT_EQ(readings[0].labels, labels);
  EXPECT_EQ(readings[0].values.total(), 2u);
  EXPECT_EQ(readings[0].values.sum_ns, 8000u);
}

TEST(HandlerTimes, HandlersBeyondTheMostShareOneHistogram) {
  HandlerTimes times;
  for (std::size_t i = 0; i < HandlerTimes::kSeriesMax + 10; ++i) {
    times.series({{"handler", std::to_string(i)}}).add(1us);
  }
  sync::DurationReadings readings;
  times.read_into(kRow, {"shop", "books"}, readings);
  ASSERT_EQ(readings.size(), HandlerTimes::kSeriesMax + 1);
  EXPECT_EQ(readings.back().labels[1].value, "other");
  EXPECT_EQ(readings.back().values.total(), 10u);
}

TEST(HandlerTimes, ATimerAddsTheTimeOfItsBlock) {
  HandlerTimes times;
  sync::DurationCounts& counts = times.series({{"handler", "/a"}});
  const Instant before = sys::now();
  {
    const HandlerTimer timer(counts);
    for (const Instant from = sys::now(); sys::now() - from < 1ms;) {
    }
  }
  const Duration most = sys::now() - before;
  EXPECT_EQ(counts.values().total(), 1u);
  EXPECT_GE(counts.values().sum_ns, 900'000u);
  EXPECT_LE(counts.values().sum_ns, 2 * static_cast<std::uint64_t>(most.count()));
}

}  // namespace
}  // namespace weft::serve
