// SPDX-License-Identifier: MIT
#include <stdexcept>
#include <string>

#include "weft/rt/task/task.h"
#include "weft/rt/task/test_tasks.h"
#include <gtest/gtest.h>

// Awaits in conditions, and WEFT_CO_TRY as the body of a loop.
namespace weft::rt {
namespace {

using test::HandTurned;
using namespace std::chrono_literals;

Task<bool> truth() { co_return true; }
Task<int> number() { co_return 1; }

// --- coroutines that GCC 12 breaks ---

Task<> await_in_if(int* ended) {
  if (co_await sleep(1ms)) {
    ++*ended;
  }
}
Task<> await_in_if_not(int* ended) {
  if (!co_await truth()) {
    co_return;
  }
  ++*ended;
}
Task<> await_behind_another_condition(int* ended) {
  if (ended != nullptr && co_await truth()) {
    ++*ended;
  }
}
Task<> await_in_while(int* ended) {
  while (*ended == 0 && co_await truth()) {
    ++*ended;
  }
}
Task<> await_in_do(int* ended) {
  do {
    ++*ended;
  } while (!co_await truth());
}
Task<> await_in_for(int* ended) {
  for (; *ended == 0 && co_await truth();) {
    ++*ended;
  }
}
Task<> await_in_switch(int* ended) {
  switch (co_await number()) {
    case 1: ++*ended; break;
    default: break;
  }
}

TEST(AwaitedCondition, OfACoroutineWithoutVariablesWorksOrTheCallSaysThatItCannot) {
  for (const auto coroutine : {await_in_if, await_in_if_not, await_behind_another_condition, await_in_while,
                               await_in_do, await_in_for, await_in_switch}) {
    HandTurned here;
    int ended = 0;
    std::string refused;
    try {
      EXPECT_TRUE(here.run(coroutine(&ended))) << "the task hangs";
    } catch (const std::logic_error& error) {
      refused = error.what();
    }
    EXPECT_NE(ended != 0, refused.find("Name the result first") != std::string::npos) << ended << refused;
  }
}

// --- coroutines that every compiler understands ---

Task<> name_the_result(int* ended) {
  const auto slept = co_await sleep(1ms);
  if (slept) {
    ++*ended;
  }
}
Task<> name_it_in_the_if(int* ended) {
  if (const auto slept = co_await sleep(1ms); slept) {
    ++*ended;
  }
}
Task<> have_another_variable(int* ended) {
  int one = 1;
  if (co_await truth()) {
    *ended += one--;
  }
}
Task<> call_others(int* ended) {
  co_await name_the_result(ended);
  co_await name_it_in_the_if(ended);
}
TEST(AwaitedCondition, IsNotSeenWhereThereIsNone) {
  for (const auto coroutine : {name_the_result, name_it_in_the_if, have_another_variable, call_others}) {
    HandTurned here;
    int ended = 0;
    EXPECT_TRUE(here.run(coroutine(&ended)));
    EXPECT_NE(ended, 0);
  }
}

// --- WEFT_CO_TRY ---

Task<Result<void>> count_to(int* count, int end) {
  ++*count;
  co_return *count == end ? Result<void>(Errc::closed) : Result<void>();
}
// clang-format off
Task<Result<void>> loop_without_braces(int* count, int end) {  // NOLINTBEGIN(readability-braces-around-statements)
  for (int i = 0; i < 3; ++i)
    WEFT_CO_TRY(co_await count_to(count, end));
  co_return Result<void>();
}
Task<Result<void>> choose_without_braces(int* count, bool first) {
  if (first)
    WEFT_CO_TRY(co_await count_to(count, 1));
  else
    *count = 10;
  co_return Result<void>();
}  // NOLINTEND(readability-braces-around-statements)
// clang-format on
TEST(CoTry, WithoutAVariableIsTheWholeBodyOfALoop) {
  HandTurned here;
  int count = 0;
  EXPECT_TRUE(*here.run(loop_without_braces(&count, 0)));
  EXPECT_EQ(count, 3);
  count = 0;
  EXPECT_EQ(here.run(loop_without_braces(&count, 2))->error(), Errc::closed);
  EXPECT_EQ(count, 2);
}
TEST(CoTry, TakesNoElseThatIsOfTheIfAroundIt) {
  HandTurned here;
  int count = 0;
  EXPECT_EQ(here.run(choose_without_braces(&count, true))->error(), Errc::closed);
  EXPECT_TRUE(*here.run(choose_without_braces(&count, false)));
  EXPECT_EQ(count, 10);
}

}  // namespace
}  // namespace weft::rt
