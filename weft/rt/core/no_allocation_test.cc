// SPDX-License-Identifier: MIT
// Counts every allocation of the test program, to prove that steady work makes none.
#include <atomic>
#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

#include "tests/support/count_allocations.h"
#include "tests/support/settles.h"
#include "weft/rt/bus/event_bus.h"
#include "weft/rt/core/test_runtime.h"
#include "weft/rt/exec/test_executors.h"
#include "weft/rt/task/async_event.h"
#include "weft/rt/task/task_group.h"
#include "weft/rt/task/task_work.h"
#include "weft/rt/task/test_tasks.h"
#include <gtest/gtest.h>

#ifdef WEFT_COUNTS_ALLOCATIONS

namespace weft::rt {
namespace {

using test::in_a_long_time;
using test::Signal;

constexpr int kCount = 200;

using weft::test::settles;

TEST(QuietAllocations, TheCounterCountsEachFormOfAllocation) {
  struct alignas(64) Line {
    char bytes[64];
  };
  const std::size_t before = allocations.load();
  const auto made = std::make_unique<std::vector<int>>(10);
  EXPECT_EQ(allocations.load() - before, 2u);
  const auto line = std::make_unique<Line>();
  EXPECT_EQ(allocations.load() - before, 3u);
  void* memory = std::aligned_alloc(64, 64);
  memory = std::realloc(memory, 128);
  std::free(memory);
  EXPECT_EQ(allocations.load() - before, 5u);
  void* const zeros = std::calloc(1, 64);
  std::free(zeros);
  EXPECT_EQ(allocations.load() - before, 6u);
}

TEST(QuietAllocations, AnAllocationInEachTenthRoundDoesNotSettle) {
  int round = 0;
  EXPECT_FALSE(settles([&] {
    if (++round % 10 == 0) {
      void* volatile memory = std::malloc(8);
      std::free(memory);
    }
  }));
}

TEST(QuietAllocations, SmallAndLargeJobsAreExecutedWithoutAny) {
  auto pool = std::move(ThreadPool::make_fixed(2)).value();
  std::atomic<int> left{0};
  const std::array<char, 200> large{};
  EXPECT_TRUE(settles([&] {
    left.store(2 * kCount);
    for (int i = 0; i < kCount; ++i) {
      EXPECT_TRUE(pool->execute([&left] { left.fetch_sub(1); }));
      EXPECT_TRUE(pool->execute([&left, large] { left.fetch_sub(1 + large[0]); }));
    }
    while (left.load() != 0) {
      std::this_thread::yield();
    }
  }));
}

TEST(QuietAllocations, JobsAreSubmittedAndAwaitedWithoutAny) {
  auto pool = std::move(ThreadPool::make_fixed(2)).value();
  std::vector<Future<int>> futures(kCount);
  EXPECT_TRUE(settles([&] {
    for (int i = 0; i < kCount; ++i) {
      futures[static_cast<std::size_t>(i)] = pool->submit([i] { return i; });
    }
    for (int i = 0; i < kCount; ++i) {
      EXPECT_EQ(futures[static_cast<std::size_t>(i)].get().value(), i);
    }
  }));
}

TEST(QuietAllocations, EventsArePublishedWithoutAny) {
  EventBus bus;
  int sum = 0;
  const auto subscription = bus.subscribe<int>([&sum](const int& event) { sum += event; });
  bus.publish(1);  // makes this thread's slot
  const std::size_t before = allocations.load();
  for (int i = 0; i < kCount; ++i) {
    bus.publish(i);
    bus.publish(1.5);
  }
  EXPECT_EQ(allocations.load(), before);
}

Task<int> give_number(int value) { co_return value; }
Task<Result<void>> nap(Duration wait) { co_return co_await sleep(wait); }
Task<void> wait_for(AsyncEvent& event) { (void)co_await event.wait(); }
Task<void> use_everything() {
  int sum = 0;
  for (int i = 0; i < kCount; ++i) {
    sum += co_await give_number(1);
  }
  EXPECT_EQ(sum, kCount);
  for (int i = 0; i < 10; ++i) {
    auto [a, b, c] = co_await when_all(give_number(1), give_number(2), nap(std::chrono::milliseconds(1)));
    auto first = co_await when_any(nap(std::chrono::hours(1)), nap(std::chrono::milliseconds(1)));
    const Result<void> late = co_await with_timeout(nap(std::chrono::hours(1)), std::chrono::milliseconds(1));
    EXPECT_EQ(a + b, 3);
    EXPECT_TRUE(c);
    EXPECT_EQ(first.index(), 1u);
    EXPECT_EQ(late.error(), Errc::timed_out);
  }
}

TEST(QuietAllocations, TasksAreCalledTimedGroupedSpawnedAndCancelledWithoutAny) {
  test::HandTurned here;
  AsyncEvent never;
  EXPECT_TRUE(settles([&] {
    here.start(use_everything());
    here.pass(std::chrono::milliseconds(100));
    EXPECT_EQ(here.scope().size(), 0u);
    TaskScope scope(here.runner());
    for (int i = 0; i < kCount; ++i) {
      EXPECT_TRUE(scope.spawn(wait_for(never)));
    }
    scope.cancel();
    here.turn();
    EXPECT_EQ(scope.size(), 0u);
  }));
}

TEST(QuietAllocations, TasksAreSpawnedOnALoopAndRunWorkOnAPoolWithoutAny) {
  auto pool = std::move(ThreadPool::make_fixed(1)).value();
  auto loop = std::move(Loop::make("quiet")).value();
  ASSERT_TRUE(loop->start(nullptr));
  struct Work {
    static Task<int> go(Executor* executor) {
      int sum = 0;
      for (int i = 0; i < kCount; ++i) {
        const Result<int> one = co_await run_on(*executor, [] { return 1; });
        const Result<int> two = co_await executor->submit([] { return 2; });
        sum += *one + *two;
      }
      co_return sum;
    }
  };
  EXPECT_TRUE(settles([&] {
    for (int i = 0; i < 20; ++i) {
      EXPECT_EQ(spawn(*loop, Work::go(pool.get())).get().value(), 3 * kCount);
    }
  }));
  loop->stop();
}

TEST(QuietAllocations, MessagesAndCallsBetweenCoresMakeNone) {
  const auto runtime = test::start_runtime(2);
  Signal done;
  int left = 0;
  auto call = [&]() -> test::Started {
    for (int i = 0; i < kCount; ++i) {
      EXPECT_TRUE(co_await runtime->call(1, [] { return 1; }, sys::now() + std::chrono::minutes(1)));
      EXPECT_TRUE(co_await runtime->post_wait(1, [] {}));
    }
    done.give();
  };
  EXPECT_TRUE(settles([&] {
    left = kCount;
    for (int i = 0; i < kCount; ++i) {
      EXPECT_TRUE(runtime->post(0, [&] {
        EXPECT_TRUE(runtime->post(1, [&] {
          if (--left == 0) {
            done.give();
          }
        }));
      }));
    }
    EXPECT_TRUE(done.take());
  }));
  // The coroutine's own frame is one allocation; 400 awaits add none.
  std::size_t made = 0;
  for (int round = 0; round < 20 && made != 1; ++round) {
    const std::size_t before = allocations.load();
    EXPECT_TRUE(runtime->post(0, [&] { call(); }));
    EXPECT_TRUE(done.take());
    made = allocations.load() - before;
  }
  EXPECT_EQ(made, 1u);
}

}  // namespace
}  // namespace weft::rt

#endif
