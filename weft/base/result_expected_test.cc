// SPDX-License-Identifier: MIT
// The promises of [expected.object] and [expected.void] in the C++23 standard, checked on Result at run time.
// The compiler checks the others in result_static_test.cc. TEST names end with the subclause.
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "weft/base/result.h"
#include <gtest/gtest.h>

namespace weft {
namespace {

struct Pinned {  // neither copied nor moved
  explicit Pinned(int number) : value(number) {}
  Pinned(Pinned&&) = delete;
  int value;
};

TEST(ResultAsExpected, ADefaultOneHoldsAValueInitialisedValueConsObject) {
  EXPECT_EQ(Result<int>().value(), 0);
  EXPECT_EQ(Result<std::string>().value(), "");
}

TEST(ResultAsExpected, InPlaceMakesTheValueOfItsArgumentsConsObject) {
  EXPECT_EQ(*Result<std::string>(std::in_place, 3, 'x'), "xxx");
  EXPECT_EQ(*Result<std::vector<int>>(std::in_place, {1, 2}), (std::vector<int>{1, 2}));
  EXPECT_EQ(Result<Pinned>(std::in_place, 4)->value, 4);
}

TEST(ResultAsExpected, UnexpectMakesAnErrorOfItsArgumentsConsObject) {
  const Result<int> error(unexpect, Errc::closed, "text", 7);
  EXPECT_EQ(error.error(), Error(Errc::closed, "", 7));
  EXPECT_STREQ(error.error().text(), "text");
  EXPECT_FALSE(Result<void>(unexpect, Errc::closed));
}

TEST(ResultAsExpected, AnotherResultIsConvertedWithItsValueOrItsErrorConsObject) {
  const Result<int> value = 3;
  EXPECT_EQ(*Result<long>(value), 3);
  EXPECT_EQ(Result<long>(Result<int>(Error(Errc::closed, "", 9))).error(), Error(Errc::closed, "", 9));
  Result<std::unique_ptr<int>> unique = std::make_unique<int>(3);
  const Result<std::shared_ptr<int>> shared = std::move(unique);
  EXPECT_EQ(**shared, 3);
  EXPECT_EQ(*unique, nullptr);
  EXPECT_EQ(**Result<Result<int>>(Result<int>(5)), 5);  // not unwrapped: the value is a Result
  EXPECT_TRUE(*Result<bool>(Result<int>(5)));           // unwrapped: the value, not has_value()
}

TEST(ResultAsExpected, AnErrorAsAValueIsMadeInPlaceConsObject) {
  EXPECT_FALSE(Result<Error>(Error(Errc::closed)));
  const Result<Error> value(std::in_place, Errc::closed);
  ASSERT_TRUE(value);
  EXPECT_EQ(value->code(), Errc::closed);
  EXPECT_EQ(value.error(), Errc::ok);
}

// Counts its live objects, and throws at the chosen copy or move, so that a lost or doubled object fails the
// test.
struct Fragile {
  static inline int alive = 0;
  static inline int until_throw = -1;  // this many more copies and moves succeed; -1: all
  static void step() {
    if (until_throw == 0) {
      throw std::runtime_error("fragile");
    }
    --until_throw;
  }
  explicit Fragile(int number) : value(number) {
    step();
    ++alive;
  }
  Fragile(const Fragile& other) : Fragile(other.value) {}
  Fragile(Fragile&& other) : Fragile(other.value) {
    other.value = -1;
  }  // NOLINT(performance-noexcept-move-constructor)
  Fragile& operator=(const Fragile& other) {
    step();
    value = other.value;
    return *this;
  }
  Fragile& operator=(int number) {
    step();
    value = number;
    return *this;
  }
  ~Fragile() { --alive; }
  int value;
};

class FragileResult : public ::testing::Test {
 protected:
  FragileResult() { Fragile::until_throw = -1; }
  ~FragileResult() override { Fragile::until_throw = -1; }
  static void throw_at_once() { Fragile::until_throw = 0; }
  static void expect_error(const Result<Fragile>& result) {
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error(), Error(Errc::timed_out, "", 5));
    EXPECT_STREQ(result.error().text(), "late");
  }

