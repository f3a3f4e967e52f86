// SPDX-License-Identifier: MIT
// The suite of every executor: one line per kind in test_executors.h.
#include "weft/rt/exec/executor.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "weft/rt/exec/test_executors.h"
#include <gtest/gtest.h>

namespace weft::rt {
namespace {

using namespace std::chrono_literals;
using test::in_a_long_time;
using test::Signal;

class ExecutorTest : public testing::TestWithParam<test::Kind> {
 protected:
  void make(ExceptionHandler handler = {}) {
    made_.executor.reset();  // before the executor below it
    made_ = GetParam().make(std::move(handler));
  }
  void SetUp() override { make(); }
  [[nodiscard]] Executor& executor() { return *made_.executor; }
  [[nodiscard]] bool has_threads() const { return GetParam().has_threads; }

  test::Made made_;
};

TEST_P(ExecutorTest, RunsEveryJobOnce) {
  constexpr int kJobs = 2000;
  std::vector<std::atomic<int>> runs(kJobs);
  for (auto& run : runs) {
    while (!executor().execute([&run] { run.fetch_add(1); })) {
      std::this_thread::yield();
    }
  }
  EXPECT_TRUE(executor().stop(StopMode::drain, in_a_long_time()));
  EXPECT_TRUE(std::all_of(runs.begin(), runs.end(), [](const auto& run) { return run.load() == 1; }));
  EXPECT_EQ(executor().counts().executed, static_cast<std::uint64_t>(kJobs));
}

TEST_P(ExecutorTest, RunsJobsOfSeveralThreadsOnce) {
  constexpr int kThreads = 4;
  constexpr int kJobs = 1000;
  std::atomic<int> runs{0};
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (int job = 0; job < kJobs; ++job) {
        while (!executor().execute([&] { runs.fetch_add(1); })) {
          std::this_thread::yield();
        }
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_TRUE(executor().stop(StopMode::drain, in_a_long_time()));
  EXPECT_EQ(runs.load(), kThreads * kJobs);
}

TEST_P(ExecutorTest, AFutureHasTheResultOfTheJob) {
  auto number = executor().submit([] { return 6 * 7; });
  auto text = executor().submit([] { return std::make_unique<std::string>("moved"); });
  auto nothing = executor().submit([] {});
  EXPECT_EQ(number.get().value(), 42);
  EXPECT_EQ(*text.get().value(), "moved");
  EXPECT_TRUE(nothing.get());
  EXPECT_EQ(number.get().error(), Errc::invalid_state);  // the first get() moved the value out
}

TEST_P(ExecutorTest, AFutureMayBeDroppedBeforeAndAfterTheJob) {
  Signal ran;
  {
    auto dropped = executor().submit([&] { ran.give(); });
  }
  ASSERT_TRUE(ran.take());
  auto done = executor().submit([] { return std::string(1000, 'x'); });
  EXPECT_TRUE(done.wait_until(in_a_long_time()));
}

TEST_P(ExecutorTest, ACoroutineAwaitsAFuture) {
  Signal done;
  int sum = 0;
  [](Executor& on, Signal& signal, int& into) -> test::Detached {
    for (int i = 1; i <= 3; ++i) {
      const auto value = co_await on.submit([i] { return i; });
      into += value ? *value : 1000;
    }
    signal.give();
  }(executor(), done, sum);
  ASSERT_TRUE(done.take());
  EXPECT_EQ(sum, 6);
}

TEST_P(ExecutorTest, TheResultOfASubmittedJobIsThatOfTheFuture) {
  Future<int> half = executor().submit([]() -> Result<int> { return 4; });
  EXPECT_EQ(half.get().value(), 4);
  Future<int> odd = executor().submit([]() -> Result<int> { return Error(Errc::invalid_argument, "7 is odd"); });
  EXPECT_EQ(odd.get().error().message(), "invalid argument: 7 is odd");
  Future<void> done = executor().submit([](const std::stop_token& /*stop*/) -> Result<void> { return {}; });
  EXPECT_TRUE(done.get());
  Future<std::unique_ptr<int>> owned =
      executor().submit([]() -> Result<std::unique_ptr<int>> { return std::make_unique<int>(5); });
  EXPECT_EQ(*owned.get().value(), 5);
  Future<int> threw = executor().submit([]() -> Result<int> { throw std::runtime_error("thrown"); });
  EXPECT_EQ(threw.get().error(), Errc::job_threw);
  EXPECT_NE(threw.exception(), nullptr);
}

TEST_P(ExecutorTest, AJobMayReturnAConstantValue) {
  Future<std::string> text = executor().submit([]() -> const std::string { return "constant"; });
  EXPECT_EQ(text.get().value(), "constant");
  Future<std::string> result = executor().submit([]() -> const Result<std::string> { return std::string("result"); });
  EXPECT_EQ(result.get().value(), "result");
}

TEST_P(ExecutorTest, TheExceptionOfASubmittedJobIsInTheFuture) {
  auto future = executor().submit([]() -> int { throw std::runtime_error("thrown"); });
  EXPECT_EQ(future.get().error(), Errc::job_threw);
  ASSERT_NE(future.exception(), nullptr);
  EXPECT_THROW(std::rethrow_exception(future.exception()), std::runtime_error);
  EXPECT_EQ(executor().submit([] { return 1; }).get().value(), 1);
}

TEST_P(ExecutorTest, TheExceptionOfAnExecutedJobGoesToTheHandlerAndIsCounted) {
  std::atomic<int> handled{0};
  make([&](std::exception_ptr thrown) {
    handled.fetch_add(1);
    std::rethrow_exception(thrown);  // a handler that throws ends nothing either
  });
  ASSERT_TRUE(executor().execute([] { throw 1; }));
  ASSERT_TRUE(executor().execute([] { throw std::runtime_error("thrown"); }));
  auto after = executor().submit([] { return 1; });
  EXPECT_EQ(after.get().value(), 1);
  EXPECT_TRUE(executor().stop(StopMode::drain, in_a_long_time()));
  EXPECT_EQ(handled.load(), 2);
  EXPECT_EQ(executor().counts().threw, 2u);
}

struct ThrowsWhenCopied {
  ThrowsWhenCopied() = default;
  ThrowsWhenCopied(const ThrowsWhenCopied& /*other*/) { throw std::runtime_error("thrown by a copy"); }
  ThrowsWhenCopied& operator=(const ThrowsWhenCopied&) = delete;
  ~ThrowsWhenCopied() = default;
  void operator()() const {}
};

TEST_P(ExecutorTest, TheExceptionOfAClosuresCopyPassesThroughAndNothingIsTaken) {
  const ThrowsWhenCopied job;
  EXPECT_THROW((void)executor().execute(job), std::runtime_error);
  EXPECT_THROW((void)executor().execute_after(1h, job), std::runtime_error);
  EXPECT_THROW((void)executor().submit(job), std::runtime_error);
  EXPECT_THROW((void)executor().submit_after(1h, std::stop_source().get_token(), job), std::runtime_error);
  EXPECT_TRUE(executor().stop(StopMode::drain, in_a_long_time()));
  const ExecutorCounts counts = executor().counts();
  EXPECT_EQ(counts.executed + counts.abandoned + counts.refused, 0u);
}

struct ThrowsAtItsSecondMove {
  ThrowsAtItsSecondMove() = default;
  // NOLINTNEXTLINE(performance-noexcept-move-constructor)
  ThrowsAtItsSecondMove(ThrowsAtItsSecondMove&& other) : moves(other.moves + 1) {
    if (moves == 2) {
      throw std::runtime_error("thrown by a move");
    }
  }
  ThrowsAtItsSecondMove& operator=(ThrowsAtItsSecondMove&&) = delete;
  ~ThrowsAtItsSecondMove() = default;
  int moves = 0;
};

TEST_P(ExecutorTest, TheExceptionOfAResultsMoveIsInTheFuture) {
  const Future<ThrowsAtItsSecondMove> moved =
      executor().submit([] { return Result<ThrowsAtItsSecondMove>(ThrowsAtItsSecondMove()); });
  EXPECT_TRUE(moved.wait_until(in_a_long_time()));
  EXPECT_NE(moved.exception(), nullptr);
  auto after = executor().submit([] { return 1; });
  EXPECT_EQ(after.get().value(), 1);
}

TEST_P(ExecutorTest, AJobMayExecuteJobs) {
  Signal done;
  std::atomic<int> left{500};
  struct Next {
    Executor* executor;
    std::atomic<int>* left;
    Signal* done;
    void operator()() const {
      if (left->fetch_sub(1) == 1) {
        done->give();
      } else if (!executor->execute(*this)) {
        std::terminate();
      }
    }
  };
  ASSERT_TRUE(executor().execute(Next{&executor(), &left, &done}));
  EXPECT_TRUE(done.take());
}

TEST_P(ExecutorTest, ADelayedJobRunsNotBeforeItsTime) {
  const Instant start = sys::now();
  auto future = executor().submit_after(20ms, [] { return sys::now(); });
  const auto ran = future.get_until(in_a_long_time());
  ASSERT_TRUE(ran);
  EXPECT_GE(*ran, start + 20ms);
}

TEST_P(ExecutorTest, DelayedJobsRunInTheOrderOfTheirTimes) {
  Signal done;
  std::atomic<int> order{0};
  std::array<std::atomic<int>, 3> places{};
  const auto at = [&](int index) {
    return [&, index] {
      places[static_cast<std::size_t>(index)] = ++order;
      done.give();
    };
  };
  // Each delay is scheduled after the one before has run, so that a busy machine cannot make a later one due first.
  auto first = executor().submit_after(1ms, at(0));
  EXPECT_TRUE(first.get_until(in_a_long_time()));
  ASSERT_TRUE(executor().execute_after(2ms, at(1)));
  ASSERT_TRUE(done.take() && done.take());
  ASSERT_TRUE(executor().execute_after(-1ms, at(2)));
  ASSERT_TRUE(done.take());
  EXPECT_EQ(places[0].load(), 1);
  EXPECT_EQ(places[1].load(), 2);
  EXPECT_EQ(places[2].load(), 3);
}

TEST_P(ExecutorTest, AJobWhoseTokenIsSetDoesNotBegin) {
  std::stop_source source;
  source.request_stop();
  std::atomic<int> runs{0};
  auto future = executor().submit(source.get_token(), [&] { runs.fetch_add(1); });
  EXPECT_EQ(future.get().error(), Errc::cancelled);
  EXPECT_EQ(future.exception(), nullptr);
  ASSERT_TRUE(executor().execute(source.get_token(), [&] { runs.fetch_add(1); }));
  auto later = executor().submit_after(1ms, source.get_token(), [&] { runs.fetch_add(1); });
  EXPECT_EQ(later.get().error(), Errc::cancelled);
  EXPECT_EQ(runs.load(), 0);
}

TEST_P(ExecutorTest, AJobThatRunsSeesItsToken) {
  std::stop_source source;
  auto future = executor().submit(source.get_token(), [&](const std::stop_token& token) {
    source.request_stop();
    return token.stop_requested();
  });
  EXPECT_TRUE(future.get().value());
}

TEST_P(ExecutorTest, AStoppedExecutorRefusesAndSaysSo) {
  EXPECT_TRUE(executor().stop(StopMode::drain, in_a_long_time()));
  EXPECT_TRUE(executor().stop(StopMode::abandon, in_a_long_time()));  // idempotent
  EXPECT_EQ(executor().execute([] {}).error(), Errc::closed);
  EXPECT_EQ(executor().submit([] { return 1; }).get().error(), Errc::closed);
  EXPECT_GE(executor().counts().refused, 2u);
  auto later = executor().submit_after(1ms, [] { return 1; });
  const Errc code = later.get().error().code();
  EXPECT_TRUE(code == Errc::closed || code == Errc::terminated) << static_cast<int>(code);
}

TEST_P(ExecutorTest, StopFromWithinAJobBeginsAndDoesNotWait) {
  auto future =
      executor().submit([&] { return executor().stop(StopMode::drain, kNever).error() == Errc::invalid_state; });
  EXPECT_TRUE(future.get().value());
  EXPECT_TRUE(executor().stop(StopMode::drain, in_a_long_time()));
  EXPECT_EQ(executor().execute([] {}).error(), Errc::closed);
}

TEST_P(ExecutorTest, MayBeDestroyedByItsOwnJob) {
  if (made_.below != nullptr) {
    return;  // a strand's turn is a job of the executor below
  }
  Signal proceed;
  Signal done;
  const auto destroy = [&] {
    (void)(has_threads() && proceed.take());  // the test's thread must have returned from execute()
    made_.executor.reset();
    done.give();
  };
  ASSERT_TRUE(executor().execute(destroy));
  proceed.give();
  EXPECT_TRUE(done.take());
}

TEST_P(ExecutorTest, StopDropsADelayedJobAndEndsItsFuture) {
  const auto owned = std::make_shared<int>(1);
  auto future = executor().submit_after(1h, [owned] { return *owned; });
  EXPECT_TRUE(executor().stop(StopMode::drain, in_a_long_time()));
  made_.executor.reset();
  made_.below.reset();
  EXPECT_EQ(future.get().error(), Errc::terminated);
  EXPECT_EQ(owned.use_count(), 1);
}

TEST_P(ExecutorTest, DestructionDropsWaitingJobsAndEndsTheirFutures) {
  if (!has_threads()) {
    return;  // no job ever waits
  }
  Signal begun;
  Signal proceed;
  std::vector<std::thread> release;
  std::vector<Future<int>> futures;
  for (int i = 0; i < 3; ++i) {
    (void)executor().execute([&] {
      begun.give();
      (void)proceed.take();
    });
  }
  ASSERT_TRUE(begun.take());
  std::atomic<int> ran{0};
  futures.reserve(100);
  for (int i = 0; i < 100; ++i) {
    futures.push_back(executor().submit([&, i] { return ran.fetch_add(1), i; }));
  }
  std::thread destroyer([&] { made_.executor.reset(); });
  proceed.give(3);
  destroyer.join();
  int told = 0;
  for (Future<int>& future : futures) {
    const auto result = future.get_until(in_a_long_time());
    told += result || result.error() == Errc::terminated ? 1 : 0;
  }
  EXPECT_EQ(told, 100);
}

TEST_P(ExecutorTest, StopAbandonAsksJobsToStop) {
  if (!has_threads()) {
    return;  // the caller of stop() would be inside the job
  }
  Signal begun;
  auto future = executor().submit([&](const std::stop_token& token) {
    begun.give();
    while (!token.stop_requested()) {
      std::this_thread::yield();
    }
    return 1;
  });
  ASSERT_TRUE(begun.take());
  EXPECT_TRUE(executor().stop(StopMode::abandon, in_a_long_time()));
  EXPECT_EQ(future.get().value(), 1);
}

TEST_P(ExecutorTest, StopReportsAJobThatRunsPastTheDeadline) {
  if (!has_threads()) {
    return;
  }
  Signal begun;
  Signal proceed;
  auto running = executor().submit([&] {
    begun.give();
    return proceed.take();
  });
  ASSERT_TRUE(begun.take());
  EXPECT_EQ(executor().stop(StopMode::drain, sys::now()).error(), Errc::timed_out);
  EXPECT_EQ(running.get_until(sys::now()).error(), Errc::timed_out);
  proceed.give();
  EXPECT_TRUE(executor().stop(StopMode::drain, in_a_long_time()));
  EXPECT_TRUE(running.get().value());
}

// Every job that a thread executed before or during stop() either ran or was refused.
TEST_P(ExecutorTest, NothingIsLostBetweenExecuteAndStop) {
  for (int round = 0; round < 20; ++round) {
    make();
    std::atomic<int> ran{0};
    std::atomic<int> taken{0};
    std::vector<std::thread> threads;
    threads.reserve(2);
    for (int i = 0; i < 2; ++i) {
      threads.emplace_back([&] {
        for (;;) {
          const auto result = executor().execute([&] { ran.fetch_add(1); });
          if (result) {
            taken.fetch_add(1);
          } else if (result.error() == Errc::closed) {
            return;
          }
        }
      });
    }
    while (ran.load() < 10) {
      std::this_thread::yield();
    }
    EXPECT_TRUE(executor().stop(StopMode::drain, in_a_long_time()));
    for (std::thread& thread : threads) {
      thread.join();
    }
    EXPECT_EQ(ran.load(), taken.load());
  }
}

INSTANTIATE_TEST_SUITE_P(EveryKind, ExecutorTest, testing::ValuesIn(test::kKinds),
                         [](const auto& each) { return std::string(each.param.name); });

TEST(Future, OfNoJobSaysSo) {
  Future<int> none;
  EXPECT_TRUE(none.ready());
  EXPECT_TRUE(none.wait_until(sys::now()));
  EXPECT_EQ(none.get().error(), Errc::invalid_state);
  EXPECT_EQ(none.exception(), nullptr);
  EXPECT_FALSE(none.try_continue([](void*) noexcept {}, nullptr));
  EXPECT_FALSE(none.try_withdraw());
}

struct alignas(256) Wide {
  bool operator()() const { return reinterpret_cast<std::uintptr_t>(this) % alignof(Wide) == 0; }
};

TEST(Future, KeepsTheAlignmentOfItsJob) {
  InlineExecutor executor;
  EXPECT_TRUE(executor.submit(Wide()).get().value());
}

struct ThrowsWhenMoved {
  bool* fails;
  explicit ThrowsWhenMoved(bool& flag) : fails(&flag) {}
  ThrowsWhenMoved(ThrowsWhenMoved&& other) : fails(other.fails) {  // NOLINT(performance-noexcept-move-constructor)
    if (*fails) {
      throw std::runtime_error("a move");
    }
  }
};

TEST(Future, PassesTheExceptionOfAMoveOnAndTheValueCountsAsTaken) {
  InlineExecutor executor;
  bool fails = false;
  auto future = executor.submit([&] { return ThrowsWhenMoved(fails); });
  fails = true;
  EXPECT_THROW((void)future.get(), std::runtime_error);
  EXPECT_EQ(future.get_until(kNever).error(), Errc::invalid_state);
}

TEST(Future, ACallerThatRetriesATimeOutEndsAlsoWhenItIsTheJobsOwn) {
  InlineExecutor executor;
  auto future = executor.submit([]() -> Result<int> { return Errc::timed_out; });
  EXPECT_EQ(future.get_until(Instant::min()).error(), Errc::timed_out);
  EXPECT_EQ(future.get_until(Instant::min()).error(), Errc::invalid_state);
  auto other = executor.submit([]() -> Result<int> { return Errc::would_block; });
  EXPECT_EQ(other.get().error(), Errc::would_block);
  EXPECT_EQ(other.get().error(), Errc::would_block);
}

}  // namespace
}  // namespace weft::rt
