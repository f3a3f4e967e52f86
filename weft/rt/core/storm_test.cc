// SPDX-License-Identifier: MIT
// Many operations of each part from several threads, for ThreadSanitizer: 20,000 every day, 10^7 in the nightly run.
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "weft/mem/pool.h"
#include "weft/rt/bus/event_bus.h"
#include "weft/rt/core/core_task.h"
#include "weft/rt/core/test_runtime.h"
#include "weft/rt/exec/test_executors.h"
#include "weft/rt/task/task_scope.h"
#include "weft/sync/wait_queue.h"
#include <gtest/gtest.h>

namespace weft::rt {
namespace {

constexpr std::uint64_t kThreads = 3;

// Calls operate(thread, i) `count` times in all; an operation that is refused for lack of room returns false, and is
// repeated.
template <typename Operate>
void storm(std::uint64_t count, Operate operate) {
  std::vector<std::thread> threads;
  for (std::uint64_t thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      for (std::uint64_t i = thread; i < count; i += kThreads) {
        while (!operate(thread, i)) {
          std::this_thread::yield();
        }
      }
    });
  }
  for (std::thread& each : threads) {
    each.join();
  }
}

void jobs(std::uint64_t count, Executor& executor) {
  std::atomic<std::uint64_t> ran{0};
  storm(count, [&](std::uint64_t, std::uint64_t) {
    return executor.execute([&ran] { ran.fetch_add(1, std::memory_order_relaxed); }).has_value();
  });
  EXPECT_TRUE(executor.stop(StopMode::drain, kNever));
  EXPECT_EQ(ran.load(), count);
  EXPECT_EQ(executor.counts().executed, count);
}
template <std::size_t kKind>
void jobs_of(std::uint64_t count) {
  const test::Made made = test::kKinds[kKind].make({});
  jobs(count, *made.executor);
}

void futures(std::uint64_t count) {
  const auto pool = std::move(ThreadPool::make_fixed(2)).value();
  storm(count, [&](std::uint64_t, std::uint64_t i) {
    auto future = pool->submit([i] { return i; });
    return i % 3 == 0 || future.get().value_or(~i) == i;  // some are dropped before they are ready
  });
  EXPECT_TRUE(pool->stop(StopMode::drain, kNever));
}

void posts_to_a_loop(std::uint64_t count) {
  const auto loop = std::move(Loop::make("storm")).value();
  ASSERT_TRUE(loop->start(nullptr));
  std::uint64_t ran = 0;  // of the loop's thread
  storm(count, [&](std::uint64_t, std::uint64_t) {
    Job job([&ran] { ++ran; });
    return loop->try_post(job).has_value();
  });
  loop->stop();
  EXPECT_EQ(ran, count);
}

void posts_to_cores(std::uint64_t count) {
  const auto runtime = test::start_runtime(2);
  std::uint64_t ran[2] = {0, 0};  // of the cores' threads
  storm(count, [&](std::uint64_t, std::uint64_t i) {
    const auto core = static_cast<unsigned>(i % 2);
    return runtime->post(core, [&ran, core] { ++ran[core]; }).has_value();
  });
  EXPECT_TRUE(runtime->stop(kNever));
  EXPECT_EQ(ran[0] + ran[1], count);
}

Task<> count_one(std::uint64_t* count) {
  ++*count;
  co_return;
}
Task<> count_ten(std::uint64_t* count) {
  for (int i = 0; i < 10; ++i) {
    co_await count_one(count);
  }
}
void spawns_on_a_core(std::uint64_t count) {
  const auto runtime = test::start_runtime(1);
  std::uint64_t ran = 0;  // of the core's thread
  storm(count / 10, [&](std::uint64_t, std::uint64_t) {
    return spawn_until(runtime->core(0), count_ten(&ran), kNever).has_value();
  });
  EXPECT_TRUE(runtime->stop(kNever));
  EXPECT_EQ(ran, count / 10 * 10);
}

// One thread of three subscribes and leaves.
void publishes(std::uint64_t count) {
  EventBus bus;
  std::atomic<std::uint64_t> took{0};
  const auto take = [&took](std::uint64_t) { took.fetch_add(1, std::memory_order_relaxed); };
  const Subscription always = bus.subscribe<std::uint64_t>(take).value();
  std::atomic<std::uint64_t> published{0};
  storm(count, [&](std::uint64_t thread, std::uint64_t i) {
    if (thread == 0) {
      Subscription now_and_then = bus.subscribe<std::uint64_t>(take).value();
      now_and_then.unsubscribe();
    } else {
      published.fetch_add(bus.publish(i), std::memory_order_relaxed);
    }
    return true;
  });
  EXPECT_EQ(took.load(), published.load());
}

void values_through_a_wait_queue(std::uint64_t count) {
  const auto queue = std::move(sync::WaitQueue<std::uint64_t>::make(kThreads, 64)).value();
  std::vector<sync::WaitQueue<std::uint64_t>::Producer> producers;
  for (std::uint64_t i = 0; i < kThreads; ++i) {
    producers.push_back(queue->producer().value());
  }
  std::uint64_t sum = 0;
  std::thread consumer([&] {
    for (std::uint64_t i = 0; i < count; ++i) {
      sum += queue->pop_until(kNever).value_or(0);
    }
  });
  storm(count,
        [&](std::uint64_t thread, std::uint64_t i) { return producers[thread].push_until(i, kNever).has_value(); });
  consumer.join();
  EXPECT_EQ(sum, count * (count - 1) / 2);
}

void buffers_that_another_thread_frees(std::uint64_t count) {
  const auto queue = std::move(sync::WaitQueue<void*>::make(kThreads, 64)).value();
  std::vector<sync::WaitQueue<void*>::Producer> producers;
  for (std::uint64_t i = 0; i < kThreads; ++i) {
    producers.push_back(queue->producer().value());
  }
  std::thread consumer([&] {
    for (std::uint64_t i = 0; i < count; ++i) {
      mem::pool_deallocate(queue->pop_until(kNever).value_or(nullptr));
    }
  });
  storm(count, [&](std::uint64_t thread, std::uint64_t i) {
    return producers[thread].push_until(mem::pool_allocate(i % 1000), kNever).has_value();
  });
  consumer.join();
}

struct Part {
  const char* name;
  void (*run)(std::uint64_t count);
};
constexpr Part kParts[] = {
    {"inline_executor", jobs_of<0>},
    {"single_thread", jobs_of<1>},
    {"fixed_pool", jobs_of<2>},
    {"dynamic_pool", jobs_of<3>},
    {"strand_of_a_pool", jobs_of<4>},
    {"strand_of_an_inline_executor", jobs_of<5>},
    {"futures", futures},
    {"loop", posts_to_a_loop},
    {"runtime", posts_to_cores},
    {"tasks", spawns_on_a_core},
    {"event_bus", publishes},
    {"wait_queue", values_through_a_wait_queue},
    {"memory_pool", buffers_that_another_thread_frees},
};
std::string name_of_part(const testing::TestParamInfo<Part>& info) { return info.param.name; }

class Storm : public testing::TestWithParam<Part> {};
class LongStorm : public testing::TestWithParam<Part> {};

TEST_P(Storm, LosesNothing) { GetParam().run(20'000); }
TEST_P(LongStorm, LosesNothing) { GetParam().run(10'000'000); }

INSTANTIATE_TEST_SUITE_P(EveryPart, Storm, testing::ValuesIn(kParts), name_of_part);
INSTANTIATE_TEST_SUITE_P(EveryPart, LongStorm, testing::ValuesIn(kParts), name_of_part);

}  // namespace
}  // namespace weft::rt
