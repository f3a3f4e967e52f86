// SPDX-License-Identifier: MIT
#include "weft/rt/task/task_group.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <stdexcept>
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

Task<int> give_value(int value) { co_return value; }
Task<std::string> give_after(Duration wait, std::string text) {
  const Result<void> slept = co_await sleep(wait);
  co_return slept ? text : "cancelled";
}
Task<void> nothing() { co_return; }
Task<int> fail_after(Duration wait, const char* text) {
  (void)co_await sleep(wait);
  throw std::runtime_error(text);
}
Task<void> note_how_it_ends(std::vector<std::string>& notes, int& living) {
  const Living held(living);
  const Result<void> slept = co_await sleep(1h);
  notes.push_back(slept.error() == kCancelled ? "cancelled" : "slept");
}

TEST(WhenAll, GivesEveryResultInTheOrderOfTheTasks) {
  HandTurned here;
  const auto sum = here.run([]() -> Task<std::string> {
    auto [slow, number, none, quick] =
        co_await when_all(give_after(20ms, "slow"), give_value(5), nothing(), give_after(10ms, "quick"));
    static_assert(std::is_same_v<decltype(none), std::monostate>);
    co_return slow + std::to_string(number) + quick;
  }());
  EXPECT_EQ(sum, "slow5quick");
}

TEST(WhenAll, RunsItsTasksBesideEachOther) {
  HandTurned here;
  bool done = false;
  auto both = [](bool& flag) -> Task<void> {
    (void)co_await when_all(give_after(20ms, ""), give_after(20ms, ""));
    flag = true;
  };
  here.start(both(done));
  here.pass(21ms);
  EXPECT_TRUE(done);
}

Task<std::string> await_mixed(AsyncEvent* event) {
  auto waiting = event->wait();  // cannot be moved: it is given by its name
  auto [slept, text, waited] = co_await when_all(sleep(20ms), give_after(10ms, "text"), waiting);
  static_assert(std::is_same_v<decltype(slept), Result<void>>);
  co_return text + (slept && waited ? "" : ", a failure");
}
Task<void> set_after(Duration wait, AsyncEvent* event) {
  const Result<void> slept = co_await sleep(wait);
  EXPECT_TRUE(slept);
  event->set();
}

TEST(WhenAll, TakesAwaitersAndTasks) {
  HandTurned here;
  AsyncEvent event;
  here.start(set_after(5ms, &event));
  EXPECT_EQ(here.run(await_mixed(&event)), "text");
}

TEST(WhenAll, TakesAVectorOfAwaiters) {
  HandTurned here;
  const auto all = [](std::vector<Sleeping> sleeps) -> Task<std::size_t> {
    const std::vector<Result<void>> results = co_await when_all(std::move(sleeps));
    co_return static_cast<std::size_t>(
        std::count_if(results.begin(), results.end(), [](const Result<void>& result) { return result.has_value(); }));
  };
  std::vector<Sleeping> sleeps;
  for (int i = 0; i < 5; ++i) {
    sleeps.push_back(sleep(std::chrono::milliseconds(i)));
  }
  EXPECT_EQ(here.run(all(std::move(sleeps))), 5u);
}

Task<std::size_t> first_of_awaiters(AsyncEvent* event) {
  auto waiting = event->wait();
  const auto first = co_await when_any(waiting, sleep(10ms), sleep(1h));
  co_return first.index();
}

TEST(WhenAny, TakesAwaitersAndGivesTheOthersUp) {
  HandTurned here;
  AsyncEvent event;
  EXPECT_EQ(here.run(first_of_awaiters(&event)), 1u);
  EXPECT_FALSE(event.awaited());
}

TEST(WhenAll, OfNothingIsThereAtOnce) {
  HandTurned here;
  EXPECT_EQ(here.run([]() -> Task<std::size_t> {
    (void)co_await when_all();
    const auto none = co_await when_all(std::vector<Task<int>>());
    co_return none.size();
  }()),
            0u);
}

