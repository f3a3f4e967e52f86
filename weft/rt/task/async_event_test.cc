// SPDX-License-Identifier: MIT
#include "weft/rt/task/async_event.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "weft/rt/task/async_queue.h"
#include "weft/rt/task/task_group.h"
#include "weft/rt/task/test_tasks.h"
#include <gtest/gtest.h>

namespace weft::rt {
namespace {

using namespace std::chrono_literals;
using test::HandTurned;

Task<void> wait_and_note(AsyncEvent& event, std::vector<std::string>& notes, std::string name) {
  const Result<void> waited = co_await event.wait();
  notes.push_back(name + (waited ? "" : waited.error() == Errc::closed ? " closed" : " cancelled"));
}

TEST(AsyncEvent, AllWaitersResumeInTheOrderOfTheirComing) {
  HandTurned here;
  AsyncEvent event;
  std::vector<std::string> notes;
  for (const char* name : {"a", "b", "c"}) {
    here.start(wait_and_note(event, notes, name));
  }
  here.turn();
  EXPECT_TRUE(notes.empty());
  event.set();
  EXPECT_TRUE(notes.empty()) << "set() resumed a coroutine inside of itself";
  here.turn();
  EXPECT_EQ(notes, (std::vector<std::string>{"a", "b", "c"}));
}

TEST(AsyncEvent, ASetEventLetsNoCoroutineWaitAndAPulseDoesNotChangeIt) {
  HandTurned here;
  AsyncEvent event;
  std::vector<std::string> notes;
  event.set();
  here.start(wait_and_note(event, notes, "a"));
  EXPECT_EQ(notes.size(), 1u);
  event.reset();
  here.start(wait_and_note(event, notes, "b"));
  event.pulse();
  here.start(wait_and_note(event, notes, "c"));
  here.turn();
  EXPECT_EQ(notes, (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(event.awaited());
  event.set();
  here.turn();
  EXPECT_FALSE(event.awaited());
}

// A published session, when closed, leaves the awaiters of its writes suspended for ever.
TEST(AsyncEvent, RegressionAwaitersDoNotHangWhenTheirEventIsDestroyed) {
  HandTurned here;
  std::vector<std::string> notes;
  {
    AsyncEvent event;
    here.start(wait_and_note(event, notes, "a"));
    here.start(wait_and_note(event, notes, "b"));
    here.turn();
  }
  here.turn();
  EXPECT_EQ(notes, (std::vector<std::string>{"a closed", "b closed"}));
  EXPECT_EQ(here.runner().tasks(), 0u);
}

TEST(AsyncEvent, ACancelledWaiterIsTakenOutOfTheLine) {
  HandTurned here;
  AsyncEvent event;
  std::vector<std::string> notes;
  {
    TaskScope other(here.runner());
    ASSERT_TRUE(other.spawn(wait_and_note(event, notes, "a")));
    here.start(wait_and_note(event, notes, "b"));
  }
  event.set();
  here.turn();
  EXPECT_EQ(notes, (std::vector<std::string>{"a cancelled", "b"}));
}

Task<void> push_all(AsyncQueue<int>& queue, int first, int count, int& done) {
  for (int i = 0; i < count; ++i) {
    const Result<void> pushed = co_await queue.push(first + i);
    EXPECT_TRUE(pushed);
  }
  ++done;
}
Task<void> pop_all(AsyncQueue<int>& queue, std::vector<int>& values) {
  for (;;) {
    const Result<int> value = co_await queue.pop();
    if (!value) {
      EXPECT_EQ(value.error(), Errc::closed);
      co_return;
    }
    values.push_back(*value);
  }
}

// In a published queue the second coroutine that waits for room replaces the first, which never resumes.
TEST(AsyncQueue, RegressionOfTwoWaitersForRoomNeitherIsLost) {
  HandTurned here;
  AsyncQueue<int> queue(1);
  int done = 0;
  here.start(push_all(queue, 0, 1, done));
  here.start(push_all(queue, 100, 1, done));
  here.start(push_all(queue, 200, 1, done));
  here.turn();
  EXPECT_EQ(done, 1);
  std::vector<int> values;
  here.start(pop_all(queue, values));
  here.turn();
  EXPECT_EQ(done, 3);
  EXPECT_EQ(values, (std::vector{0, 100, 200}));
  queue.close();
  here.turn();
  EXPECT_EQ(here.runner().tasks(), 0u);
}

// In the published queue a waiter that finds the room taken again drops its value and reports it as sent.
TEST(AsyncQueue, RegressionRoomThatAnotherPushTakesFirstLosesNoValue) {
  HandTurned here;
  AsyncQueue<int> queue(1);
  int done = 0;
  here.start(push_all(queue, 0, 2, done));
  ASSERT_EQ(queue.try_pop().value(), 0);  // makes room: the coroutine is ready to resume ...
  ASSERT_TRUE(queue.try_push(77));        // ... but another value takes the room first
  here.turn();
  EXPECT_EQ(done, 0);
  EXPECT_EQ(queue.try_pop().value(), 77);
  here.turn();
  EXPECT_EQ(done, 1);
  EXPECT_EQ(queue.try_pop().value(), 1);
}

TEST(AsyncQueue, RegressionCloseEndsEveryWaitAndPopReturnsTheValuesLeft) {
  HandTurned here;
  AsyncQueue<int> queue(2);
  std::vector<Error> errors;
  auto push = [](AsyncQueue<int>& into, int value, std::vector<Error>& told) -> Task<void> {
    const Result<void> pushed = co_await into.push(value);
    told.push_back(pushed.error());
  };
  for (int i = 0; i < 4; ++i) {
    here.start(push(queue, i, errors));
  }
  queue.close();
  here.turn();
  ASSERT_EQ(errors.size(), 4u);
  EXPECT_EQ(errors[1], Errc::ok);
  EXPECT_EQ(errors[2], Errc::closed);
  EXPECT_EQ(errors[3], Errc::closed);
  EXPECT_EQ(queue.try_pop().value(), 0);
  EXPECT_EQ(queue.try_pop().value(), 1);
  EXPECT_EQ(queue.try_pop().error(), Errc::closed);
  EXPECT_EQ(queue.try_push(9).error(), Errc::closed);
}

TEST(AsyncQueue, ManyOfBothSidesLoseNothingAndKeepEachOnesOrder) {
  constexpr int kEach = 500;
  HandTurned here;
  AsyncQueue<int> queue(3);
  int done = 0;
  std::vector<int> values;
  for (int i = 0; i < 4; ++i) {
    here.start(pop_all(queue, values));
  }
  for (int i = 0; i < 4; ++i) {
    here.start(push_all(queue, i * kEach, kEach, done));
  }
  here.turn();
  EXPECT_EQ(done, 4);
  queue.close();
  here.turn();
  ASSERT_EQ(values.size(), 4u * kEach);
  std::vector<int> next{0, kEach, 2 * kEach, 3 * kEach};
  for (const int value : values) {
    EXPECT_EQ(value, next[static_cast<std::size_t>(value / kEach)]++);
  }
}

TEST(AsyncQueue, AValueResumesOneOfManyWaiters) {
  HandTurned here;
  AsyncQueue<int> queue(1);
  std::vector<int> values;
  constexpr std::size_t kWaiters = 2 * TaskRunner::kTurnMax;
  for (std::size_t i = 0; i < kWaiters; ++i) {
    here.start(pop_all(queue, values));
  }
  here.turn();
  ASSERT_TRUE(queue.try_push(1));
  here.runner().turn();
  EXPECT_FALSE(here.runner().has_ready()) << "other waiters resume for nothing";
  EXPECT_EQ(values, std::vector{1});
  queue.close();
  here.turn();
}

TEST(AsyncQueue, AWaiterThatIsCancelledWithItsValueThereLetsAnotherHaveIt) {
  HandTurned here;
  AsyncQueue<int> queue(1);
  std::vector<int> values;
  {
    TaskScope cancelled(here.runner());
    auto pop = [](AsyncQueue<int>& from) -> Task<void> {
      const Result<int> value = co_await from.pop();
      EXPECT_EQ(value.error(), Errc::cancelled);
    };
    ASSERT_TRUE(cancelled.spawn(pop(queue)));
    here.start(pop_all(queue, values));
    here.turn();
    ASSERT_TRUE(queue.try_push(1));  // resumes the first in the next turn
    cancelled.cancel();
    here.turn();
  }
  EXPECT_EQ(values, std::vector{1});

  int done = 0;
  queue.close();
  here.turn();
  AsyncQueue<int> full(1);
  ASSERT_TRUE(full.try_push(0));
  TaskScope cancelled(here.runner());
  auto push = [](AsyncQueue<int>& into) -> Task<void> {
    const Result<void> pushed = co_await into.push(1);
    EXPECT_EQ(pushed.error(), Errc::cancelled);
  };
  ASSERT_TRUE(cancelled.spawn(push(full)));
  here.start(push_all(full, 2, 1, done));
  here.turn();
  ASSERT_TRUE(full.try_pop());  // makes room for the first
  cancelled.cancel();
  here.turn();
  EXPECT_EQ(done, 1);
}

TEST(AsyncQueue, ACancelledPopLosesNoValue) {
  HandTurned here;
  AsyncQueue<int> queue(4);
  std::vector<int> values;
  struct Race {
    static Task<void> go(AsyncQueue<int>& a, AsyncQueue<int>& b, std::vector<int>& into) {
      auto first = co_await when_any(a.pop(), b.pop());
      into.push_back(first.index() == 0 ? std::get<0>(first).value() : -1);
    }
  };
  AsyncQueue<int> other(4);
  here.start(Race::go(queue, other, values));
  here.turn();
  ASSERT_TRUE(queue.try_push(1));
  ASSERT_TRUE(other.try_push(2));
  here.turn();
  EXPECT_EQ(values, (std::vector{1}));
  EXPECT_EQ(other.try_pop().value(), 2) << "the loser took a value that nobody got";
}

}  // namespace
}  // namespace weft::rt
