// SPDX-License-Identifier: MIT
#include "weft/rt/task/task_scope.h"

#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "weft/rt/loop/test_signal.h"
#include "weft/rt/task/async_event.h"
#include "weft/rt/task/test_tasks.h"
#include <gtest/gtest.h>

namespace weft::rt {
namespace {

using namespace std::chrono_literals;
using test::HandTurned;
using test::Living;
using test::Signal;

Task<void> wait_for(AsyncEvent& event, int& ended) {
  (void)co_await event.wait();
  ++ended;
}
Task<void> fail(const char* text) {
  throw std::runtime_error(text);
  co_return;
}

TEST(TaskScope, ATaskRunsUntilItFirstWaits) {
  HandTurned here;
  TaskScope scope(here.runner());
  AsyncEvent event;
  int ended = 0;
  event.set();
  ASSERT_TRUE(scope.spawn(wait_for(event, ended)));
  EXPECT_EQ(ended, 1);
  event.reset();
  ASSERT_TRUE(scope.spawn(wait_for(event, ended)));
  EXPECT_EQ(ended, 1);
  here.turn();
  EXPECT_EQ(scope.size(), 1u);
  event.set();
  here.turn();
  EXPECT_EQ(scope.size(), 0u);
}

TEST(TaskScope, EveryJoinEndsWhenNoTaskIsLeft) {
  HandTurned here;
  TaskScope scope(here.runner());
  AsyncEvent event;
  int ended = 0;
  int joined = 0;
  auto join = [](TaskScope& of, int& count) -> Task<void> {
    const Result<void> all = co_await of.join();
    EXPECT_TRUE(all);
    ++count;
  };
  ASSERT_TRUE(scope.spawn(wait_for(event, ended)));
  ASSERT_TRUE(scope.spawn(wait_for(event, ended)));
  here.start(join(scope, joined));
  here.start(join(scope, joined));
  here.turn();
  EXPECT_EQ(joined, 0);
  event.set();
  here.turn();
  EXPECT_EQ(ended, 2);
  EXPECT_EQ(joined, 2);
  here.start(join(scope, joined));  // no task is left: joins at once
  EXPECT_EQ(joined, 3);
  here.turn();
}

TEST(TaskScope, CancelEndsItsTasksAndNoneBeginsAfterwards) {
  HandTurned here;
  TaskScope scope(here.runner());
  AsyncEvent never;
  int ended = 0;
  ASSERT_TRUE(scope.spawn(wait_for(never, ended)));
  scope.cancel();
  EXPECT_EQ(scope.spawn(wait_for(never, ended)).error(), kCancelled);
  here.turn();
  EXPECT_EQ(ended, 1);
  EXPECT_EQ(scope.size(), 0u);
}

TEST(TaskScope, AJoinerThatIsCancelledCancelsTheTasksAndWaitsForThem) {
  HandTurned here;
  std::vector<std::string> notes;
  struct Top {
    static Task<void> work(std::vector<std::string>& order) {
      (void)co_await sleep(1h);
      (void)co_await yield();  // ends at once: the task is cancelled
      order.emplace_back("worker");
    }
    static Task<void> go(TaskRunner& runner, std::vector<std::string>& order) {
      TaskScope scope(runner);
      EXPECT_TRUE(scope.spawn(work(order)));
      EXPECT_TRUE(scope.spawn(work(order)));
      const Result<void> joined = co_await scope.join();
      EXPECT_EQ(joined.error(), kCancelled);
      EXPECT_EQ(scope.size(), 0u);
      order.emplace_back("owner");
    }
    static Task<void> late(TaskRunner& runner, std::vector<std::string>& order) {
      TaskScope scope(runner);
      EXPECT_TRUE(scope.spawn(work(order)));
      (void)co_await sleep(1h);
      const Result<void> joined = co_await scope.join();  // the task was cancelled before this join began
      EXPECT_EQ(joined.error(), kCancelled);
      EXPECT_EQ(scope.size(), 0u);
      order.emplace_back("late owner");
    }
  };
  here.start(Top::go(here.runner(), notes));
  here.start(Top::late(here.runner(), notes));
  here.turn();
  here.scope().cancel();
  here.turn();
  EXPECT_EQ(notes, (std::vector<std::string>{"worker", "worker", "worker", "owner", "late owner"}));
  EXPECT_EQ(here.runner().tasks(), 0u);
}

Task<void> spawn_next(TaskScope& scope, int levels, int& ran) {
  ++ran;
  if (levels > 1) {
    EXPECT_TRUE(scope.spawn(spawn_next(scope, levels - 1, ran)));
  }
  co_return;
}

TEST(TaskScope, TasksThatSpawnEachOtherDoNotGrowTheStack) {
  HandTurned here;
  TaskScope scope(here.runner());
  int ran = 0;
  ASSERT_TRUE(scope.spawn(spawn_next(scope, 50'000, ran)));
  here.turn();
  EXPECT_EQ(ran, 50'000);
  EXPECT_EQ(scope.size(), 0u);
}

Task<void> expect_not_cancelled(bool& cancelled) {
  EXPECT_FALSE(cancelled) << "a task begins after the cancel";
  co_return;
}
Task<void> spawn_and_cancel(TaskScope& outer, TaskScope& inner, int levels, bool& cancelled) {
  if (levels > 0) {
    EXPECT_TRUE(outer.spawn(spawn_and_cancel(outer, inner, levels - 1, cancelled)));
    co_return;
  }
  EXPECT_TRUE(inner.spawn(expect_not_cancelled(cancelled)));
  inner.cancel();
  cancelled = true;
}

TEST(TaskScope, ATaskThatWasToBeginLateDoesNotBeginAfterTheCancel) {
  for (int levels = 0; levels < 40; ++levels) {
    HandTurned here;
    TaskScope outer(here.runner());
    TaskScope inner(here.runner());
    bool cancelled = false;
    ASSERT_TRUE(outer.spawn(spawn_and_cancel(outer, inner, levels, cancelled)));
    here.turn();
    EXPECT_TRUE(cancelled);
    EXPECT_EQ(inner.size(), 0u);
  }
}

Task<void> scope_in_scope(TaskRunner& runner, int levels, int& begun, int& ended) {
  ++begun;
  TaskScope inner(runner);
  if (levels > 1) {
    EXPECT_TRUE(inner.spawn(scope_in_scope(runner, levels - 1, begun, ended)));
    const Result<void> joined = co_await inner.join();
    EXPECT_EQ(joined.error(), Errc::cancelled);
  } else {
    const Result<void> slept = co_await sleep(1h);
    EXPECT_EQ(slept.error(), Errc::cancelled);
  }
  ++ended;
}

TEST(TaskScope, ACancellationThroughManyScopesInsideEachOtherDoesNotGrowTheStack) {
  constexpr int kLevels = 30'000;
  HandTurned here;
  TaskScope scope(here.runner());
  int begun = 0;
  int ended = 0;
  ASSERT_TRUE(scope.spawn(scope_in_scope(here.runner(), kLevels, begun, ended)));
  here.turn();
  EXPECT_EQ(begun, kLevels);
  scope.cancel();
  here.turn();
  EXPECT_EQ(ended, kLevels);
  EXPECT_EQ(scope.size(), 0u);
}

TEST(TaskScope, DestructionCancelsTheTasksAndTheyFreeThemselves) {
  HandTurned here;
  int living = 0;
  auto hold = [](int& count) -> Task<void> {
    const Living held(count);
    (void)co_await sleep(1h);
  };
  {
    TaskScope scope(here.runner());
    ASSERT_TRUE(scope.spawn(hold(living)));
    ASSERT_TRUE(scope.spawn(hold(living)));
  }
  EXPECT_EQ(living, 2);
  here.turn();
  EXPECT_EQ(living, 0);
  EXPECT_EQ(here.runner().tasks(), 0u);
}

TEST(TaskScope, AnExceptionIsKeptAndEndsNoOtherTask) {
  HandTurned here;
  TaskScope scope(here.runner());
  AsyncEvent event;
  int ended = 0;
  ASSERT_TRUE(scope.spawn(wait_for(event, ended)));
  ASSERT_TRUE(scope.spawn(fail("first")));
  ASSERT_TRUE(scope.spawn(fail("second")));
  here.turn();
  EXPECT_EQ(scope.size(), 1u);
  event.set();
  const auto joined = here.run([](TaskScope& of) -> Task<Result<void>> { co_return co_await of.join(); }(scope));
  ASSERT_TRUE(joined.has_value());
  EXPECT_EQ(joined->error(), Errc::job_threw);
  EXPECT_EQ(ended, 1);
  try {
    std::rethrow_exception(scope.exception());
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "first");
  }
}

TEST(TaskScope, RefusesMoreTasksThanItsBoundAndThoseOfNothing) {
  HandTurned here;
  TaskScope scope(here.runner(), 2);
  AsyncEvent never;
  int ended = 0;
  EXPECT_TRUE(scope.spawn(wait_for(never, ended)));
  EXPECT_TRUE(scope.spawn(wait_for(never, ended)));
  EXPECT_EQ(scope.spawn(wait_for(never, ended)).error(), Errc::resource_exhausted);
  EXPECT_EQ(scope.spawn(Task<void>()).error(), Errc::invalid_argument);
  EXPECT_EQ(ended, 0);
  scope.cancel();
  here.turn();
}

TEST(TaskScope, ATaskMayEndTheScopeThatItIsIn) {
  HandTurned here;
  auto scope = std::make_unique<TaskScope>(here.runner());
  bool ended = false;
  auto end = [](std::unique_ptr<TaskScope>& own, bool& flag) -> Task<void> {
    own.reset();
    const Result<void> slept = co_await sleep(1h);
    EXPECT_EQ(slept.error(), kCancelled);
    flag = true;
  };
  ASSERT_TRUE(scope->spawn(end(scope, ended)));
  here.turn();
  EXPECT_TRUE(ended);
  EXPECT_EQ(here.runner().tasks(), 0u);
}

// --- spawn(): a loop with a thread ---

class SpawnTest : public testing::Test {
 protected:
  void SetUp() override {
    loop_ = std::move(Loop::make("task-test")).value();
    ASSERT_TRUE(loop_->start(nullptr));
  }
  std::unique_ptr<Loop> loop_;
};

TEST_F(SpawnTest, TheFutureGetsTheResultOfTheTask) {
  auto where = [](Loop* loop) -> Task<bool> { co_return loop->on_loop_thread() && Loop::current() == loop; };
  EXPECT_EQ(Loop::current(), nullptr);
  EXPECT_EQ(spawn(*loop_, where(loop_.get())).get().value(), true);
}

TEST_F(SpawnTest, AResultIsThatOfTheFuture) {
  struct Half {
    static Task<Result<int>> of(int value) {
      if (value % 2 != 0) {
        co_return Errc::invalid_argument;
      }
      co_return value / 2;
    }
  };
  EXPECT_EQ(spawn(*loop_, Half::of(8)).get().value(), 4);
  EXPECT_EQ(spawn(*loop_, Half::of(7)).get().error(), Errc::invalid_argument);
}

TEST_F(SpawnTest, TheExceptionOfTheTaskIsInTheFuture) {
  Future<void> future = spawn(*loop_, fail("thrown"));
  EXPECT_EQ(future.get().error(), Errc::job_threw);
  EXPECT_TRUE(future.exception());
}

TEST_F(SpawnTest, ATaskThatHasBegunIsRefused) {
  struct Twice {
    static Task<int> one() { co_return 1; }
    static Task<bool> go(Loop* loop) {
      Task<int> task = one();
      (void)co_await std::move(task);
      auto again = spawn(*loop, std::move(task));
      co_return again.get().error() == Errc::invalid_argument;
    }
  };
  EXPECT_TRUE(spawn(*loop_, Twice::go(loop_.get())).get().value());
}

TEST_F(SpawnTest, DroppingTheFutureDoesNotAffectTheTask) {
  Signal done;
  auto tell = [](Signal* signal) -> Task<void> {
    (void)co_await sleep(1us);
    signal->give();
    co_return;
  };
  static_cast<void>(spawn(*loop_, tell(&done)));
  EXPECT_TRUE(done.take());
}

TEST_F(SpawnTest, ATaskSpawnedOnTheLoopsOwnThreadBeginsAtOnce) {
  auto outer = [](Loop* loop) -> Task<bool> {
    bool began = false;
    auto inner = [](bool* flag) -> Task<void> {
      *flag = true;
      co_return;
    };
    const Future<void> future = spawn(*loop, inner(&began));
    co_return began;
  };
  EXPECT_EQ(spawn(*loop_, outer(loop_.get())).get().value(), true);
}

Task<Result<void>> sleep_long() { co_return co_await sleep(1h); }

TEST_F(SpawnTest, ItsTokenCancelsItFromAnyThreadAlsoBeforeItBegan) {
  std::stop_source stop;
  Future<void> future = spawn(*loop_, sleep_long(), stop.get_token());
  stop.request_stop();
  EXPECT_EQ(future.get().error(), kCancelled);
  Future<void> late = spawn(*loop_, sleep_long(), stop.get_token());
  EXPECT_EQ(late.get().error(), kCancelled);
}

TEST_F(SpawnTest, TokensThatAreSetWhileTheirTasksEndDoNoHarm) {
  for (int i = 0; i < 500; ++i) {
    std::stop_source stop;
    auto quick = []() -> Task<void> { (void)co_await yield(); };
    Future<void> future = spawn(*loop_, quick(), stop.get_token());
    stop.request_stop();
    EXPECT_TRUE(future.get());
  }
}

// Published servers leave coroutines suspended for ever, or destroy them half-way, when they stop.
TEST_F(SpawnTest, RegressionALoopThatStopsEndsEveryTaskAndNoAwaiterHangs) {
  std::vector<Future<void>> sleepers;
  for (int i = 0; i < 20; ++i) {
    sleepers.push_back(spawn(*loop_, sleep_long()));
  }
  loop_->stop();
  for (Future<void>& future : sleepers) {
    EXPECT_TRUE(future.ready());
    EXPECT_EQ(future.get().error(), kCancelled);
  }
}

TEST_F(SpawnTest, ATaskSpawnedAfterStopEndsWithAnError) {
  loop_->stop();
  int living = 0;
  auto hold = [](Living /*held*/) -> Task<void> { co_return; };
  Future<void> future = spawn(*loop_, hold(Living(living)));
  EXPECT_EQ(living, 0);
  ASSERT_TRUE(future.ready()) << "nobody would end it";
  EXPECT_EQ(future.get().error(), Errc::terminated);
}

TEST_F(SpawnTest, TasksFromManyThreadsAllRun) {
  constexpr int kEach = 300;
  auto add = [](int* sum) -> Task<int> {
    (void)co_await yield();
    co_return ++*sum;
  };
  int sum = 0;  // only the loop's thread uses it
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      std::vector<Future<int>> futures;
      for (int j = 0; j < kEach; ++j) {
        futures.push_back(spawn(*loop_, add(&sum)));
      }
      for (Future<int>& future : futures) {
        EXPECT_GT(future.get().value(), 0);
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  loop_->stop();
  EXPECT_EQ(sum, 3 * kEach);
}

}  // namespace
}  // namespace weft::rt
