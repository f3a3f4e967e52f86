// SPDX-License-Identifier: MIT
#include "weft/rt/exec/strand.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "weft/rt/exec/test_executors.h"
#include <gtest/gtest.h>

namespace weft::rt {
namespace {

using namespace std::chrono_literals;
using test::Blocker;
using test::in_a_long_time;

TEST(Strand, RunsOneJobAtATimeInOrderAndEachSeesTheOneBefore) {
  constexpr int kJobs = 5000;
  auto pool = std::move(ThreadPool::make_fixed(4)).value();
  Strand strand(*pool, kJobs);
  std::vector<int> order;  // no lock
  for (int i = 0; i < kJobs; ++i) {
    ASSERT_TRUE(strand.execute([&order, i] { order.push_back(i); }));
  }
  EXPECT_TRUE(strand.stop(StopMode::drain, in_a_long_time()));
  ASSERT_EQ(order.size(), static_cast<std::size_t>(kJobs));
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
}

TEST(Strand, JobsThatWaitAreCounted) {
  auto pool = std::move(ThreadPool::make_fixed(1)).value();
  Strand strand(*pool);
  Blocker blocker;
  ASSERT_TRUE(blocker.block(strand));
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(strand.execute([] {}));
  }
  EXPECT_EQ(strand.counts().queued, 3u);
  blocker.release();
  EXPECT_TRUE(strand.stop(StopMode::drain, in_a_long_time()));
  EXPECT_EQ(strand.counts().queued, 0u);
}

TEST(Strand, SeveralThreadsBringJobsWithoutARace) {
  auto pool = std::move(ThreadPool::make_fixed(3)).value();
  Strand strand(*pool);
  int count = 0;  // no lock
  std::vector<std::thread> threads;
  threads.reserve(3);
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      for (int job = 0; job < 2000; ++job) {
        while (!strand.execute([&] { ++count; })) {
          std::this_thread::yield();
        }
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_TRUE(strand.stop(StopMode::drain, in_a_long_time()));
  EXPECT_EQ(count, 6000);
}

// The strand's first job finds the pool full: the strand passes the error on, keeps no job, and works again afterwards.
TEST(Strand, PassesOnThatTheUnderlyingQueueIsFull) {
  ThreadPoolOptions options;
  options.queue_capacity = 2;
  auto pool = std::move(ThreadPool::make_single(options)).value();
  Blocker blocker;
  ASSERT_TRUE(blocker.block(*pool));
  while (pool->execute([] {})) {
  }
  Strand strand(*pool);
  bool ran = false;
  EXPECT_EQ(strand.execute([&] { ran = true; }).error(), Errc::resource_exhausted);
  blocker.release();
  while (!strand.execute([] {})) {
    std::this_thread::yield();
  }
  EXPECT_TRUE(strand.stop(StopMode::drain, in_a_long_time()));
  EXPECT_FALSE(ran);
  EXPECT_EQ(strand.counts().executed, 1u);
}

TEST(Strand, ItsOwnFullQueueIsReported) {
  auto pool = std::move(ThreadPool::make_single()).value();
  Strand strand(*pool, 2);
  Blocker blocker;
  ASSERT_TRUE(blocker.block(strand));
  EXPECT_TRUE(strand.execute([] {}));
  auto never = strand.submit_after(1h, [] { return 0; });  // takes no place before its time
  EXPECT_TRUE(strand.execute([] {}));
  EXPECT_EQ(strand.execute([] {}).error(), Errc::resource_exhausted);
  auto late = strand.submit_after(1ms, [] { return 1; });
  EXPECT_FALSE(never.ready());
  blocker.release();
  EXPECT_EQ(late.get_until(in_a_long_time()).value(), 1);
  EXPECT_TRUE(strand.stop(StopMode::drain, in_a_long_time()));
  EXPECT_EQ(strand.counts().executed, 4u);
}

TEST(Strand, ItsJobsAreDroppedAndToldWhenTheUnderlyingExecutorAbandonsIt) {
  auto pool = std::move(ThreadPool::make_single()).value();
  Blocker blocker;
  ASSERT_TRUE(blocker.block(*pool));
  Strand strand(*pool);
  auto first = strand.submit([] { return 1; });
  auto second = strand.submit([] { return 2; });
  EXPECT_EQ(pool->stop(StopMode::abandon, sys::now()).error(), Errc::timed_out);
  EXPECT_EQ(first.get_until(in_a_long_time()).error(), Errc::terminated);
  EXPECT_EQ(second.get_until(in_a_long_time()).error(), Errc::terminated);
  EXPECT_EQ(strand.execute([] {}).error(), Errc::closed);
  blocker.release();
  EXPECT_TRUE(strand.stop(StopMode::drain, in_a_long_time()));
}

TEST(Strand, GivesOthersTheirTurn) {
  auto pool = std::move(ThreadPool::make_single()).value();
  Strand strand(*pool);
  std::atomic<bool> over{false};
  struct Again {
    Strand* strand;
    std::atomic<bool>* over;
    void operator()() const {
      if (!over->load()) {
        (void)strand->execute(*this);
      }
    }
  };
  ASSERT_TRUE(strand.execute(Again{&strand, &over}));
  EXPECT_TRUE(pool->submit([] {}).get_until(in_a_long_time()));
  over.store(true);
  EXPECT_TRUE(strand.stop(StopMode::drain, in_a_long_time()));
}

// A grant that runs inside its own ask_for_grant() must not nest deeper with every job.
TEST(Strand, OfAnInlineExecutorRunsAnyNumberOfJobsThatBringOthers) {
  InlineExecutor below;
  Strand strand(below);
  int left = 200'000;
  struct Again {
    Strand* strand;
    int* left;
    void operator()() const {
      if (--*left > 0 && !strand->execute(*this)) {
        std::terminate();
      }
    }
  };
  ASSERT_TRUE(strand.execute(Again{&strand, &left}));
  EXPECT_EQ(left, 0);
}

TEST(Strand, OfAStrandKeepsItsOrder) {
  auto pool = std::move(ThreadPool::make_fixed(2)).value();
  Strand outer(*pool);
  Strand inner(static_cast<Executor&>(outer));
  int count = 0;
  for (int i = 0; i < 500; ++i) {
    ASSERT_TRUE(inner.execute([&] { ++count; }));
  }
  EXPECT_TRUE(inner.stop(StopMode::drain, in_a_long_time()));
  EXPECT_EQ(count, 500);
}

}  // namespace
}  // namespace weft::rt
