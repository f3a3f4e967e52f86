// SPDX-License-Identifier: MIT
// The numbers of a runtime that a page of metrics shows without asking its cores.
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "weft/rt/core/test_runtime.h"

namespace weft::rt {
namespace {

using namespace std::chrono_literals;

sync::DurationValues lags(Runtime& runtime, unsigned core) { return runtime.core(core).loop().activity()->lags(); }

TEST(CoreLag, ATurnIsInTheLagOfItsCore) {
  const auto runtime = test::start_runtime(2);
  test::on_core(*runtime, 1, [] {});
  test::on_core(*runtime, 1, [] {
    for (const Instant began = sys::now(); sys::now() - began < 20ms;) {
    }
  });
  const Instant end = test::in_a_minute();
  while (lags(*runtime, 1).max_ns < 20'000'000 && sys::now() < end) {
    std::this_thread::yield();  // the core adds when the turn has ended
  }
  const sync::DurationValues worked = lags(*runtime, 1);
  EXPECT_GE(worked.max_ns, 20'000'000u);
  EXPECT_GE(worked.sum_ns, worked.max_ns);
}

TEST(CoreLag, EachCoreHasAHistogramForAPage) {
  const auto runtime = test::start_runtime(2);
  sync::DurationReadings readings;
  runtime->duration_source()("main", readings);
  ASSERT_EQ(readings.size(), 2u);
  EXPECT_EQ(readings[1].row, &kCoreLagRow);
  const std::vector<CounterLabel> labels = {{"core", "1"}, {"runtime", "main"}};
  EXPECT_EQ(readings[1].labels, labels);
}

TEST(RuntimeNumbers, MessagesThatWaitForACoreAreQueuedUntilTheyHaveRun) {
  const auto runtime = test::start_runtime(2);
  {
    const test::Blocked blocked(*runtime, 0);
    const std::uint64_t others = runtime->messages_queued();
    for (int i = 0; i < 5; ++i) {
      ASSERT_TRUE(runtime->post(0, [] {}));
    }
    EXPECT_EQ(runtime->messages_queued(), others + 5);
  }
  const Instant end = test::in_a_minute();
  while (runtime->messages_queued() != 0 && sys::now() < end) {
    std::this_thread::yield();
  }
  EXPECT_EQ(runtime->messages_queued(), 0u);
}

TEST(RuntimeNumbers, ThePageNamesThePollerOfTheCores) {
  RuntimeOptions options;
  options.poller = sys::PollerKind::epoll;
  const auto runtime = test::start_runtime(2, options);
  CounterReadings readings;
  runtime->counter_source()("main", readings);
  const std::vector<CounterLabel> labels = {{"poller", "epoll"}, {"runtime", "main"}};
  ASSERT_FALSE(readings.empty());
  EXPECT_EQ(readings[0].table, &kRuntimeTable);
  EXPECT_EQ(readings[0].labels, labels);
  EXPECT_EQ(readings[0].values[0], 2u);
}

}  // namespace
}  // namespace weft::rt
