// SPDX-License-Identifier: MIT
#include "weft/rt/core/task_call.h"

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "weft/rt/core/core_task.h"
#include "weft/rt/core/test_runtime.h"
#include "weft/rt/task/async_event.h"
#include "weft/rt/task/task_group.h"
#include <gtest/gtest.h>

namespace weft::rt {
namespace {

using test::Blocked;
using test::in_a_minute;
using test::Live;
using test::on_core;
using test::Signal;
using test::start_runtime;

constexpr Duration kForever = std::chrono::hours(1000);

// The result of the task on that core.
template <typename T>
auto result_on(Runtime& runtime, unsigned core, Task<T> task) {
  return std::move(spawn(runtime.core(core), std::move(task))).value().get();
}

Task<void> bring_results_back(Runtime& runtime) {
  int here = 20;  // the called task may refer to this frame
  auto add = [&here, owned = std::make_unique<int>(1)]() -> Task<int> {
    EXPECT_EQ(Core::current()->index(), 1u);
    (void)co_await sleep(std::chrono::milliseconds(1));
    EXPECT_EQ(Core::current()->index(), 1u);
    co_return here + *owned;
  };
  auto adding = runtime.call(1, std::move(add));
  const Result<int> sum = co_await adding;
  EXPECT_EQ(Core::current()->index(), 0u);
  EXPECT_EQ(sum.value_or(0), 21);
  const Result<void> done = co_await runtime.call(1, [&here]() -> Task<void> {
    here = 3;
    co_return;
  });
  EXPECT_TRUE(done);
  EXPECT_EQ(here, 3);
  const Result<int> refused = co_await runtime.call(1, []() -> Task<Result<int>> { co_return Errc::unreachable; });
  EXPECT_EQ(refused.error(), Errc::unreachable) << "a Result comes as it is";
  const Result<unsigned> own = co_await runtime.call(0, []() -> Task<unsigned> { co_return Core::current()->index(); });
  EXPECT_EQ(own.value_or(9), 0u) << "a core may call itself";
  const Result<int> back = co_await runtime.call(
      1, [&runtime]() -> Task<Result<int>> { co_return co_await runtime.call(0, []() -> Task<int> { co_return 5; }); });
  EXPECT_EQ(back.value_or(0), 5);
}

TEST(TaskCall, TheTaskRunsThereAndItsResultComesBack) {
  const auto runtime = start_runtime(2);
  EXPECT_TRUE(result_on(*runtime, 0, bring_results_back(*runtime)));
}

Task<void> call_together(Runtime& runtime) {
  const auto index = [] { return Core::current()->index(); };
  const auto [near, far, later] = co_await when_all(runtime.call(0, index), runtime.call(1, index),
                                                    runtime.call(1, []() -> Task<int> { co_return 5; }));
  EXPECT_EQ(near.value_or(9), 0u);
  EXPECT_EQ(far.value_or(9), 1u);
  EXPECT_EQ(later.value_or(0), 5);
  auto owning = runtime.call(1, [text = std::string(100, 'x')] { return text.size(); });
  const auto [size, slept] = co_await when_all(owning, sleep(std::chrono::milliseconds(1)));
  EXPECT_EQ(size.value_or(0), 100u);
  EXPECT_TRUE(slept);
  std::vector<decltype(runtime.call(0, index))> calls;
  for (unsigned i = 0; i < 10; ++i) {
    calls.push_back(runtime.call(i % 2, index));
  }
  const auto results = co_await when_all(std::move(calls));
  for (unsigned i = 0; i < 10; ++i) {
    EXPECT_EQ(results[i].value_or(9), i % 2);
  }
}

TEST(TaskCall, AGroupTakesCalls) {
  const auto runtime = start_runtime(2);
  EXPECT_TRUE(result_on(*runtime, 0, call_together(*runtime)));
  ASSERT_TRUE(runtime->stop(in_a_minute()));
}

Task<void> move_calls(Runtime& runtime) {
  auto first = runtime.call(1, [live = Live()] { return 1; });
  auto moved = std::move(first);
  const Result<int> left = co_await first;  // NOLINT(bugprone-use-after-move)
  EXPECT_EQ(left.error(), Errc::invalid_state);
  const Result<int> one = co_await moved;
  EXPECT_EQ(one.value_or(0), 1);
  auto awaited = std::move(moved);
  const Result<int> again = co_await awaited;
  EXPECT_EQ(again.error(), Errc::invalid_state);
  auto dropped = runtime.call(1, [live = Live()]() -> Task<int> { co_return 1; });
  const auto to = std::move(dropped);  // never awaited
}

TEST(TaskCall, ACallMayBeMovedUntilItIsAwaited) {
  const auto runtime = start_runtime(2);
  EXPECT_TRUE(result_on(*runtime, 0, move_calls(*runtime)));
  ASSERT_TRUE(runtime->stop(in_a_minute()));
  EXPECT_EQ(Live::alive.load(), 0);
}

Task<void> fail_in_every_way(Runtime& runtime) {
  const auto threw = co_await runtime.call(1, []() -> Task<int> {
    (void)co_await yield();
    throw std::runtime_error("of the task");
  });
  EXPECT_EQ(threw.error(), Errc::job_threw);
  const auto refused = co_await runtime.call(1, []() -> Task<int> { throw std::runtime_error("at once"); });
  EXPECT_EQ(refused.error(), Errc::job_threw);
  const auto nothing = co_await runtime.call(1, [] { return Task<int>(); });
  EXPECT_EQ(nothing.error(), Errc::invalid_argument);
  const auto nowhere = co_await runtime.call(7, []() -> Task<int> { co_return 1; });
  EXPECT_EQ(nowhere.error(), Errc::invalid_argument);
  const auto late = co_await runtime.call(1, []() -> Task<int> { co_return 1; }, Instant());
  EXPECT_EQ(late.error(), Errc::timed_out);
}

TEST(TaskCall, FailuresAreErrors) {
  const auto runtime = start_runtime(2);
  EXPECT_TRUE(result_on(*runtime, 0, fail_in_every_way(*runtime)));
  ASSERT_TRUE(runtime->stop(in_a_minute()));
}

// Calls again, with twice the time, until the deadline passes after the task has begun.
Task<void> time_out(Runtime& runtime) {
  bool began = false;  // in this frame, to which the called task refers
  for (Duration time = std::chrono::milliseconds(1); !began; time *= 2) {
    bool ended = false;
    auto wait = [&began, &ended, counted = Live()]() -> Task<Result<void>> {
      began = true;
      const Result<void> slept = co_await sleep(kForever);
      EXPECT_EQ(slept.error(), Errc::cancelled);
      (void)co_await sleep(kForever);  // ends at once: the task is cancelled
      ended = true;
      co_return slept;
    };
    auto calling = runtime.call(1, std::move(wait), sys::now() + time);
    const Result<void> result = co_await calling;
    EXPECT_EQ(ended, began) << "it goes on when nothing refers to it any more";
    EXPECT_EQ(result.error(), Errc::timed_out);
  }
}

TEST(TaskCall, TheDeadlineCancelsTheTaskAndTheCallWaitsForItsEnd) {
  const auto runtime = start_runtime(2);
  EXPECT_TRUE(result_on(*runtime, 0, time_out(*runtime)));
  ASSERT_TRUE(runtime->stop(in_a_minute()));
  EXPECT_EQ(Live::alive.load(), 0);
}

Task<Result<void>> wait_over_there(Runtime& runtime, Signal& begun, bool& over) {
  bool ended = false;
  auto wait = [&ended, &begun, counted = Live()]() -> Task<void> {
    AsyncEvent never;
    begun.give();
    EXPECT_EQ((co_await never.wait()).error(), Errc::cancelled);
    EXPECT_TRUE(co_await is_cancelled());
    ended = true;
  };
  auto calling = runtime.call(1, std::move(wait), in_a_minute());
  const Result<void> result = co_await calling;
  over = ended;
  co_return result;
}

TEST(TaskCall, CancellingTheAwaiterCancelsTheCalledTask) {
  const auto runtime = start_runtime(2);
  Signal begun;
  bool over = false;
  std::stop_source stop;
  auto future = spawn(runtime->core(0), wait_over_there(*runtime, begun, over), stop.get_token()).value();
  ASSERT_TRUE(begun.take());
  stop.request_stop();
  EXPECT_EQ(future.get().error(), Errc::cancelled);
  EXPECT_TRUE(over);
  ASSERT_TRUE(runtime->stop(in_a_minute()));
  EXPECT_EQ(Live::alive.load(), 0);
}

TEST(TaskCall, ARuntimeThatStopsCancelsTheCallAndNoTaskHangs) {
  const auto runtime = start_runtime(2);
  Signal begun;
  bool over = false;
  auto future = spawn(runtime->core(0), wait_over_there(*runtime, begun, over)).value();
  ASSERT_TRUE(begun.take());
  ASSERT_TRUE(runtime->stop(in_a_minute()));
  EXPECT_EQ(future.get().error(), Errc::cancelled);
  EXPECT_TRUE(over);
  EXPECT_EQ(Live::alive.load(), 0);
}

template <typename T>
Task<Result<int>> call_who_gives_7_too_late(Runtime& runtime) {
  bool began = false;
  Result<int> result = 0;
  for (Duration time = std::chrono::milliseconds(1); !began; time *= 2) {
    const auto deadline = sys::now() + time;
    result = co_await runtime.call(
        1,
        [&began]() -> Task<T> {
          began = true;
          (void)co_await sleep(kForever);
          co_return 7;
        },
        deadline);
  }
  co_return result;
}

TEST(TaskCall, AResultWithAValueAfterTheDeadlineIsKeptAsByWithTimeout) {
  const auto runtime = start_runtime(2);
  EXPECT_EQ(result_on(*runtime, 0, call_who_gives_7_too_late<Result<int>>(*runtime)).value_or(0), 7);
  EXPECT_EQ(result_on(*runtime, 0, call_who_gives_7_too_late<int>(*runtime)).error(), Errc::timed_out);
}

Task<Result<void>> call_who_is_busy(Runtime& runtime, std::atomic<bool>& began) {
  auto begin = [&began, counted = Live()]() -> Task<void> {
    began = true;
    co_return;
  };
  auto calling = runtime.call(1, std::move(begin), sys::now() + std::chrono::milliseconds(1));
  co_return co_await calling;
}

TEST(TaskCall, ACancelledCallThatHasNotBegunNeverBegins) {
  const auto runtime = start_runtime(2);
  std::atomic<bool> began{false};
  {
    Blocked blocked(*runtime, 1);
    EXPECT_EQ(result_on(*runtime, 0, call_who_is_busy(*runtime, began)).error(), Errc::timed_out);
  }
  ASSERT_TRUE(runtime->stop(in_a_minute()));
  EXPECT_FALSE(began.load());
  EXPECT_EQ(Live::alive.load(), 0);
}

// Deadlines that pass at about the time when the task ends: the cancellation and the reply cross.
Task<void> call_often(Runtime& runtime, unsigned target, int calls, int& ended, int& kept) {
  for (int i = 0; i < calls; ++i) {
    const Duration nap = std::chrono::microseconds(100 * (i % 5));
    bool running = false;
    auto work = [&running, nap, counted = Live()]() -> Task<int> {
      running = true;
      (void)co_await sleep(nap);
      running = false;
      co_return 1;
    };
    auto calling = runtime.call(target, std::move(work), sys::now() + std::chrono::microseconds(100 * (i % 7)));
    const Result<int> result = co_await calling;
    EXPECT_FALSE(running);
    EXPECT_TRUE(result || result.error() == Errc::timed_out || result.error() == Errc::cancelled);
    kept += result ? 1 : 0;
  }
  ++ended;
}

TEST(TaskCall, CancellationsThatCrossRepliesInFullLanesLeakNothing) {
  constexpr int kCallers = 20;
  RuntimeOptions options;
  options.lane_capacity = 2;
  auto runtime = start_runtime(3, options);
  int ended = 0;
  int kept = 0;
  on_core(*runtime, 0, [&] {
    for (int i = 0; i < kCallers; ++i) {
      EXPECT_TRUE(spawn(*Core::current(), call_often(*runtime, static_cast<unsigned>(i % 3), 50, ended, kept)));
    }
  });
  on_core(*runtime, 0, [] {});
  ASSERT_TRUE(runtime->stop(in_a_minute()));  // while calls are under way: they are cancelled
  EXPECT_EQ(ended, kCallers);
  runtime.reset();
  EXPECT_EQ(Live::alive.load(), 0);
}

Task<void> call_all(Runtime& runtime, int& sum) {
  const auto one = [&runtime](unsigned core) -> Task<Result<int>> {
    co_return co_await runtime.call(core, []() -> Task<int> {
      (void)co_await yield();
      co_return 1;
    });
  };
  auto [a, b, c] = co_await when_all(one(0), one(1), one(2));
  sum = a.value_or(-10) + b.value_or(-10) + c.value_or(-10);
}

TEST(TaskCall, SeveralAreAwaitedTogether) {
  const auto runtime = start_runtime(3);
  int sum = 0;
  EXPECT_TRUE(result_on(*runtime, 0, call_all(*runtime, sum)));
  EXPECT_EQ(sum, 3);
}

// --- spawn() on a core ---

Task<unsigned> where() { co_return Core::current()->index(); }
Task<void> note(bool& began) {
  began = true;
  co_return;
}
Task<Result<void>> sleep_long(Signal& begun) {
  begun.give();
  co_return co_await sleep(kForever);
}

TEST(SpawnOnCore, FromAnyThreadTheTaskRunsOnThatCore) {
  const auto runtime = start_runtime(2);
  EXPECT_EQ(spawn(runtime->core(1), where()).value().get().value(), 1u);
  Result<Future<unsigned>> other = Errc::invalid_state;
  on_core(*runtime, 0, [&] {
    other = spawn(runtime->core(1), where());
    bool began = false;
    EXPECT_TRUE(spawn(runtime->core(0), note(began)));
    EXPECT_TRUE(began) << "at once in its own thread";
  });
  EXPECT_EQ(other.value().get().value(), 1u);
}

TEST(SpawnOnCore, ItsTokenCancelsIt) {
  const auto runtime = start_runtime(1);
  Signal begun;
  std::stop_source stop;
  auto future = spawn(runtime->core(0), sleep_long(begun), stop.get_token()).value();
  ASSERT_TRUE(begun.take());
  stop.request_stop();
  EXPECT_EQ(future.get().error(), Errc::cancelled);
}

Task<void> hold(Live /*by value*/) { co_return; }

TEST(SpawnOnCore, ARefusalIsAResultAndTheTaskIsGone) {
  RuntimeOptions options;
  options.lane_capacity = 1;
  const auto runtime = start_runtime(1, options);
  {
    Blocked blocked(*runtime, 0);
    while (runtime->post(0, [] {})) {
    }
    EXPECT_EQ(spawn(runtime->core(0), hold(Live())).error(), Errc::resource_exhausted);
    EXPECT_EQ(Live::alive.load(), 0);
  }
  EXPECT_EQ(spawn(runtime->core(0), Task<void>()).error(), Errc::invalid_argument);
  ASSERT_TRUE(runtime->stop(in_a_minute()));
  EXPECT_EQ(spawn(runtime->core(0), hold(Live())).error(), Errc::closed);
  EXPECT_EQ(Live::alive.load(), 0);
}

}  // namespace
}  // namespace weft::rt