  const int alive_ = Fragile::alive;
  Result<Fragile> error_{Error(Errc::timed_out, "late", 5)};
  Result<Fragile> value_{std::in_place, 1};
};

TEST_F(FragileResult, KeepsItsErrorWhenACopyOfAValueThrowsAssignObject) {
  throw_at_once();
  EXPECT_THROW(error_ = value_, std::runtime_error);
  expect_error(error_);
}

TEST_F(FragileResult, KeepsItsErrorWhenAMoveOfAValueThrowsAssignObject) {
  throw_at_once();
  EXPECT_THROW(error_ = std::move(value_), std::runtime_error);
  expect_error(error_);
  EXPECT_EQ(value_->value, 1);  // NOLINT(bugprone-use-after-move): the move did not happen
}

TEST_F(FragileResult, KeepsItsErrorWhenTheConversionOfAValueThrowsAssignObject) {
  throw_at_once();
  EXPECT_THROW(error_ = 3, std::runtime_error);
  expect_error(error_);
}

TEST_F(FragileResult, KeepsItsValueWhenTheAssignmentOfAValueThrowsAssignObject) {
  const Result<Fragile> other(std::in_place, 2);
  throw_at_once();
  EXPECT_THROW(value_ = other, std::runtime_error);
  EXPECT_EQ(value_->value, 1);
}

TEST_F(FragileResult, AssignsOverEitherStateWhenNothingThrowsAssignObject) {
  error_ = value_;
  EXPECT_EQ(error_->value, 1);
  value_ = Errc::closed;
  EXPECT_EQ(value_.error(), Errc::closed);
  value_ = 4;
  EXPECT_EQ(value_->value, 4);
  value_ = 5;  // by assignment to the value
  EXPECT_EQ(value_->value, 5);
  value_ = Result<Fragile>(Errc::closed);
  EXPECT_EQ(value_.error(), Errc::closed);
  EXPECT_EQ(Fragile::alive, alive_ + 1);
}

TEST_F(FragileResult, SwapsNothingWhenTheMoveThrowsSwapObject) {
  throw_at_once();
  EXPECT_THROW(error_.swap(value_), std::runtime_error);
  expect_error(error_);
  EXPECT_EQ(value_->value, 1);
  EXPECT_THROW(value_.swap(error_), std::runtime_error);
  expect_error(error_);
  EXPECT_EQ(value_->value, 1);
}

TEST_F(FragileResult, SwapsAllFourPairsOfStatesSwapObject) {
  swap(error_, value_);
  EXPECT_EQ(error_->value, 1);
  expect_error(value_);
  swap(error_, value_);
  EXPECT_EQ(value_->value, 1);
  expect_error(error_);
  Result<Fragile> other(std::in_place, 2);
  swap(value_, other);
  EXPECT_EQ(value_->value, 2);
  EXPECT_EQ(other->value, 1);
  Result<Fragile> other_error(Errc::closed);
  swap(error_, other_error);
  EXPECT_EQ(error_.error(), Errc::closed);
  expect_error(other_error);
  EXPECT_EQ(Fragile::alive, alive_ + 2);
}

TEST(ResultAsExpected, EmplaceReplacesTheValueOrTheErrorAssignObject) {
  Result<int> result = Errc::closed;
  const int& made = result.emplace(3);
  EXPECT_EQ(&made, &*result);
  EXPECT_EQ(result.emplace(4), 4);
  Result<std::unique_ptr<int>> owner = std::make_unique<int>(1);
  EXPECT_EQ(owner.emplace(), nullptr);
  Result<void> done = Errc::closed;
  done.emplace();
  EXPECT_TRUE(done);
  int place = 0;
  Result<int&> to = Errc::closed;
  EXPECT_EQ(&to.emplace(place), &place);
}

TEST(ResultAsExpected, ErrorOrAndValueOrGiveTheFallbackOnlyWhereNothingElseIsObsObject) {
  const Result<std::string> value = "abc";
  const Result<std::string> error = Errc::closed;
  EXPECT_EQ(value.value_or("x"), "abc");
  EXPECT_EQ(error.value_or("x"), "x");
  EXPECT_EQ(value.error_or(Errc::system), Errc::system);
  EXPECT_EQ(error.error_or(Errc::system), Errc::closed);
  EXPECT_EQ(Result<void>().error_or(Errc::system), Errc::system);
  EXPECT_EQ(*Result<std::unique_ptr<int>>(Errc::closed).value_or(std::make_unique<int>(3)), 3);
  int place = 4;
  EXPECT_EQ(Result<int&>(place).value_or(5), 4);
  EXPECT_EQ(Result<int&>(Errc::closed).value_or(5), 5);
}

TEST(ResultAsExpected, EqualityComparesStatesThenValuesOrErrorsEqObject) {
  const Result<int> three = 3;
  const Result<int> closed = Errc::closed;
  EXPECT_EQ(three, Result<long>(3));
  EXPECT_NE(three, Result<long>(4));
  EXPECT_NE(three, closed);
  EXPECT_NE(closed, three);
  EXPECT_EQ(closed, Result<std::int64_t>(Errc::closed));
  EXPECT_NE(closed, Result<int>(Error(Errc::closed, "", 1)));
  EXPECT_EQ(three, 3);
  EXPECT_EQ(3, three);
  EXPECT_NE(closed, 3);
  EXPECT_EQ(closed, Errc::closed);
  EXPECT_NE(three, Errc::closed);
  EXPECT_EQ(Result<void>(), Result<void>());
  EXPECT_NE(Result<void>(), Result<void>(Errc::closed));
  EXPECT_EQ(Result<void>(Errc::closed), Error(Errc::closed));
}

// Records how a function was called: the kind of reference, and the copies and moves of the value.
struct Track {
  int copies = 0;
  int moves = 0;
  Track() = default;
  Track(const Track& other) : copies(other.copies + 1), moves(other.moves) {}
  Track(Track&& other) noexcept : copies(other.copies), moves(other.moves + 1) {}
};

TEST(ResultAsExpected, AFunctionGetsTheValueAsTheResultWasPassedMonadicObject) {
  const auto kind = [](auto&& value) {
    using V = decltype(value);
    return Result<int>(std::is_lvalue_reference_v<V> + 2 * std::is_const_v<std::remove_reference_t<V>>);
  };
  const auto all = [&](auto&& call) {
    Result<Track> result(std::in_place);
    EXPECT_EQ(call(result), 1);
    EXPECT_EQ(call(std::as_const(result)), 3);
    EXPECT_EQ(call(std::move(result)), 0);
    EXPECT_EQ(call(std::move(std::as_const(result))), 2);  // NOLINT(bugprone-use-after-move): no call moves it
  };
  all([&](auto&& r) { return *std::forward<decltype(r)>(r).and_then(kind); });
  all([&](auto&& r) { return **std::forward<decltype(r)>(r).transform(kind); });
  all([&](auto&& r) { return **std::forward<decltype(r)>(r).map(kind); });
}

TEST(ResultAsExpected, AValueThatIsPassedOnIsCopiedOrMovedOnceMonadicObject) {
  Result<Track> result(std::in_place);
  const auto recover = [](Error error) { return Result<Track>(error); };
  const auto rename = [](Error error) { return error; };
  EXPECT_EQ(result.or_else(recover)->copies, 1);
  EXPECT_EQ(result.or_else(recover)->moves, 0);
  EXPECT_EQ(std::as_const(result).transform_error(rename)->copies, 1);
  EXPECT_EQ(std::move(result).or_else(recover)->moves, 1);  // NOLINT(bugprone-use-after-move)
  EXPECT_EQ(std::move(result).transform_error(rename)->copies, 0);
}

TEST(ResultAsExpected, TheErrorPassesByTheFunctionsOfAValueMonadicObject) {
  int calls = 0;
  const auto count = [&](int value) { return ++calls, value; };
  const auto count_next = [&](int value) { return ++calls, Result<std::string>(std::to_string(value)); };
  const Result<int> error = Error(Errc::closed, "text", 3);
  EXPECT_EQ(error.transform(count), Error(Errc::closed, "", 3));
  EXPECT_EQ(error.map(count), Error(Errc::closed, "", 3));
  EXPECT_EQ(error.and_then(count_next), Error(Errc::closed, "", 3));
  EXPECT_STREQ(error.and_then(count_next).error().text(), "text");
  EXPECT_EQ(calls, 0);
  EXPECT_EQ(Result<int>(3).map(count).and_then(count_next), "3");
  EXPECT_EQ(calls, 2);
}

TEST(ResultAsExpected, TheValuePassesByTheFunctionsOfAnErrorMonadicObject) {
  int calls = 0;
  const auto recover = [&](Error error) { return ++calls, Result<int>(error.os_errno()); };
  const auto rename = [&](Error error) { return ++calls, Error(Errc::timed_out, error.static_text()); };
  EXPECT_EQ(Result<int>(3).or_else(recover).transform_error(rename), 3);
  EXPECT_EQ(calls, 0);
  const Result<int> error = Error(Errc::closed, "text", 8);
  EXPECT_EQ(error.or_else(recover), 8);
  EXPECT_EQ(error.transform_error(rename), Errc::timed_out);
  EXPECT_STREQ(error.transform_error(rename).error().text(), "text");
  EXPECT_EQ(error.transform_error([](Error) { return Errc::system; }), Errc::system);
}

TEST(ResultAsExpected, TransformMakesVoidAReferenceAMemberOrAnObjectThatNeverMovesMonadicObject) {
  struct Pair {
    int first;
    [[nodiscard]] int doubled() const { return 2 * first; }
  };
  int seen = 0;
  EXPECT_TRUE(Result<int>(3).transform([&](int value) { seen = value; }));
  EXPECT_EQ(seen, 3);
  Result<Pair> pair = Pair{4};
  Result<int&> first = pair.transform(&Pair::first);
  *first = 5;
  EXPECT_EQ(pair->first, 5);
  EXPECT_EQ(pair.transform(&Pair::doubled), 10);
  EXPECT_EQ(Result<Pair*>(&*pair).transform(&Pair::doubled), 10);
  EXPECT_EQ(pair.transform([](Pair& p) { return Pinned(p.first); })->value, 5);
}

TEST(ResultAsExpected, OfVoidCallsWithoutAnArgumentMonadicVoid) {
  const Result<void> ok;
  const Result<void> closed = Errc::closed;
  int calls = 0;
  const auto count = [&] { return ++calls; };
  EXPECT_EQ(ok.transform(count), 1);
  EXPECT_EQ(ok.and_then([&] { return Result<int>(count()); }), 2);
  EXPECT_TRUE(ok.map([&] { count(); }));
  EXPECT_EQ(closed.transform(count), Errc::closed);
  EXPECT_EQ(closed.and_then([&] { return Result<int>(count()); }), Errc::closed);
  EXPECT_EQ(calls, 3);
  EXPECT_TRUE(closed.or_else([](Error) { return Result<void>(); }));
  EXPECT_TRUE(ok.or_else([](Error error) { return Result<void>(error); }));
  EXPECT_EQ(closed.transform_error([](Error) { return Error(Errc::system); }), Errc::system);
  EXPECT_TRUE(ok.transform_error([](Error) { return Error(Errc::system); }));
}

TEST(ResultAsExpected, OfAReferenceBindsAnewByAssignment) {
  int one = 1;
  int two = 2;
  Result<int&> to = one;
  const Result<int&> second = two;
  to = second;
  *to = 3;
  EXPECT_EQ(one, 1);
  EXPECT_EQ(two, 3);
  to = Errc::closed;
  EXPECT_EQ(to, Errc::closed);
  Result<int&> other = one;
  swap(to, other);
  EXPECT_EQ(&*to, &one);
  EXPECT_EQ(other, Errc::closed);
  EXPECT_EQ(to.map([](int& value) -> int& { return value; }), 1);
}

}  // namespace
}  // namespace weft
