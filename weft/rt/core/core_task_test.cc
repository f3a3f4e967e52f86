// SPDX-License-Identifier: MIT
#include "weft/rt/core/core_task.h"

#include <atomic>
#include <chrono>
#include <memory>
#include <vector>

#include "weft/rt/core/test_runtime.h"
#include <gtest/gtest.h>

namespace weft::rt {
namespace {

using test::Signal;
using test::start_runtime;

Task<> add(std::atomic<int>* sum, std::unique_ptr<int> number) {
  sum->fetch_add(*number);
  co_return;
}

// A runtime of one core, which does nothing until `go` is given.
struct Busy {
  Busy() {
    EXPECT_TRUE(runtime->post(0, [this] {
      begun.give();
      EXPECT_TRUE(go.take());
    }));
    EXPECT_TRUE(begun.take());
  }
  static std::unique_ptr<Runtime> make() {
    RuntimeOptions options;
    options.lane_capacity = 4;
    return start_runtime(1, options);
  }
  Signal begun;
  Signal go;
  std::unique_ptr<Runtime> runtime = make();  // ends before the signals
};

TEST(CoreSpawn, ThatFindsTheLaneFullLeavesTheTaskToItsCaller) {
  Busy busy;
  std::atomic<int> sum{0};
  std::vector<Future<void>> futures;
  auto task = add(&sum, std::make_unique<int>(1));
  int taken = 0;
  for (;; ++taken) {
    auto spawned = spawn(busy.runtime->core(0), std::move(task));
    if (!spawned) {
      EXPECT_EQ(spawned.error(), Errc::resource_exhausted);
      break;
    }
    futures.push_back(*std::move(spawned));
    ASSERT_LT(taken, 100);
    task = add(&sum, std::make_unique<int>(1));
  }
  ASSERT_TRUE(task) << "the refused task";
  busy.go.give();
  auto last = spawn_until(busy.runtime->core(0), std::move(task), test::in_a_minute());
  ASSERT_TRUE(last);
  EXPECT_TRUE(last->get());
  EXPECT_EQ(sum.load(), taken + 1);
}

TEST(CoreSpawn, OfAStoppedRuntimeLeavesTheTaskToItsCaller) {
  const auto runtime = start_runtime(1);
  ASSERT_TRUE(runtime->stop(test::in_a_minute()));
  std::atomic<int> sum{0};
  auto task = add(&sum, std::make_unique<int>(1));
  EXPECT_EQ(spawn(runtime->core(0), std::move(task)).error(), Errc::closed);
  EXPECT_TRUE(task);
  EXPECT_EQ(spawn_until(runtime->core(0), std::move(task), test::in_a_minute()).error(), Errc::closed);
  EXPECT_TRUE(task);
}

TEST(CoreSpawn, OfABurstFromAForeignThreadWaitsForRoom) {
  Busy busy;
  std::atomic<int> sum{0};
  busy.go.give();
  std::vector<Future<void>> futures;
  for (int i = 0; i < 1000; ++i) {
    auto spawned = spawn_until(busy.runtime->core(0), add(&sum, std::make_unique<int>(1)), test::in_a_minute());
    ASSERT_TRUE(spawned) << i << spawned.error().message();
    futures.push_back(*std::move(spawned));
  }
  for (auto& future : futures) {
    EXPECT_TRUE(future.get());
  }
  EXPECT_EQ(sum.load(), 1000);
}

TEST(CoreSpawn, ThatWaitsEndsAtItsDeadlineWithTheTaskIntact) {
  Busy busy;
  std::atomic<int> sum{0};
  while (busy.runtime->post(0, [] {})) {
  }
  auto task = add(&sum, std::make_unique<int>(7));
  const auto refused = spawn_until(busy.runtime->core(0), std::move(task), sys::now() + std::chrono::milliseconds(1));
  EXPECT_EQ(refused.error(), Errc::timed_out);
  ASSERT_TRUE(task);
  busy.go.give();
  auto spawned = spawn_until(busy.runtime->core(0), std::move(task), test::in_a_minute());
  ASSERT_TRUE(spawned);
  EXPECT_TRUE(spawned->get());
  EXPECT_EQ(sum.load(), 7);
}

}  // namespace
}  // namespace weft::rt
