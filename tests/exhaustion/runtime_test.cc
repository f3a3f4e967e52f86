// SPDX-License-Identifier: MIT
// Loops, runtimes, coroutines and timers without memory.
#include "weft/rt/core/runtime.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <utility>
#include <vector>

#include "tests/exhaustion/failing_memory.h"
#include "tests/exhaustion/walk.h"
#include "weft/rt/core/core_task.h"
#include "weft/rt/loop/interval_timers.h"
#include "weft/rt/loop/loop.h"
#include "weft/rt/task/async_queue.h"
#include "weft/rt/task/task_group.h"
#include "weft/rt/task/task_scope.h"
#include "weft/rt/task/task_time.h"
#include "weft/sys/clock.h"
#include <gtest/gtest.h>

namespace weft {
namespace {

using namespace std::chrono_literals;
using test::FailingMemory;
using test::made;
using test::OthersFailingMemory;
using test::walk;

rt::Task<int> one() { co_return 1; }

// A coroutine function throws without memory for its frame.
template <typename Make>
std::optional<std::invoke_result_t<Make>> or_none(Make make) {
  try {
    return make();
  } catch (const std::bad_alloc&) {
    return std::nullopt;
  }
}

TEST(RuntimeExhaustion, ALoopRunsEveryJobAndEveryTaskThatItTook) {
  walk([](FailingMemory& memory) {
    auto loop = rt::Loop::make("exhausted");
    if (!made(loop) || !made((*loop)->start(nullptr))) {
      return;
    }
    std::atomic<int> ran{0};
    int taken = 0;
    std::array<rt::Future<int>, 8> futures;
    std::array<std::uint64_t, 64> large{};
    for (rt::Future<int>& future : futures) {
      rt::Job small([&ran] { ran.fetch_add(1); });
      taken += made((*loop)->try_post(small)) ? 1 : 0;
      rt::Job big([&ran, large] { ran.fetch_add(large.empty() ? 0 : 1); });
      taken += made((*loop)->try_post(big)) ? 1 : 0;
      if (auto task = or_none(one); task) {
        future = rt::spawn(**loop, std::move(*task));
      } else {
        future = rt::Future<int>(Error(Errc::resource_exhausted));
      }
    }
    memory.end();
    for (rt::Future<int>& future : futures) {
      (void)made(future.get());  // none is left without an answer
    }
    (*loop)->stop();
    EXPECT_EQ(ran.load(), taken);
  });
}

TEST(RuntimeExhaustion, ARuntimeStartsWholeOrNotAtAll) {
  walk([](FailingMemory& memory) {
    auto runtime = rt::Runtime::start({.cores = 2});
    if (!made(runtime)) {
      return;
    }
    std::atomic<int> ran{0};
    int taken = 0;
    for (unsigned i = 0; i < 8; ++i) {
      taken += made((*runtime)->post(i % 2, [&ran] { ran.fetch_add(1); })) ? 1 : 0;
    }
    memory.end();
    EXPECT_TRUE((*runtime)->stop(kNever));
    EXPECT_EQ(ran.load(), taken);
  });
}

// The cores are made in their own threads.
TEST(RuntimeExhaustion, ARuntimeWhoseCoresFindNoMemoryIsRefused) {
  for (std::size_t spared = 0;; ++spared) {
    SCOPED_TRACE(spared);
    ASSERT_LT(spared, 1000u);
    OthersFailingMemory memory(spared);
    auto runtime = rt::Runtime::start({.cores = 2});
    memory.end();
    if (made(runtime)) {
      EXPECT_TRUE((*runtime)->stop(kNever));
    }
    if (HasFailure() || !memory.failed()) {
      break;
    }
  }
}

TEST(RuntimeExhaustion, IntervalTimersKeepThoseThatTheyTook) {
  walk([](FailingMemory& memory) {
    rt::IntervalTimers timers;
    static int calls;
    calls = 0;
    int taken = 0;
    for (int i = 0; i < 5; ++i) {
      try {
        taken += timers.add(Instant(), 1ns, [](int, void*) { ++calls; }, nullptr) != 0 ? 1 : 0;
      } catch (const std::bad_alloc&) {
        EXPECT_TRUE(memory.failed());
      }
    }
    timers.run(Instant(1ns));
    EXPECT_EQ(calls, taken);
  });
}

struct Turned {
  Instant now = Instant(1h);
  rt::TimerWheel wheel{now};
  rt::TaskRunner runner{wheel, now, nullptr};

  void turn() {
    do {
      now += 1ms;
      wheel.advance(now, 100);
      runner.turn();
    } while (runner.has_ready() || wheel.size() != 0);
  }
};

rt::Task<> work(rt::AsyncQueue<int>* queue, int* done) {
  std::vector<rt::Task<int>> tasks;
  tasks.push_back(one());
  tasks.push_back(one());
  const auto both = co_await rt::when_all(std::move(tasks));
  const auto slept = co_await rt::with_timeout(one(), 1ms);
  (void)co_await rt::sleep(1ms);
  const Result<void> pushed = co_await queue->push(both[0] + slept.value_or(0));
  const Result<int> popped = co_await queue->pop();
  *done += pushed && popped ? 1 : 0;
}

TEST(RuntimeExhaustion, TasksEndByAnExceptionAndTheirScopeIsAsBefore) {
  walk([](FailingMemory& memory) {
    std::optional<Turned> turned;
    std::optional<rt::TaskScope> scope;
    std::optional<rt::AsyncQueue<int>> queue;
    try {
      turned.emplace();
      scope.emplace(turned->runner);
      queue.emplace(2);
    } catch (const std::bad_alloc&) {
      return;
    }
    Turned& here = *turned;
    int done = 0;
    int taken = 0;
    for (int i = 0; i < 3; ++i) {
      if (auto task = or_none([&] { return work(&*queue, &done); }); task) {
        taken += made(scope->spawn(std::move(*task))) ? 1 : 0;
      }
    }
    here.turn();
    memory.end();
    EXPECT_EQ(scope->size(), 0u);
    EXPECT_TRUE(done == taken || memory.failed());
    if (scope->exception()) {
      EXPECT_THROW(std::rethrow_exception(scope->exception()), std::bad_alloc);
    }
    EXPECT_TRUE(scope->spawn(work(&*queue, &done)));
    here.turn();
    EXPECT_EQ(scope->size(), 0u);
  });
}

}  // namespace
}  // namespace weft