TEST(WhenAll, OfAVectorGivesAVector) {
  HandTurned here;
  const auto values = here.run([]() -> Task<std::vector<int>> {
    std::vector<Task<int>> tasks;
    tasks.reserve(100);
    for (int i = 0; i < 100; ++i) {
      tasks.push_back(give_value(i));
    }
    co_return co_await when_all(std::move(tasks));
  }());
  ASSERT_TRUE(values.has_value());
  ASSERT_EQ(values->size(), 100u);
  EXPECT_EQ(values->back(), 99);
}

TEST(WhenAll, WhenOneThrowsTheOthersAreCancelledAndHaveEndedBeforeTheExceptionComes) {
  HandTurned here;
  int living = 0;
  std::vector<std::string> notes;
  struct Top {
    static Task<void> go(std::vector<std::string>& order, int& count) {
      try {
        (void)co_await when_all(note_how_it_ends(order, count), fail_after(1ms, "first"), fail_after(2ms, "second"));
      } catch (const std::runtime_error& error) {
        EXPECT_EQ(count, 0);
        order.emplace_back(error.what());
      }
    }
  };
  here.start(Top::go(notes, living));
  EXPECT_EQ(living, 1);
  here.pass(10ms);
  EXPECT_EQ(notes, (std::vector<std::string>{"cancelled", "first"}));
  EXPECT_EQ(here.wheel().size(), 0u);
}

TEST(WhenAll, IsCancelledWithItsAwaiter) {
  HandTurned here;
  std::string text;
  auto top = [](std::string& into) -> Task<void> {
    auto [a, b] = co_await when_all(give_after(1h, "a"), give_after(2h, "b"));
    into = a + " " + b;
  };
  here.start(top(text));
  here.turn();
  here.scope().cancel();
  here.turn();
  EXPECT_EQ(text, "cancelled cancelled");
}

TEST(WhenAll, NestsDeeplyEnough) {
  HandTurned here;
  struct Tree {
    static Task<int> count(int depth) {
      if (depth == 0) {
        co_return 1;
      }
      auto [left, right] = co_await when_all(count(depth - 1), count(depth - 1));
      co_return left + right;
    }
  };
  EXPECT_EQ(here.run(Tree::count(12)), 4096);
}

Task<int> nest(int levels) {
  if (levels == 0) {
    co_return 0;
  }
  std::tuple<int, int> both = co_await when_all(nest(levels - 1), nest(0));
  co_return std::get<0>(both) + 1;
}

