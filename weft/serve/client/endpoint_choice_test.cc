// SPDX-License-Identifier: MIT
#include "weft/serve/client/endpoint_choice.h"

#include <array>
#include <cstddef>

#include <gtest/gtest.h>

namespace weft::serve {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Outcome = EndpointChoice::Outcome;

constexpr auto kAllReady = [](std::size_t) { return true; };

class EndpointChoiceTest : public ::testing::Test {
 protected:
  // A request that takes so long; the clock stands still.
  void serve(EndpointChoice& choice, std::size_t index, Duration took, Outcome outcome = Outcome::success) {
    choice.begin(index);
    choice.finish(index, took, outcome, now_);
  }
  // How many of 1,000 choices each endpoint gets; requests end at once.
  template <typename Ready>
  std::array<int, 4> shares(EndpointChoice& choice, const Ready& ready) {
    std::array<int, 4> counts{};
    for (int i = 0; i < 1000; ++i) {
      const auto index = choice.choose(now_, ready);
      EXPECT_TRUE(index);
      ++counts[index.value_or(0)];
    }
    return counts;
  }
  void fail(EndpointChoice& choice, std::size_t index, int times) {
    for (int i = 0; i < times; ++i) {
      serve(choice, index, milliseconds(1), Outcome::failure);
    }
  }

  Instant now_ = Instant() + std::chrono::hours(1);
};

TEST_F(EndpointChoiceTest, EqualEndpointsGetEqualShares) {
  EndpointChoice choice(4, {}, 1);
  for (const int share : shares(choice, kAllReady)) {
    EXPECT_NEAR(share, 250, 60);
  }
}

TEST_F(EndpointChoiceTest, ASlowEndpointIsTriedAgainWhenItsLatencyIsOld) {
  EndpointChoice choice(4, {}, 1);
  for (std::size_t i = 0; i < 4; ++i) {
    serve(choice, i, milliseconds(i == 3 ? 50 : 1));
  }
  EXPECT_EQ(shares(choice, kAllReady)[3], 0);
  now_ += seconds(60);
  for (std::size_t i = 0; i < 3; ++i) {
    serve(choice, i, milliseconds(1));
  }
  EXPECT_GT(shares(choice, kAllReady)[3], 0);
}

TEST_F(EndpointChoiceTest, ALatencyAboveTheAverageReplacesItAndALowerOneMovesItSlowly) {
  EndpointChoice choice(1, {}, 1);
  serve(choice, 0, milliseconds(1));
  EXPECT_DOUBLE_EQ(choice.load(0, now_), 1e6);
  serve(choice, 0, milliseconds(100));
  EXPECT_DOUBLE_EQ(choice.load(0, now_), 1e8);
  now_ += milliseconds(100);  // a hundredth of `decay`
  serve(choice, 0, milliseconds(1));
  EXPECT_NEAR(choice.load(0, now_), 1e8 * 0.99, 1e6);
}

TEST_F(EndpointChoiceTest, ItsRequestsInFlightAreALoad) {
  EndpointChoice choice(2, {}, 1);
  serve(choice, 0, milliseconds(1));
  serve(choice, 1, milliseconds(3));
  for (int i = 0; i < 3; ++i) {
    choice.begin(0);
  }
  EXPECT_EQ(choice.choose(now_, kAllReady), 1u);  // 3 ms of one request are less than 1 ms of four
  choice.begin(1);
  EXPECT_EQ(choice.choose(now_, kAllReady), 0u);
}

TEST_F(EndpointChoiceTest, AnEndpointWithoutAnAnswerGetsOneRequestAtATimeBesideOthers) {
  EndpointChoice choice(2, {}, 1);
  serve(choice, 0, milliseconds(1));
  EXPECT_EQ(choice.choose(now_, kAllReady), 1u);
  choice.begin(1);
  EXPECT_EQ(choice.choose(now_, kAllReady), 0u);
}

TEST_F(EndpointChoiceTest, OnlyReadyEndpointsAreChosen) {
  EndpointChoice choice(4, {}, 1);
  const auto shares_of_two = shares(choice, [](std::size_t index) { return index % 2 == 1; });
  EXPECT_EQ(shares_of_two[0] + shares_of_two[2], 0);
  EXPECT_FALSE(choice.choose(now_, [](std::size_t) { return false; }));
  EXPECT_EQ(choice.choose(now_, [](std::size_t index) { return index < 2; }, 0), 1u);
  EXPECT_FALSE(choice.choose(now_, [](std::size_t index) { return index == 0; }, 0));
}

TEST_F(EndpointChoiceTest, FailuresInARowEjectForTwiceAsLongEachTime) {
  EndpointChoice choice(2, {}, 1);
  fail(choice, 0, 4);
  serve(choice, 0, milliseconds(1));
  fail(choice, 0, 4);
  EXPECT_FALSE(choice.is_ejected(0, now_));
  fail(choice, 0, 1);
  for (const Duration wait : {seconds(1), seconds(2), seconds(4)}) {
    EXPECT_TRUE(choice.is_ejected(0, now_ + wait - milliseconds(1)));
    EXPECT_FALSE(choice.is_ejected(0, now_ + wait));
    now_ += wait;
    fail(choice, 0, 1);
  }
  for (int i = 0; i < 100; ++i) {
    now_ += std::chrono::minutes(1);
    fail(choice, 0, 1);
  }
  EXPECT_TRUE(choice.is_ejected(0, now_ + std::chrono::minutes(1) - milliseconds(1)));
  EXPECT_FALSE(choice.is_ejected(0, now_ + std::chrono::minutes(1)));
  serve(choice, 0, milliseconds(1));
  EXPECT_FALSE(choice.is_ejected(0, now_));
}

TEST_F(EndpointChoiceTest, AnEjectedEndpointIsChosenOnlyIfNoOtherIsReady) {
  EndpointChoice choice(2, {}, 1);
  fail(choice, 0, 5);
  EXPECT_EQ(shares(choice, kAllReady)[1], 1000);
  EXPECT_EQ(choice.choose(now_, [](std::size_t index) { return index == 0; }), 0u);
}

TEST_F(EndpointChoiceTest, MostEndpointsStay) {
  EndpointChoice choice(4, {}, 1);
  for (std::size_t i = 0; i < 4; ++i) {
    fail(choice, i, 10);
  }
  EXPECT_EQ(choice.ejections(), 2u);
  EndpointChoice sole(1, {}, 1);
  fail(sole, 0, 100);
  EXPECT_EQ(sole.ejections(), 0u);
}

TEST_F(EndpointChoiceTest, ARequestThatTheCallerGaveUpSaysNothing) {
  EndpointChoice choice(2, {}, 1);
  for (int i = 0; i < 10; ++i) {
    serve(choice, 0, seconds(5), Outcome::nothing);
  }
  EXPECT_FALSE(choice.is_ejected(0, now_));
  EXPECT_EQ(choice.load(0, now_), 0);
  EXPECT_EQ(choice.in_flight(0), 0u);
}

}  // namespace
}  // namespace weft::serve
