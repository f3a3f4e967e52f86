// SPDX-License-Identifier: MIT
#include "weft/rt/task/task.h"

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "weft/rt/task/async_event.h"
#include "weft/rt/task/async_queue.h"
#include "weft/rt/task/task_group.h"
#include "weft/rt/task/task_time.h"
#include "weft/rt/task/test_tasks.h"
#include <gtest/gtest.h>

namespace weft::rt {
namespace {

using test::HandTurned;
using test::Living;

Task<int> give(int value) { co_return value; }
Task<std::unique_ptr<int>> give_owned(int value) { co_return std::make_unique<int>(value); }
Task<Result<int>> give_result(int value) {
  if (value < 0) {
    co_return Errc::invalid_argument;
  }
  co_return value;
}

TEST(Task, GivesItsValueToItsAwaiter) {
  HandTurned here;
  const auto sum = here.run([]() -> Task<int> {
    const int a = co_await give(40);
    const std::unique_ptr<int> b = co_await give_owned(2);
    co_return a + *b;
  }());
  EXPECT_EQ(sum, 42);
}

Task<Result<void>> check(bool good) { co_return good ? Result<void>() : Result<void>(Errc::timed_out); }
Task<Result<int&>> refer_to(int& value) { co_return value; }

Task<Result<int>> try_all(int first, int second, bool good, int& last) {
  WEFT_CO_TRY(const int a, co_await give_result(first));
  WEFT_CO_TRY(auto b, co_await give_result(second));
  WEFT_CO_TRY(co_await check(good));
  WEFT_CO_TRY(int& c, co_await refer_to(last));
  b += a + std::exchange(c, 0);
  co_return b;
}

TEST(Task, CoTryDeclaresTheValueOrEndsTheCoroutineByTheError) {
  HandTurned here;
  int last = 3;
  EXPECT_EQ(here.run(try_all(1, 2, false, last))->error(), Errc::timed_out);
  EXPECT_EQ(here.run(try_all(-1, 2, true, last))->error(), Errc::invalid_argument);
  EXPECT_EQ(here.run(try_all(1, -2, true, last))->error(), Errc::invalid_argument);
  EXPECT_EQ(last, 3);
  EXPECT_EQ(here.run(try_all(1, 2, true, last))->value(), 6);
  EXPECT_EQ(last, 0);
}

Task<Result<std::pair<int, std::string>>> give_pair(bool good) {
  if (!good) {
    co_return Error(Errc::invalid_argument);
  }
  co_return std::pair<int, std::string>(1, "one");
}
Task<Result<std::string>> try_pairs(bool good) {
  WEFT_CO_TRY(auto [number, text], co_await give_pair(good));
  WEFT_CO_TRY(const std::pair<int, std::string> again, co_await give_pair(good));
  co_return text + std::to_string(number) + again.second;
}

TEST(Task, CoTryTakesADeclarationWithCommas) {
  HandTurned here;
  EXPECT_EQ(here.run(try_pairs(true))->value(), "one1one");
  EXPECT_EQ(here.run(try_pairs(false))->error(), Errc::invalid_argument);
}

TEST(Task, CoTryTakesResultsThatOnlyMove) {
  HandTurned here;
  struct Source {
    static Task<Result<std::unique_ptr<int>>> give(int value) { co_return std::make_unique<int>(value); }
    static Task<Result<std::unique_ptr<int>>> pass(int value) {
      WEFT_CO_TRY(auto owned, co_await give(value));
      co_return owned;
    }
  };
  EXPECT_EQ(**here.run(Source::pass(5))->operator->(), 5);
}

TEST(Task, GivesAResultAsItIs) {
  HandTurned here;
  const auto bad = here.run(give_result(-1));
  ASSERT_TRUE(bad.has_value());
  EXPECT_EQ(bad->error(), Errc::invalid_argument);
  const auto good = here.run(give_result(3));
  ASSERT_TRUE(good.has_value());
  EXPECT_EQ(good->value(), 3);
}

TEST(Task, BeginsWhenItIsAwaitedAndNotBefore) {
  HandTurned here;
  bool began = false;
  auto begin = [](bool& flag) -> Task<void> {
    flag = true;
    co_return;
  };
  {
    const Task<void> dropped = begin(began);
    EXPECT_FALSE(began);
  }
  EXPECT_FALSE(began);
  here.run(begin(began));
  EXPECT_TRUE(began);
}

TEST(Task, ADroppedTaskFreesItsParameters) {
  int living = 0;
  auto hold = [](Living /*held*/) -> Task<void> { co_return; };
  {
    const Task<void> dropped = hold(Living(living));
    EXPECT_EQ(living, 1);
  }
  EXPECT_EQ(living, 0);
}

TEST(Task, TheAwaitRethrowsTheExceptionOfTheTask) {
  HandTurned here;
  int living = 0;
  auto fail = [](Living /*held*/) -> Task<int> {
    throw std::runtime_error("as asked");
    co_return 1;
  };
  auto call = [](auto& what, int& count) -> Task<std::string> {
    std::string text;
    try {
      (void)co_await what(Living(count));
    } catch (const std::runtime_error& error) {
      text = error.what();
    }
    co_return text;
  };
  EXPECT_EQ(here.run(call(fail, living)), "as asked");
  EXPECT_EQ(living, 0);
}

TEST(Task, AnExceptionPassesThroughTasksThatDoNotCatchIt) {
  HandTurned here;
  struct Deep {
    static Task<int> go(int depth) {
      if (depth == 0) {
        throw std::out_of_range("deep");
      }
      co_return co_await go(depth - 1) + 1;
    }
    static Task<bool> caught() {
      bool caught = false;
      try {
        (void)co_await go(50);
      } catch (const std::out_of_range&) {
        caught = true;
      }
      co_return caught;
    }
  };
  EXPECT_EQ(here.run(Deep::caught()), true);
}

TEST(Task, AMovedFromTaskThrowsWhenItIsAwaited) {
  HandTurned here;
  const auto caught = here.run([]() -> Task<bool> {
    Task<int> task = give(1);
    const Task<int> other = std::move(task);
    bool threw = false;
    try {
      (void)co_await std::move(task);  // NOLINT(bugprone-use-after-move): the test awaits a moved-from task
    } catch (const std::logic_error&) {
      threw = true;
    }
    co_return threw;
  }());
  EXPECT_EQ(caught, true);
}

template <typename Await>
Task<std::string> thrown_by(Await await) {
  try {
    co_await await();
  } catch (const std::logic_error& error) {
    co_return error.what();
  }
  co_return "";
}

// A task that has begun never begins again, whatever awaits or starts it.
TEST(Task, ThatHasBegunIsRefusedByEachThatWouldBeginIt) {
  HandTurned here;
  const auto texts = here.run([](TaskScope* scope) -> Task<std::vector<std::string>> {
    Task<int> task = give(1);
    const int one = co_await std::move(task);
    EXPECT_EQ(one, 1);
    std::vector<std::string> said;
    said.push_back(co_await thrown_by([&]() -> Task<> { (void)co_await std::move(task); }));
    said.push_back(co_await thrown_by([&]() -> Task<> { (void)co_await when_all(std::move(task), give(2)); }));
    said.push_back(co_await thrown_by([&]() -> Task<> { (void)co_await when_any(std::move(task), give(2)); }));
    auto both = when_all(give(3), give(4));
    const auto values = co_await both;
    EXPECT_EQ(std::get<1>(values), 4);
    try {
      (void)co_await both;
    } catch (const std::logic_error& error) {
      said.emplace_back(error.what());
    }
    const Result<int> timed = co_await with_timeout(give(5), std::chrono::hours(1));
    EXPECT_EQ(timed.value_or(0), 5);
    Task<> nothing = []() -> Task<> { co_return; }();
    co_await std::move(nothing);
    const Result<void> late = co_await with_timeout(std::move(nothing), std::chrono::hours(1));
    EXPECT_EQ(late.error(), Errc::invalid_argument);
    Task<> again = []() -> Task<> { co_return; }();
    co_await std::move(again);
    EXPECT_EQ(scope->spawn(std::move(again)).error(), Errc::invalid_argument);
    co_return said;
  }(&here.scope()));
  ASSERT_TRUE(texts);
  const std::string alone = "weft: co_await of a Task that was moved from, or awaited before";
  const std::string group = "weft: a Task that was moved from, or awaited before, is in a group";
  EXPECT_EQ(texts->at(0), alone);
  EXPECT_EQ(texts->at(1), group);
  EXPECT_EQ(texts->at(2), group);
  EXPECT_EQ(texts->at(3), group);
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kMillion = 100'000;  // enough to end any stack, and a tenth of the time
#else
constexpr int kMillion = 1'000'000;
#endif

// The compiler makes no tail calls here (-O0, sanitizers): only the library's trampoline keeps the stack short.
TEST(Task, AMillionAwaitsInALoopDoNotGrowTheStack) {
  HandTurned here;
  const auto sum = here.run([]() -> Task<long> {
    long total = 0;
    for (int i = 0; i < kMillion; ++i) {
      total += co_await give(1);
    }
    co_return total;
  }());
  EXPECT_EQ(sum, kMillion);
}

TEST(Task, AMillionNestedAwaitsDoNotGrowTheStack) {
  HandTurned here;
  struct Nested {
    static Task<int> go(int depth) {
      if (depth == 0) {
        co_return 0;
      }
      const int below = co_await go(depth - 1);
      co_return below + 1;
    }
  };
  EXPECT_EQ(here.run(Nested::go(kMillion)), kMillion);
}

TEST(Task, ATaskThatWaitsDeepInsideIsCancelledThereAndAllAboveSeeIt) {
  HandTurned here;
  int living = 0;
  AsyncEvent never;
  std::vector<int> ended;
  struct Chain {
    static Task<Result<void>> go(int depth, AsyncEvent& event, std::vector<int>& order, int& count) {
      const Living held(count);
      Result<void> result;
      if (depth == 0) {
        result = co_await event.wait();
      } else {
        result = co_await go(depth - 1, event, order, count);
      }
      order.push_back(depth);
      co_return result;
    }
    static Task<void> top(AsyncEvent& event, std::vector<int>& order, int& count, Error& error) {
      const Result<void> result = co_await go(3, event, order, count);
      error = result.error();
    }
  };
  Error error;
  here.start(Chain::top(never, ended, living, error));
  here.turn();
  EXPECT_EQ(living, 4);
  here.scope().cancel();
  EXPECT_TRUE(ended.empty()) << "cancel() resumed a coroutine inside of itself";
  here.turn();
  EXPECT_EQ(ended, (std::vector{0, 1, 2, 3}));
  EXPECT_EQ(error, kCancelled);
  EXPECT_EQ(living, 0);
  EXPECT_EQ(here.runner().tasks(), 0u);
}

TEST(Task, EachAwaitAfterTheCancellationIsCancelled) {
  HandTurned here;
  int refused = 0;
  auto stubborn = [](int& count) -> Task<void> {
    AsyncEvent never;
    for (int i = 0; i < 10; ++i) {
      const Result<void> waited = co_await never.wait();
      count += waited.error() == kCancelled ? 1 : 0;
    }
    const Result<void> slept = co_await sleep(std::chrono::hours(1));
    count += slept.error() == kCancelled ? 1 : 0;
  };
  here.start(stubborn(refused));
  here.scope().cancel();
  here.turn();
  EXPECT_EQ(refused, 11);
  EXPECT_EQ(here.runner().tasks(), 0u);
}

// Loops that do not check the results of their awaits. Each notes how often it went round.
struct Forgetful {
  AsyncEvent never;
  AsyncQueue<int> empty{1};
  int rounds = 0;

  Task<void> sleeps() {
    for (;; ++rounds) {
      (void)co_await sleep(std::chrono::hours(1));
    }
  }
  Task<void> yields() {
    for (;; ++rounds) {
      (void)co_await yield();
    }
  }
  Task<void> waits() {
    for (;; ++rounds) {
      (void)co_await never.wait();
    }
  }
  Task<void> pops() {
    for (;; ++rounds) {
      (void)co_await empty.pop();
    }
  }
  Task<void> pushes() {
    (void)empty.try_push(1);
    for (;; ++rounds) {
      (void)co_await empty.push(2);
    }
  }
  Task<void> asks() {
    for (;; ++rounds) {
      const bool cancelled = co_await is_cancelled();
      if (!cancelled) {
        (void)co_await sleep(std::chrono::hours(1));
      }
    }
  }
  Task<void> waits_in_scopes() {
    for (;; ++rounds) {
      (void)co_await with_timeout(sleep_long(), std::chrono::hours(2));
    }
  }
  Task<void> waits_in_groups() {
    for (;; ++rounds) {
      (void)co_await when_all(sleep_long(), sleep_long());
    }
  }
  static Task<void> sleep_long() { (void)co_await sleep(std::chrono::hours(1)); }
};
using ForgetfulLoop = Task<void> (Forgetful::*)();
constexpr ForgetfulLoop kForgetfulLoops[] = {
    &Forgetful::sleeps, &Forgetful::yields, &Forgetful::waits,           &Forgetful::pops,
    &Forgetful::pushes, &Forgetful::asks,   &Forgetful::waits_in_scopes, &Forgetful::waits_in_groups};

TEST(Task, ACancelledTaskThatIgnoresItLeavesTheThreadToOthersInEachTurn) {
  for (const ForgetfulLoop loop : kForgetfulLoops) {
    HandTurned here;
    Forgetful forgetful;
    here.start((forgetful.*loop)());
    here.runner().turn();
    here.scope().cancel();
    int last = 0;
    for (int turn = 0; turn < 20; ++turn) {
      here.runner().turn();
      EXPECT_LE(forgetful.rounds - last, 2) << "loop " << &loop - kForgetfulLoops;
      last = forgetful.rounds;
    }
    EXPECT_GT(last, 5) << "loop " << &loop - kForgetfulLoops;
    EXPECT_GT(here.runner().cancels_ignored(), 5u) << "loop " << &loop - kForgetfulLoops;
    here.turn();
  }
}

TEST(Task, ATaskThatIgnoresItsCancellationForLongEndsByAnException) {
  for (const ForgetfulLoop loop : kForgetfulLoops) {
    HandTurned here;
    Forgetful forgetful;
    here.start((forgetful.*loop)());
    here.runner().turn();
    here.scope().cancel();
    here.turn();
    EXPECT_EQ(here.runner().tasks(), 0u) << "loop " << &loop - kForgetfulLoops;
    ASSERT_NE(here.scope().exception(), nullptr) << "loop " << &loop - kForgetfulLoops;
    EXPECT_THROW(std::rethrow_exception(here.scope().exception()), CancelIgnored);
  }
}

TEST(Task, ATaskThatCatchesEachExceptionLeavesTheThreadToOthersAllTheSame) {
  HandTurned here;
  int caught = 0;
  auto catches = [](int& count) -> Task<void> {
    while (count < 2) {
      try {
        (void)co_await sleep(std::chrono::hours(1));
      } catch (const CancelIgnored&) {
        ++count;
      }
    }
  };
  here.start(catches(caught));
  here.scope().cancel();
  std::uint32_t turns = 0;
  for (; here.runner().tasks() != 0; ++turns) {
    here.runner().turn();
  }
  EXPECT_EQ(caught, 2);
  EXPECT_GT(turns, 2 * (kCancelledAwaitsMax - 4));
}

TEST(Task, TheVariablesOfATaskThatIgnoredItsCancellationEnd) {
  HandTurned here;
  int living = 0;
  auto forgetful = [](int& count) -> Task<void> {
    const Living outer(count);
    for (;;) {
      const Living inner(count);
      (void)co_await sleep(std::chrono::hours(1));
    }
  };
  here.start(forgetful(living));
  EXPECT_EQ(living, 2);
  here.scope().cancel();
  here.turn();
  EXPECT_EQ(living, 0);
}

TEST(Task, ManyTasksThatCleanUpAfterTheirCancellationAreNotTakenForOneThatIgnoresIt) {
  HandTurned here;
  int ended = 0;
  auto tidy = [](int& count) -> Task<void> {
    for (int i = 0; i < 4; ++i) {
      (void)co_await sleep(std::chrono::hours(1));
    }
    ++count;
  };
  constexpr int kTasks = 2 * static_cast<int>(kCancelledAwaitsMax);
  for (int i = 0; i < kTasks; ++i) {
    here.start(tidy(ended));
  }
  here.scope().cancel();
  here.turn();
  EXPECT_EQ(ended, kTasks);
  EXPECT_EQ(here.scope().exception(), nullptr);
}

TEST(Task, AGroupOfManyTasksInACancelledTaskIsNotTakenForOneThatIgnoresIt) {
  HandTurned here;
  int ended = 0;
  auto sleeps = [](int& count) -> Task<void> {
    (void)co_await sleep(std::chrono::hours(1));
    ++count;
  };
  constexpr int kTasks = 2 * static_cast<int>(kCancelledAwaitsMax);
  auto group = [&]() -> Task<void> {
    for (int i = 0; i < 3; ++i) {
      (void)co_await sleep(std::chrono::hours(1));
    }
    std::vector<Task<void>> tasks;
    for (int i = 0; i < kTasks; ++i) {
      tasks.push_back(sleeps(ended));
    }
    (void)co_await when_all(std::move(tasks));
  };
  here.start(group());
  here.scope().cancel();
  here.turn();
  EXPECT_EQ(ended, kTasks);
  EXPECT_EQ(here.scope().exception(), nullptr);
}

TEST(Task, AnAwaitOfATaskThatIsNotCancelledIsNotCountedAsOneThatIgnoresIt) {
  HandTurned here;
  auto patient = []() -> Task<void> {
    for (int i = 0; i < 5; ++i) {
      (void)co_await sleep(std::chrono::seconds(1));
    }
  };
  auto ends_when_cancelled = []() -> Task<void> {
    for (bool cancelled = false; !cancelled;) {
      const auto slept = co_await sleep(std::chrono::hours(1));
      cancelled = !slept;
    }
  };
  here.run(patient());
  here.start(ends_when_cancelled());
  here.scope().cancel();
  here.turn();
  EXPECT_EQ(here.runner().cancels_ignored(), 0u);
}

}  // namespace
}  // namespace weft::rt
