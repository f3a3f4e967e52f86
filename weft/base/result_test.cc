// SPDX-License-Identifier: MIT
#include "weft/base/result.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace weft {
namespace {

// Counts its live objects, so that a Result that forgets to construct or destroy one fails the test.
struct Counted {
  explicit Counted(int* live) : live_(live) { ++*live_; }
  Counted(const Counted& other) : live_(other.live_) { ++*live_; }
  Counted(Counted&& other) noexcept : live_(other.live_) { ++*live_; }
  Counted& operator=(const Counted&) = default;
  Counted& operator=(Counted&&) = default;
  ~Counted() { --*live_; }
  int* live_;
};

TEST(Result, HoldsItsValueAndIsThenOk) {
  const Result<int> result = 7;
  ASSERT_TRUE(result);
  EXPECT_TRUE(result.has_value());
  EXPECT_EQ(*result, 7);
  EXPECT_EQ(result.error(), Errc::ok);
}

TEST(Result, HoldsItsErrorAndIsThenFalse) {
  const Result<int> result = Error(Errc::timed_out, "text", 5);
  ASSERT_FALSE(result);
  EXPECT_FALSE(result.has_value());
  EXPECT_EQ(result.error(), Errc::timed_out);
  EXPECT_EQ(result.error().os_errno(), 5);
  EXPECT_STREQ(result.error().text(), "text");
}

TEST(Result, CarriesMoveOnlyValuesOut) {
  Result<std::unique_ptr<int>> result = std::make_unique<int>(3);
  const std::unique_ptr<int> value = std::move(result).value();
  EXPECT_EQ(*value, 3);
}

TEST(Result, ArrowReachesMembers) {
  Result<std::string> result = std::string("abc");
  result->push_back('d');
  EXPECT_EQ(*result, "abcd");
}

TEST(Result, ValueOrGivesTheFallbackOnlyOnError) {
  EXPECT_EQ(Result<int>(1).value_or(2), 1);
  EXPECT_EQ(Result<int>(Errc::closed).value_or(2), 2);
}

TEST(Result, CopiesMovesAndAssignsBetweenValueAndErrorWithoutLeaking) {
  int live = 0;
  {
    Result<Counted> value = Counted(&live);
    Result<Counted> error = Errc::closed;
    EXPECT_EQ(live, 1);
    Result<Counted> copy = value;
    EXPECT_EQ(live, 2);
    const Result<Counted> copied_error = error;
    EXPECT_EQ(copied_error.error(), Errc::closed);
    copy = error;
    EXPECT_EQ(live, 1);
    EXPECT_EQ(copy.error(), Errc::closed);
    copy = value;
    EXPECT_EQ(live, 2);
    ASSERT_TRUE(copy);
    error = std::move(copy);
    EXPECT_EQ(live, 3);  // a moved-from value must be destroyed too
    EXPECT_TRUE(error);
  }
  EXPECT_EQ(live, 0);
}

TEST(Result, OfVoidIsOkByDefaultAndHoldsAnError) {
  const Result<void> ok;
  EXPECT_TRUE(ok);
  EXPECT_EQ(ok.error(), Errc::ok);
  ok.value();
  const Result<void> error = Errc::would_block;
  EXPECT_FALSE(error);
  EXPECT_EQ(error.error(), Errc::would_block);
}

Result<int> half(int number) {
  if (number % 2 != 0) {
    return Error(Errc::invalid_argument, "odd");
  }
  return number / 2;
}
Result<void> check(bool good) { return good ? Result<void>() : Result<void>(Errc::invalid_state); }
Result<std::string> quarter(int number, int& steps) {
  const int once = WEFT_TRY(half(number));
  ++steps;
  const int twice = WEFT_TRY(half(once));
  ++steps;
  WEFT_TRY(check(twice != 1));
  return std::to_string(twice);
}

TEST(Result, TryYieldsTheValueOrReturnsTheErrorAtOnce) {
  int steps = 0;
  EXPECT_EQ(*quarter(8, steps), "2");
  EXPECT_EQ(steps, 2);
  steps = 0;
  EXPECT_EQ(quarter(6, steps).error(), Errc::invalid_argument);
  EXPECT_EQ(steps, 1);
  EXPECT_EQ(quarter(4, steps).error(), Errc::invalid_state);
}

Result<std::unique_ptr<int>> passed_on(Result<std::unique_ptr<int>> from) { return WEFT_TRY(std::move(from)); }

TEST(Result, TryMovesAMoveOnlyValue) {
  EXPECT_EQ(**passed_on(std::make_unique<int>(9)), 9);
  EXPECT_EQ(passed_on(Errc::closed).error(), Errc::closed);
}

Result<int&> find(int& place, bool there) {
  if (!there) {
    return Error(Errc::no_such_endpoint, "no such place");
  }
  return place;
}
Result<int&> incremented(int& place, bool there) {
  int& found = WEFT_TRY(find(place, there));
  ++found;
  const auto again = WEFT_TRY(find(found, true));
  ++again.get();
  return WEFT_TRY(find(found, true));
}

TEST(Result, TryYieldsAReferenceToTheThingItself) {
  int place = 1;
  EXPECT_EQ(&*incremented(place, true), &place);
  EXPECT_EQ(place, 3);
  EXPECT_EQ(incremented(place, false), Errc::no_such_endpoint);
}

Error assigned(int& to) {
  to = WEFT_TRY(half(to));
  to = half(WEFT_TRY(half(to))).value_or(0);
  return {};
}

TEST(Result, TryIsAnExpressionLikeAnyOtherAlsoWhereAnErrorIsReturned) {
  int number = 16;
  EXPECT_EQ(assigned(number), Errc::ok);
  EXPECT_EQ(number, 2);
  EXPECT_EQ(assigned(number), Errc::invalid_argument);
  EXPECT_EQ(number, 1);
}

Result<std::string> copied(const Result<std::string>& from) { return WEFT_TRY(from) + "!"; }

TEST(Result, TryOfANamedResultLeavesItAsItIs) {
  const Result<std::string> from = "a string that no small buffer holds";
  EXPECT_EQ(copied(from).value().size(), from->size() + 1);
}

TEST(Result, OfAnErrorThatIsOkIsAnErrorAllTheSame) {
  const Result<int> result = Error();
  EXPECT_FALSE(result);
  EXPECT_EQ(result.error(), Errc::invalid_state);
  EXPECT_FALSE(Result<int&>(Errc::ok));
  EXPECT_FALSE(Result<void>(unexpect));
  EXPECT_TRUE(Result<void>(Error()));
  EXPECT_EQ(Result<int>(1).and_then([](int) { return Result<long>(Error()); }), Errc::invalid_state);
}

TEST(ResultDeathTest, TheValueOfAnErrorIsABugThatIsNamedWithTheError) {
  const Error error(Errc::closed, "the thing");
  const char* const message = "the program took the value of a Result that holds an error.*closed: the thing";
  EXPECT_DEATH((void)*Result<int>(error), message);
  EXPECT_DEATH((void)Result<int>(error).value(), message);
  EXPECT_DEATH((void)Result<std::string>(error)->size(), message);
  EXPECT_DEATH((void)*Result<int&>(error), message);
  EXPECT_DEATH(Result<void>(error).value(), message);
}

}  // namespace
}  // namespace weft