TEST(WhenAll, ManyGroupsInsideEachOtherDoNotGrowTheStack) {
  HandTurned here;
  EXPECT_EQ(here.run(nest(30'000)), 30'000);
}

Task<void> note(std::vector<int>& begun, int which) {
  begun.push_back(which);
  co_return;
}
Task<void> note_below(std::vector<int>& begun, int levels) {
  if (levels > 0) {
    co_await when_all(note_below(begun, levels - 1));
    co_return;
  }
  co_await when_all(note(begun, 1), note(begun, 2), note(begun, 3));
}

TEST(WhenAll, TasksThatBeginLateForTheDepthOfTheirGroupBeginInTheirOrder) {
  for (int levels = 0; levels < 40; ++levels) {
    HandTurned here;
    std::vector<int> begun;
    EXPECT_TRUE(here.run(note_below(begun, levels)));
    EXPECT_EQ(begun, (std::vector{1, 2, 3})) << levels;
  }
}

Task<int> first_below(std::vector<int>& begun, int levels) {
  if (levels > 0) {
    std::tuple<int> one = co_await when_all(first_below(begun, levels - 1));
    co_return std::get<0>(one);
  }
  auto number = [](std::vector<int>& into, int which) -> Task<int> {
    into.push_back(which);
    co_return which;
  };
  const std::variant<int, int> any = co_await when_any(number(begun, 1), number(begun, 2));
  co_return any.index() == 0 ? std::get<0>(any) : -1;
}

TEST(WhenAny, ATaskThatWasToBeginLateDoesNotBeginAfterTheFirstHasEnded) {
  for (int levels = 0; levels < 40; ++levels) {
    HandTurned here;
    std::vector<int> begun;
    EXPECT_EQ(here.run(first_below(begun, levels)), 1);
    EXPECT_EQ(begun, std::vector{1}) << levels;
  }
}

TEST(WhenAny, GivesTheFirstAndHasCancelledAndAwaitedTheOthers) {
  HandTurned here;
  int living = 0;
  std::vector<std::string> notes;
  struct Top {
    static Task<void> go(std::vector<std::string>& order, int& count) {
      auto first =
          co_await when_any(note_how_it_ends(order, count), give_after(10ms, "quick"), note_how_it_ends(order, count));
      EXPECT_EQ(count, 0) << "a loser runs still";
      EXPECT_EQ(first.index(), 1u);
      order.push_back(std::get<1>(first));
    }
  };
  here.start(Top::go(notes, living));
  here.pass(11ms);
  EXPECT_EQ(notes, (std::vector<std::string>{"cancelled", "cancelled", "quick"}));
  EXPECT_EQ(here.wheel().size(), 0u);
}

TEST(WhenAny, DoesNotBeginTheTasksAfterOneThatEndsAtOnce) {
  HandTurned here;
  int began = 0;
  struct Top {
    static Task<int> count(int& counter) {
      ++counter;
      co_return counter;
    }
    static Task<std::size_t> go(int& counter) {
      auto first = co_await when_any(give_value(1), count(counter), count(counter));
      co_return first.index();
    }
  };
  EXPECT_EQ(here.run(Top::go(began)), 0u);
  EXPECT_EQ(began, 0);
}

TEST(WhenAny, RethrowsTheExceptionOfTheFirst) {
  HandTurned here;
  const auto text = here.run([]() -> Task<std::string> {
    std::string caught;
    try {
      (void)co_await when_any(fail_after(1ms, "thrown"), give_after(1h, "never"));
    } catch (const std::runtime_error& error) {
      caught = error.what();
    }
    co_return caught;
  }());
  EXPECT_EQ(text, "thrown");
}

TEST(WhenAny, OfAVectorSaysWhichAndOfNoneThatItCannot) {
  HandTurned here;
  const auto index = here.run([]() -> Task<std::size_t> {
    const auto none = co_await when_any(std::vector<Task<int>>());
    EXPECT_EQ(none.error(), Errc::invalid_argument);
    std::vector<Task<std::string>> tasks;
    tasks.reserve(10);
    for (int i = 10; i > 0; --i) {
      tasks.push_back(give_after(std::chrono::milliseconds(i), std::to_string(i)));
    }
    const auto first = co_await when_any(std::move(tasks));
    EXPECT_EQ(first->value, "1");
    co_return first->index;
  }());
  EXPECT_EQ(index, 9u);
}

// Both are ready in one turn: the second one resumes too, once, and finds that it has lost.
TEST(WhenAny, OfTwoThatAreReadyTogetherOneWinsAndNoneIsResumedTwice) {
  HandTurned here;
  AsyncEvent event;
  int went_on = 0;
  int cancelled = 0;
  struct Top {
    static Task<void> wait(AsyncEvent& on, int& count, int& lost) {
      const Result<void> waited = co_await on.wait();
      ++count;
      lost += waited.error() == kCancelled ? 1 : 0;
    }
    static Task<void> go(AsyncEvent& on, int& count, int& lost) {
      auto first = co_await when_any(wait(on, count, lost), wait(on, count, lost));
      EXPECT_EQ(first.index(), 0u);
    }
  };
  here.start(Top::go(event, went_on, cancelled));
  event.set();
  here.turn();
  EXPECT_EQ(went_on, 2);
  EXPECT_EQ(cancelled, 1);
  EXPECT_EQ(here.runner().tasks(), 0u);
}

}  // namespace
}  // namespace weft::rt
