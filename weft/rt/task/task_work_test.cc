// SPDX-License-Identifier: MIT
#include "weft/rt/task/task_work.h"

#include <atomic>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "weft/rt/exec/inline_executor.h"
#include "weft/rt/exec/thread_pool.h"
#include "weft/rt/loop/test_signal.h"
#include "weft/rt/task/task_scope.h"
#include "weft/rt/task/task_time.h"
#include <gtest/gtest.h>

namespace weft::rt {
namespace {

using namespace std::chrono_literals;
using test::Signal;

class TaskWorkTest : public testing::Test {
 protected:
  void SetUp() override {
    pool_ = std::move(ThreadPool::make_fixed(2)).value();
    loop_ = std::move(Loop::make("work-test")).value();
    ASSERT_TRUE(loop_->start(nullptr));
  }
  std::unique_ptr<ThreadPool> pool_;  // outlives the loop, whose tasks wait for it
  std::unique_ptr<Loop> loop_;
};

TEST_F(TaskWorkTest, RunOnRunsTheFunctionElsewhereAndResumesHere) {
  struct Top {
    static Task<bool> go(Loop* loop, Executor* pool) {
      const std::thread::id here = std::this_thread::get_id();
      const Result<std::thread::id> there = co_await run_on(*pool, [] { return std::this_thread::get_id(); });
      EXPECT_NE(*there, here);
      EXPECT_TRUE(loop->on_loop_thread());
      int side = 0;
      const Result<void> done = co_await run_on(*pool, [&side] { side = 7; });
      EXPECT_TRUE(done);
      EXPECT_EQ(side, 7);
      co_return loop->on_loop_thread();
    }
  };
  EXPECT_EQ(spawn(*loop_, Top::go(loop_.get(), pool_.get())).get().value(), true);
}

TEST_F(TaskWorkTest, AFunctionThatOwnsSomethingIsDestroyedOnce) {
  struct Top {
    static Task<long> go(Executor* pool) {
      auto owned = std::make_shared<int>(7);
      {
        auto work = run_on(*pool, [owned] { return *owned; });
        const Result<int> seven = co_await work;
        EXPECT_EQ(seven.value_or(0), 7);
      }
      co_return owned.use_count();
    }
  };
  EXPECT_EQ(spawn(*loop_, Top::go(pool_.get())).get().value(), 1);
  auto owning = [text = std::string()] {};
  using Work = decltype(run_on(*pool_, std::move(owning)));
  static_assert(std::is_same_v<Work, RunOn<decltype(owning)>> != detail::kClosuresEndTwice,
                "GCC 12 would destroy the function of `co_await run_on(...)` twice");
}

TEST_F(TaskWorkTest, TheAwaitRethrowsTheExceptionOfTheWork) {
  struct Top {
    static Task<std::string> go(Executor* pool) {
      std::string text;
      try {
        (void)co_await run_on(*pool, []() -> int { throw std::runtime_error("in the pool"); });
      } catch (const std::runtime_error& error) {
        text = error.what();
      }
      co_return text;
    }
  };
  EXPECT_EQ(spawn(*loop_, Top::go(pool_.get())).get().value(), "in the pool");
}

TEST_F(TaskWorkTest, WorkIsDoneOnce) {
  struct Top {
    static Task<bool> go(Executor* pool) {
      int calls = 0;
      auto work = run_on(*pool, [&calls] { ++calls; });
      (void)co_await work;
      const Result<void> again = co_await work;
      EXPECT_EQ(calls, 1);
      co_return again.error() == Errc::invalid_state;
    }
  };
  EXPECT_TRUE(spawn(*loop_, Top::go(pool_.get())).get().value());
}

TEST_F(TaskWorkTest, AnExecutorThatRefusesSaysWhyAndAnInlineOneIsFine) {
  struct Top {
    static Task<Result<int>> refused(Executor* pool) {
      co_return co_await run_on(*pool, [] { return 1; });
    }
    static Task<int> at_once() {
      InlineExecutor executor;
      const Result<int> result = co_await run_on(executor, [] { return 3; });
      co_return result.value();
    }
  };
  ASSERT_TRUE(pool_->stop(StopMode::drain, kNever));
  EXPECT_EQ(spawn(*loop_, Top::refused(pool_.get())).get().error(), Errc::closed);
  EXPECT_EQ(spawn(*loop_, Top::at_once()).get().value(), 3);
}

TEST_F(TaskWorkTest, WorkThatRunsIsAskedToStopAndWaitedFor) {
  struct Top {
    static Task<bool> go(Executor* pool, Signal* began) {
      bool over = false;
      const Result<void> result = co_await run_on(*pool, [began, &over](const std::stop_token& token) {
        began->give();
        while (!token.stop_requested()) {
          std::this_thread::yield();
        }
        over = true;
      });
      EXPECT_TRUE(result) << "it ran, and its result is there";
      co_return over;
    }
  };
  Signal began;
  std::stop_source stop;
  Future<bool> future = spawn(*loop_, Top::go(pool_.get(), &began), stop.get_token());
  ASSERT_TRUE(began.take());
  stop.request_stop();
  EXPECT_EQ(future.get().value(), true);
}

TEST_F(TaskWorkTest, WorkThatHasNotBegunDoesNotRunOnceItIsCancelled) {
  auto single = std::move(ThreadPool::make_fixed(1)).value();
  Signal blocked;
  Signal go_on;
  ASSERT_TRUE(single->execute([&] {
    blocked.give();
    EXPECT_TRUE(go_on.take());
  }));
  ASSERT_TRUE(blocked.take());
  std::atomic<bool> ran{false};
  std::stop_source stop;
  Signal waits;
  struct Top {
    static Task<Result<void>> go(Executor* pool, std::atomic<bool>* flag, Signal* signal) {
      signal->give();
      co_return co_await run_on(*pool, [flag] { flag->store(true); });
    }
  };
  Future<void> future = spawn(*loop_, Top::go(single.get(), &ran, &waits), stop.get_token());
  ASSERT_TRUE(waits.take());
  stop.request_stop();
  (void)spawn(*loop_, []() -> Task<void> { (void)co_await yield(); }()).get();  // by now the loop cancelled the task
  EXPECT_FALSE(future.ready()) << "the function refers to the coroutine: it must not go on yet";
  go_on.give();
  EXPECT_EQ(future.get().error(), kCancelled);
  EXPECT_FALSE(ran.load());
}

TEST_F(TaskWorkTest, AnExecutorThatStopsEndsTheWaitsForItsWork) {
  auto single = std::make_unique<std::unique_ptr<ThreadPool>>(std::move(ThreadPool::make_fixed(1)).value());
  Signal blocked;
  Signal waits;
  std::atomic<bool> hold{true};
  ASSERT_TRUE((*single)->execute([&] {
    blocked.give();
    while (hold.load()) {
      std::this_thread::yield();
    }
  }));
  ASSERT_TRUE(blocked.take());
  struct Top {
    static Task<Result<int>> go(Executor* pool) {
      co_return co_await run_on(*pool, [] { return 1; });
    }
  };
  Future<int> future = spawn(*loop_, Top::go(single->get()));
  (void)spawn(*loop_, []() -> Task<void> { co_return; }()).get();  // by now the first task waits
  std::thread stopper([&] { EXPECT_TRUE((*single)->stop(StopMode::abandon, kNever)); });
  const Error dropped = future.get().error();
  EXPECT_EQ(dropped, Errc::terminated);
  EXPECT_STREQ(dropped.text(), "the job was dropped before it ran");
  hold.store(false);
  stopper.join();
}

TEST_F(TaskWorkTest, AFutureIsAwaitedOnTheTasksOwnLoop) {
  struct Top {
    static Task<bool> go(Loop* loop, Executor* pool) {
      bool here = true;
      for (int i = 0; i < 200; ++i) {
        Future<int> future = pool->submit([i] { return i; });
        const Result<int> value = co_await future;
        here = here && value == i && loop->on_loop_thread();
        const Result<int> again = co_await pool->submit([i] { return i + 1; });
        here = here && again == i + 1 && loop->on_loop_thread();
      }
      co_return here;
    }
  };
  EXPECT_EQ(spawn(*loop_, Top::go(loop_.get(), pool_.get())).get().value(), true);
}

TEST_F(TaskWorkTest, ACancelledTaskLeavesTheFutureAndAnotherMayAwaitIt) {
  Signal go_on;
  Future<int> slow = pool_->submit([&] {
    EXPECT_TRUE(go_on.take());
    return 5;
  });
  struct Top {
    static Task<Result<int>> go(Future<int>* future) { co_return co_await with_timeout(wait(future), 1ms); }
    static Task<Result<int>> wait(Future<int>* future) { co_return co_await *future; }
  };
  EXPECT_EQ(spawn(*loop_, Top::go(&slow)).get().error(), Errc::timed_out);
  EXPECT_FALSE(slow.ready());
  go_on.give();
  EXPECT_EQ(spawn(*loop_, Top::wait(&slow)).get().value(), 5);
}

TEST_F(TaskWorkTest, AResultAndACancellationThatMeetResumeOnce) {
  struct Top {
    static Task<int> go(Future<int>* future) {
      int rounds = 0;
      for (;;) {
        const Result<int> value = co_await *future;
        ++rounds;
        if (value || value.error() != kCancelled) {
          co_return rounds;
        }
        if (rounds == 2) {
          co_return -1;  // cancelled
        }
      }
    }
  };
  for (int i = 0; i < 300; ++i) {
    std::stop_source stop;
    Future<int> value = pool_->submit([] { return 1; });
    Future<int> rounds = spawn(*loop_, Top::go(&value), stop.get_token());
    stop.request_stop();
    EXPECT_NE(rounds.get().value(), 0);
  }
}

TEST_F(TaskWorkTest, ALoopThatStopsWaitsForWorkThatRunsForIt) {
  Signal began;
  Signal go_on;
  struct Top {
    static Task<int> go(Executor* pool, Signal* told, Signal* wait) {
      const Result<int> value = co_await run_on(*pool, [told, wait] {
        told->give();
        EXPECT_TRUE(wait->take());
        return 9;
      });
      co_return value.value();
    }
  };
  Future<int> future = spawn(*loop_, Top::go(pool_.get(), &began, &go_on));
  ASSERT_TRUE(began.take());
  std::thread stopper([&] { loop_->stop(); });
  go_on.give();
  stopper.join();
  EXPECT_EQ(future.get().value(), 9);
}

}  // namespace
}  // namespace weft::rt
