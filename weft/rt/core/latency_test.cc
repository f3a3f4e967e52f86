// SPDX-License-Identifier: MIT
// Cores that poll before they park.
#include "weft/rt/core/runtime.h"
#include "weft/rt/core/test_runtime.h"
#include "weft/sync/spin.h"
#include <gtest/gtest.h>

namespace weft::rt {
namespace {

using test::on_core;
using test::start_runtime;

TEST(Runtime, ACoreWithoutABudgetForPollsParksAtOnce) {
  for (const auto poller : {sys::PollerKind::epoll, sys::PollerKind::io_uring}) {
    RuntimeOptions options;
    options.wait_mode = sync::WaitMode::latency;
    options.latency.cpu_percent = 0;
    options.poller = poller;
    const auto runtime = start_runtime(1, options);
    for (int i = 0; i < 100; ++i) {
      on_core(*runtime, 0, [] {});
    }
    const CoreCounts counts = runtime->core(0).counts();
    EXPECT_EQ(counts.polled, 0u);
    EXPECT_GT(counts.parks, 0u);
  }
}

// Every wait counts the polls before it. The budget is 100 %, so that the first wait polls, whatever came before.
TEST(Runtime, ACoreForLatencyCountsItsPolls) {
  if (!sync::spins_for_latency()) {
    GTEST_SKIP() << "one processor, or a quota";
  }
  for (const auto poller : {sys::PollerKind::epoll, sys::PollerKind::io_uring}) {
    RuntimeOptions options;
    options.wait_mode = sync::WaitMode::latency;
    options.latency.cpu_percent = 100;
    options.poller = poller;
    const auto runtime = start_runtime(1, options);
    while (runtime->core(0).counts().polled == 0) {
      on_core(*runtime, 0, [] {});
    }
  }
}

TEST(Runtime, RefusesABudgetOfMoreThanTheWholeTime) {
  RuntimeOptions options;
  options.latency.cpu_percent = 101;
  EXPECT_EQ(Runtime::start(options).error(), Errc::invalid_argument);
  options.latency = {LatencyOptions::kPollForMax + Duration(1), 100};
  EXPECT_EQ(Runtime::start(options).error(), Errc::invalid_argument);
}

}  // namespace
}  // namespace weft::rt
