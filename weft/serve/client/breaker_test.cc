// SPDX-License-Identifier: MIT
#include "weft/serve/client/breaker.h"

#include <chrono>

#include <gtest/gtest.h>

namespace weft::serve {
namespace {

using namespace std::chrono_literals;
using Outcome = CircuitBreaker::Outcome;
using State = CircuitBreaker::State;

class BreakerTest : public testing::Test {
 protected:
  // Makes one call; false: the breaker did not let it through.
  static bool call(CircuitBreaker& breaker, Outcome outcome, Instant now) {
    const auto ticket = breaker.try_begin(now);
    if (ticket) {
      breaker.finish(*ticket, outcome, now);
    }
    return ticket.has_value();
  }
  static CircuitBreaker opened(const BreakerOptions& options) {
    CircuitBreaker breaker(options);
    for (std::uint32_t i = 0; i < options.failures_in_row; ++i) {
      EXPECT_TRUE(call(breaker, Outcome::failure, Instant()));
    }
    EXPECT_EQ(breaker.state(Instant()), State::open);
    return breaker;
  }

  BreakerOptions in_row_{.failure_percent = 200, .failures_in_row = 3, .open_time = 5s, .probes = 2};
};

TEST_F(BreakerTest, ItOpensWhenTheShareOfFailuresIsReached) {
  CircuitBreaker breaker({.window = 10, .calls_min = 4, .failure_percent = 50});
  for (const Outcome outcome : {Outcome::failure, Outcome::success, Outcome::success, Outcome::failure}) {
    EXPECT_EQ(breaker.state(Instant()), State::closed);
    EXPECT_TRUE(call(breaker, outcome, Instant()));
  }
  EXPECT_EQ(breaker.state(Instant()), State::open);
  EXPECT_FALSE(call(breaker, Outcome::success, Instant()));
  EXPECT_EQ(breaker.openings(), 1u);
}

TEST_F(BreakerTest, OldCallsLeaveTheWindow) {
  CircuitBreaker breaker({.window = 4, .calls_min = 4, .failure_percent = 50});
  EXPECT_TRUE(call(breaker, Outcome::failure, Instant()));
  for (int i = 0; i < 1000; ++i) {
    EXPECT_TRUE(call(breaker, i % 4 == 3 ? Outcome::failure : Outcome::success, Instant()));
  }
  EXPECT_EQ(breaker.state(Instant()), State::closed);
}

TEST_F(BreakerTest, SuccessesCloseItAndOneFailureOpensItAgain) {
  CircuitBreaker breaker = opened(in_row_);
  EXPECT_EQ(breaker.state(Instant(4999ms)), State::open);
  EXPECT_EQ(breaker.state(Instant(5s)), State::half_open);
  EXPECT_TRUE(call(breaker, Outcome::failure, Instant(5s)));
  EXPECT_EQ(breaker.state(Instant(9s)), State::open);
  EXPECT_TRUE(call(breaker, Outcome::success, Instant(10s)));
  EXPECT_EQ(breaker.state(Instant(10s)), State::half_open);
  EXPECT_TRUE(call(breaker, Outcome::success, Instant(10s)));
  EXPECT_EQ(breaker.state(Instant(10s)), State::closed);
}

TEST_F(BreakerTest, HalfOpenItLetsABoundedNumberThrough) {
  CircuitBreaker breaker = opened(in_row_);
  const auto one = breaker.try_begin(Instant(5s));
  const auto two = breaker.try_begin(Instant(5s));
  ASSERT_TRUE(one && two);
  EXPECT_FALSE(breaker.try_begin(Instant(5s)));
  breaker.finish(*one, Outcome::nothing, Instant(5s));
  EXPECT_TRUE(breaker.try_begin(Instant(5s)));
  EXPECT_FALSE(breaker.try_begin(Instant(5s)));
}

// Lost probes must not keep the breaker shut for good.
TEST_F(BreakerTest, ProbesThatSayNothingAreReplaced) {
  CircuitBreaker breaker = opened(in_row_);
  const auto lost = breaker.try_begin(Instant(5s));
  ASSERT_TRUE(lost && breaker.try_begin(Instant(5s)));
  EXPECT_FALSE(breaker.try_begin(Instant(9s)));
  const auto one = breaker.try_begin(Instant(10s));
  const auto two = breaker.try_begin(Instant(10s));
  ASSERT_TRUE(one && two);
  breaker.finish(*lost, Outcome::failure, Instant(11s));  // a call of an earlier era
  EXPECT_EQ(breaker.state(Instant(11s)), State::half_open);
  breaker.finish(*one, Outcome::success, Instant(11s));
  breaker.finish(*two, Outcome::success, Instant(11s));
  EXPECT_EQ(breaker.state(Instant(11s)), State::closed);
}

TEST_F(BreakerTest, ACallThatBeganBeforeItOpenedNeitherClosesNorOpensIt) {
  CircuitBreaker breaker(in_row_);
  const auto slow = breaker.try_begin(Instant());
  const auto slower = breaker.try_begin(Instant());
  ASSERT_TRUE(slow && slower);
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(call(breaker, Outcome::failure, Instant()));
  }
  breaker.finish(*slow, Outcome::success, Instant(1s));
  EXPECT_EQ(breaker.state(Instant(1s)), State::open);
  breaker.finish(*slower, Outcome::failure, Instant(6s));
  EXPECT_EQ(breaker.state(Instant(6s)), State::half_open);
}

}  // namespace
}  // namespace weft::serve
