// SPDX-License-Identifier: MIT
#include "weft/rt/exec/thread_pool.h"

#include <atomic>
#include <set>
#include <thread>
#include <vector>

#include "weft/rt/exec/test_executors.h"
#include <gtest/gtest.h>

namespace weft::rt {
namespace {

using namespace std::chrono_literals;
using test::Blocker;
using test::in_a_long_time;

std::unique_ptr<ThreadPool> fixed(unsigned workers, const ThreadPoolOptions& options = {}) {
  return std::move(ThreadPool::make_fixed(workers, options)).value();
}

TEST(ThreadPool, RefusesNumbersOfWorkersAndQueueSizesOutOfRange) {
  EXPECT_EQ(ThreadPool::make_fixed(0).error(), Errc::invalid_argument);
  EXPECT_EQ(ThreadPool::make_fixed(ThreadPool::kWorkersMax + 1).error(), Errc::invalid_argument);
  EXPECT_EQ(ThreadPool::make_dynamic(0, 2).error(), Errc::invalid_argument);
  EXPECT_EQ(ThreadPool::make_dynamic(3, 2).error(), Errc::invalid_argument);
  ThreadPoolOptions options;
  options.queue_capacity = 0;
  EXPECT_EQ(ThreadPool::make_fixed(1, options).error(), Errc::invalid_argument);
  options.queue_capacity = ThreadPool::kQueueMax + 1;
  EXPECT_EQ(ThreadPool::make_fixed(1, options).error(), Errc::invalid_argument);
}

TEST(ThreadPool, AFullQueueIsReportedAndTheJobsInItRun) {
  ThreadPoolOptions options;
  options.queue_capacity = 4;
  auto pool = std::move(ThreadPool::make_single(options)).value();
  Blocker blocker;
  ASSERT_TRUE(blocker.block(*pool));
  std::atomic<int> ran{0};
  for (int i = 0; i < 4; ++i) {
    EXPECT_TRUE(pool->execute([&] { ran.fetch_add(1); }));
  }
  EXPECT_EQ(pool->execute([&] { ran.fetch_add(100); }).error(), Errc::resource_exhausted);
  EXPECT_EQ(pool->submit([&] { return ran.fetch_add(100); }).get().error(), Errc::resource_exhausted);
  EXPECT_EQ(pool->counts().refused, 2u);
  EXPECT_EQ(pool->counts().queued, 4u);
  blocker.release();
  EXPECT_TRUE(pool->stop(StopMode::drain, in_a_long_time()));
  EXPECT_EQ(ran.load(), 4);
  EXPECT_EQ(pool->counts().queued, 0u);
}

// A delay that slept in a worker would delay every job after it.
TEST(ThreadPool, PendingDelaysDoNotKeepAnImmediateJobWaiting) {
  auto pool = fixed(2);
  std::vector<Future<int>> delayed;
  delayed.reserve(10);
  for (int i = 0; i < 10; ++i) {
    delayed.push_back(pool->submit_after(1h, [] { return 1; }));
  }
  EXPECT_TRUE(pool->submit([] {}).get_until(in_a_long_time()));
  EXPECT_FALSE(delayed.front().ready());
}

TEST(ThreadPool, ADelayedJobThatFindsTheQueueFullIsLateAndNotLost) {
  ThreadPoolOptions options;
  options.queue_capacity = 2;
  auto pool = std::move(ThreadPool::make_single(options)).value();
  Blocker blocker;
  ASSERT_TRUE(blocker.block(*pool));
  while (pool->execute([] {})) {
  }
  const auto refused = pool->counts().refused;
  auto late = pool->submit_after(1ns, [] { return 1; });
  EXPECT_FALSE(late.wait_until(sys::now() + 3ms));  // the timekeeper offers the job again and again
  EXPECT_EQ(pool->counts().refused, refused) << "the job was taken";
  blocker.release();
  EXPECT_EQ(late.get_until(in_a_long_time()).value(), 1);
}

// Each job waits for another one: no worker may hold a job back that another worker could run.
TEST(ThreadPool, JobsThatWaitForEachOtherRunAtTheSameTime) {
  constexpr int kWorkers = 4;
  auto pool = fixed(kWorkers);
  for (int round = 0; round < 50; ++round) {
    std::atomic<int> arrived{0};
    std::vector<Future<void>> futures;
    futures.reserve(kWorkers);
    for (int i = 0; i < kWorkers; ++i) {
      futures.push_back(pool->submit([&] {
        arrived.fetch_add(1);
        while (arrived.load() < kWorkers) {
          std::this_thread::yield();
        }
      }));
    }
    for (auto& future : futures) {
      ASSERT_TRUE(future.get_until(in_a_long_time()));
    }
  }
}

TEST(ThreadPool, AnotherWorkerTakesTheJobOfABusyOne) {
  auto pool = fixed(2);
  auto outer = pool->submit([&] {
    auto inner = pool->submit([] { return std::this_thread::get_id(); });
    return inner.get_until(in_a_long_time());
  });
  const auto ran_by = outer.get_until(in_a_long_time());
  ASSERT_TRUE(ran_by);
  EXPECT_NE(*ran_by, std::this_thread::get_id());
}

// Jobs that execute themselves again keep all workers busy; other jobs still get their turn.
TEST(ThreadPool, JobsThatExecuteThemselvesAgainStarveNoOther) {
  auto pool = fixed(2);
  std::atomic<bool> over{false};
  struct Again {
    ThreadPool* pool;
    std::atomic<bool>* over;
    void operator()() const {
      if (!over->load()) {
        (void)pool->execute(*this);
      }
    }
  };
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(pool->execute(Again{pool.get(), &over}));
  }
  for (int i = 0; i < 20; ++i) {
    EXPECT_TRUE(pool->submit([] {}).get_until(in_a_long_time()));
  }
  over.store(true);
  EXPECT_TRUE(pool->stop(StopMode::drain, in_a_long_time()));
}

TEST(ThreadPool, OneThreadKeepsTheOrder) {
  auto pool = std::move(ThreadPool::make_single()).value();
  std::vector<int> order;
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(pool->execute([&order, i] { order.push_back(i); }));
  }
  EXPECT_TRUE(pool->stop(StopMode::drain, in_a_long_time()));
  ASSERT_EQ(order.size(), 1000u);
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
}

