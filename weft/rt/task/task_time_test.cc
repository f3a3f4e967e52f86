// SPDX-License-Identifier: MIT
#include "weft/rt/task/task_time.h"

#include <chrono>
#include <string>
#include <vector>

#include "weft/rt/task/async_event.h"
#include "weft/rt/task/test_tasks.h"
#include <gtest/gtest.h>

namespace weft::rt {
namespace {

using namespace std::chrono_literals;
using test::HandTurned;
using test::Living;

Task<void> sleep_then_note(Duration wait, int number, std::vector<int>& order) {
  const Result<void> slept = co_await sleep(wait);
  EXPECT_TRUE(slept);
  order.push_back(number);
}

TEST(TaskTime, SleepersWakeInTheOrderOfTheirDeadlinesAndNotBefore) {
  HandTurned here;
  std::vector<int> order;
  here.start(sleep_then_note(30ms, 3, order));
  here.start(sleep_then_note(10ms, 1, order));
  here.start(sleep_then_note(20ms, 2, order));
  here.pass(10ms - 1ns);
  EXPECT_TRUE(order.empty());
  here.pass(1ms);
  EXPECT_EQ(order, (std::vector{1}));
  here.pass(20ms);
  EXPECT_EQ(order, (std::vector{1, 2, 3}));
  EXPECT_EQ(here.wheel().size(), 0u);
}

TEST(TaskTime, SleepUntilATimeThatIsOverIsTheNextTurn) {
  HandTurned here;
  bool woke = false;
  auto nap = [](HandTurned& place, bool& flag) -> Task<void> {
    const Result<void> slept = co_await sleep_until(place.now() - 1s);
    EXPECT_TRUE(slept);
    flag = true;
  };
  here.start(nap(here, woke));
  EXPECT_FALSE(woke);
  here.turn();
  EXPECT_TRUE(woke);
}

TEST(TaskTime, ANegativeSleepIsForEver) {
  HandTurned here;
  std::vector<int> order;
  auto nap = [](std::vector<int>& notes) -> Task<void> {
    const Result<void> slept = co_await sleep(-1ns);
    EXPECT_EQ(slept.error(), kCancelled);
    notes.push_back(1);
  };
  here.start(nap(order));
  here.pass(1s);
  EXPECT_TRUE(order.empty());
  here.scope().cancel();
  here.turn();
  EXPECT_EQ(order, (std::vector{1}));
}

TEST(TaskTime, YieldLetsTheOthersResumeFirst) {
  HandTurned here;
  std::vector<int> order;
  auto step = [](int number, std::vector<int>& notes) -> Task<void> {
    for (int i = 0; i < 2; ++i) {
      notes.push_back(number);
      const Result<void> yielded = co_await yield();
      EXPECT_TRUE(yielded);
    }
  };
  here.start(step(1, order));
  here.start(step(2, order));
  here.turn();
  EXPECT_EQ(order, (std::vector{1, 2, 1, 2}));
}

TEST(TaskTime, ACancelledSleeperEndsAndLeavesNoTimer) {
  HandTurned here;
  Error error;
  auto nap = [](Error& told) -> Task<void> {
    const Result<void> slept = co_await sleep(1h);
    told = slept.error();
  };
  here.start(nap(error));
  EXPECT_EQ(here.wheel().size(), 1u);
  here.scope().cancel();
  EXPECT_EQ(here.wheel().size(), 0u);
  here.turn();
  EXPECT_EQ(error, kCancelled);
}

// The timer fires and the scope is cancelled in one turn: only one of them resumes the sleeper.
TEST(TaskTime, ASleeperThatIsDueAndCancelledResumesOnce) {
  HandTurned here;
  int resumed = 0;
  auto nap = [](int& count) -> Task<void> {
    (void)co_await sleep(1ms);
    ++count;
  };
  here.start(nap(resumed));
  here.wheel().advance(here.now() + 1s, 100);  // the sleeper is ready, and has not resumed yet
  here.scope().cancel();
  here.scope().cancel();
  here.turn();
  EXPECT_EQ(resumed, 1);
  EXPECT_EQ(here.runner().tasks(), 0u);
}

Task<int> give_at_once(int value) { co_return value; }
Task<int> give_after(Duration wait, int value) {
  (void)co_await sleep(wait);
  co_return value;
}
Task<Result<int>> give_if_slept(Duration wait, int value) {
  const Result<void> slept = co_await sleep(wait);
  if (!slept) {
    co_return slept.error();
  }
  co_return value;
}

TEST(TaskTime, ATaskThatEndsInTimeGivesItsValueAndLeavesNoTimer) {
  HandTurned here;
  const auto value = here.run([]() -> Task<int> {
    const Result<int> at_once = co_await with_timeout(give_at_once(1), 1s);
    const Result<int> later = co_await with_timeout(give_after(10ms, 2), 1s);
    co_return at_once.value() * 10 + later.value();
  }());
  EXPECT_EQ(value, 12);
  EXPECT_EQ(here.wheel().size(), 0u);
}

TEST(TaskTime, ATaskThatTakesTooLongIsCancelledAndHasEndedWhenTheAwaitReturns) {
  HandTurned here;
  int living = 0;
  std::vector<std::string> order;
  struct Slow {
    static Task<Result<int>> go(int& count, std::vector<std::string>& notes) {
      const Living held(count);
      const Result<void> slept = co_await sleep(1h);
      notes.push_back(slept.error() == kCancelled ? "cancelled" : "slept");
      co_return slept.error();
    }
    static Task<void> top(int& count, std::vector<std::string>& notes) {
      const Result<int> result = co_await with_timeout(go(count, notes), 50ms);
      EXPECT_EQ(count, 0) << "its variables live still";
      notes.push_back(result.error() == Errc::timed_out ? "timed out" : "other");
    }
  };
  here.start(Slow::top(living, order));
  here.pass(49ms);
  EXPECT_TRUE(order.empty());
  EXPECT_EQ(living, 1);
  here.pass(2ms);
  EXPECT_EQ(order, (std::vector<std::string>{"cancelled", "timed out"}));
  EXPECT_EQ(here.wheel().size(), 0u);
}

TEST(TaskTime, AValueThatCameAllTheSameIsNotLost) {
  HandTurned here;
  struct Late {
    static Task<Result<int>> go() {
      (void)co_await sleep(1h);
      co_return 7;  // returns a value although it was cancelled
    }
  };
  const auto kept = here.run([]() -> Task<Result<int>> {
    const Result<int> result = co_await with_timeout(Late::go(), 1ms);
    co_return result;
  }());
  ASSERT_TRUE(kept.has_value());
  EXPECT_EQ(kept->value(), 7);
}

TEST(TaskTime, AnOrdinaryValueOfATaskThatWasCutShortIsNone) {
  HandTurned here;
  const auto result = here.run([]() -> Task<Result<int>> {
    const Result<int> cut = co_await with_timeout(give_after(1h, 5), 1ms);
    co_return cut;
  }());
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(result->error(), Errc::timed_out);
}

TEST(TaskTime, TheInnerOfTwoTimeoutsEndsItsOwnTaskOnly) {
  HandTurned here;
  struct Inner {
    static Task<Result<int>> go() {
      const Result<int> inner = co_await with_timeout(give_if_slept(1h, 1), 10ms);
      EXPECT_EQ(inner.error(), Errc::timed_out);
      co_return co_await give_if_slept(10ms, 2);
    }
  };
  const auto result = here.run([]() -> Task<Result<int>> { co_return co_await with_timeout(Inner::go(), 1min); }());
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(result->value(), 2);
}

TEST(TaskTime, TheOuterOfTwoTimeoutsEndsEverythingInside) {
  HandTurned here;
  struct Inner {
    static Task<Result<int>> go() {
      const Result<int> inner = co_await with_timeout(give_if_slept(1h, 1), 30min);
      EXPECT_EQ(inner.error(), kCancelled) << "its own time was not over";
      co_return inner;
    }
    static Task<void> top(bool& done) {
      const Result<int> outer = co_await with_timeout(go(), 10ms);
      EXPECT_EQ(outer.error(), Errc::timed_out);
      done = true;
    }
  };
  bool done = false;
  here.start(Inner::top(done));
  here.pass(11ms);
  EXPECT_TRUE(done);
  EXPECT_EQ(here.wheel().size(), 0u);
}

TEST(TaskTime, ATaskThatThrowsInTimeThrowsThroughTheTimeout) {
  HandTurned here;
  struct Bad {
    static Task<void> go() {
      (void)co_await sleep(1ms);
      throw std::runtime_error("bad");
    }
    static Task<bool> top() {
      bool caught = false;
      try {
        (void)co_await with_timeout(go(), 1s);
      } catch (const std::runtime_error&) {
        caught = true;
      }
      co_return caught;
    }
  };
  EXPECT_EQ(here.run(Bad::top()), true);
  EXPECT_EQ(here.wheel().size(), 0u);
}

TEST(TaskTime, ManyNestedTimeoutsAreCancelledWithoutAStackOfTheirOwn) {
  constexpr int kDepth = 20'000;
  HandTurned here;
  struct Nested {
    static Task<Result<int>> go(int depth) {
      if (depth == 0) {
        co_return co_await give_if_slept(1h, 0);
      }
      co_return co_await with_timeout(go(depth - 1), 1h);
    }
    static Task<void> top(Error& error) {
      const Result<int> result = co_await go(kDepth);
      error = result.error();
    }
  };
  Error error;
  here.start(Nested::top(error));
  EXPECT_EQ(here.wheel().size(), kDepth + 1u);
  here.scope().cancel();
  here.turn();
  EXPECT_EQ(error, kCancelled);
  EXPECT_EQ(here.wheel().size(), 0u);
}

}  // namespace
}  // namespace weft::rt