// However long the burst: the pusher wakes one sleeper, which wakes the next if there are more jobs.
TEST(ThreadPool, ABurstCostsAtMostOneWakePerWorker) {
  constexpr unsigned kWorkers = 3;
  ThreadPoolOptions options;
  options.queue_capacity = 1 << 14;
  auto pool = fixed(kWorkers, options);
  Blocker blocker;
  ASSERT_TRUE(blocker.block(*pool, kWorkers));
  const auto before = pool->counts().wakes;
  for (int i = 0; i < 10'000; ++i) {
    ASSERT_TRUE(pool->execute([] {}));
  }
  EXPECT_EQ(pool->counts().wakes, before);  // no worker sleeps
  blocker.release();
  EXPECT_TRUE(pool->stop(StopMode::drain, in_a_long_time()));
  EXPECT_LE(pool->counts().wakes, before + kWorkers);
}

TEST(ThreadPool, ADynamicPoolGrowsToItsMaximumAndNotBeyond) {
  constexpr int kMost = 4;
  auto pool = std::move(ThreadPool::make_dynamic(1, kMost)).value();
  EXPECT_EQ(pool->counts().workers, 1u);
  Blocker blocker;
  ASSERT_TRUE(blocker.block(*pool, 2 * kMost, kMost));
  EXPECT_EQ(pool->counts().workers, static_cast<unsigned>(kMost));
  blocker.release();
  EXPECT_TRUE(pool->stop(StopMode::drain, in_a_long_time()));
  EXPECT_EQ(pool->counts().executed, 2u * kMost);
}

TEST(ThreadPool, ADynamicPoolShrinksToItsMinimumAndGrowsAgain) {
  ThreadPoolOptions options;
  options.idle_limit = 1ms;
  auto pool = std::move(ThreadPool::make_dynamic(1, 3, options)).value();
  for (int round = 0; round < 3; ++round) {
    Blocker blocker;
    ASSERT_TRUE(blocker.block(*pool, 3));
    blocker.release();
    Instant patience = sys::now() + 100ms;
    while (pool->counts().workers > 1) {
      if (sys::now() > patience) {  // a worker whose permit another took at its time limit sleeps until the next job
        EXPECT_TRUE(pool->submit([] {}).get_until(in_a_long_time()));
        patience = sys::now() + 100ms;
      }
      std::this_thread::yield();
    }
    EXPECT_TRUE(pool->submit([] {}).get_until(in_a_long_time()));
  }
  EXPECT_GE(pool->counts().executed, 12u);
}

// The only worker waits for a job that is pushed later.
TEST(ThreadPool, ADynamicPoolGrowsForAJobThatAnotherWaitsFor) {
  auto pool = std::move(ThreadPool::make_dynamic(1, 2)).value();
  auto outer = pool->submit([&] { return static_cast<bool>(pool->submit([] {}).get_until(in_a_long_time())); });
  EXPECT_TRUE(outer.get_until(in_a_long_time()).value());
}

}  // namespace
}  // namespace weft::rt
