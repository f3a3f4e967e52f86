// SPDX-License-Identifier: MIT
#include "weft/rt/loop/interval_timers.h"

#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

namespace weft::rt {
namespace {

using std::chrono::milliseconds;

// The clock is a number: no test waits.
class IntervalTimersTest : public testing::Test {
 protected:
  int add(int interval_ms) { return timers_.add(now_, milliseconds(interval_ms), &remember, this); }
  std::vector<int> run_at(int ms) {
    ran_.clear();
    now_ = Instant(milliseconds(1000 + ms));
    timers_.run(now_);
    return ran_;
  }
  static void remember(int id, void* self) {
    auto& test = *static_cast<IntervalTimersTest*>(self);
    test.ran_.push_back(id);
    if (test.in_callback_) {
      test.in_callback_(id);
    }
  }
  using Ids = std::vector<int>;

  IntervalTimers timers_;
  Instant now_{milliseconds(1000)};
  std::vector<int> ran_;
  std::function<void(int)> in_callback_;
};

TEST_F(IntervalTimersTest, RepeatsUntilItIsCancelled) {
  const int id = add(10);
  EXPECT_EQ(id, 1);
  EXPECT_EQ(run_at(9), Ids{});
  EXPECT_EQ(run_at(10), Ids{id});
  EXPECT_EQ(run_at(19), Ids{});
  EXPECT_EQ(run_at(20), Ids{id});
  ASSERT_TRUE(timers_.cancel(id));
  EXPECT_EQ(run_at(100), Ids{});
  EXPECT_EQ(timers_.cancel(id).error(), Errc::invalid_argument);
}

TEST_F(IntervalTimersTest, RunsInTheOrderOfDueTimesAndThenOfArming) {
  const int late = add(30);
  const int first = add(10);
  const int second = add(10);
  EXPECT_EQ(run_at(30), (Ids{first, second, late}));
  ASSERT_TRUE(timers_.reset(now_, first));  // armed after `second`, for the same instant
  EXPECT_EQ(run_at(40), (Ids{second, first}));
}

TEST_F(IntervalTimersTest, ALateTimerRunsOnceAndCountsFromThere) {
  const int id = add(10);
  EXPECT_EQ(run_at(95), Ids{id});
  EXPECT_EQ(run_at(104), Ids{});
  EXPECT_EQ(run_at(105), Ids{id});
}

TEST_F(IntervalTimersTest, SaysHowLongTheNextOneTakes) {
  EXPECT_EQ(timers_.until_next(now_), std::nullopt);
  const int slow = add(50);
  const int quick = add(20);
  EXPECT_EQ(timers_.until_next(now_), Duration(milliseconds(20)));
  EXPECT_EQ(timers_.until_next(now_ + milliseconds(15)), Duration(milliseconds(5)));
  EXPECT_EQ(timers_.until_next(now_ + milliseconds(25)), Duration::zero());
  ASSERT_TRUE(timers_.cancel(quick));
  EXPECT_EQ(timers_.until_next(now_), Duration(milliseconds(50)));
  ASSERT_TRUE(timers_.cancel(slow));
  EXPECT_EQ(timers_.until_next(now_), std::nullopt);
}

TEST_F(IntervalTimersTest, ANewIntervalAndAResetStartAnew) {
  const int id = add(100);
  now_ += milliseconds(50);
  ASSERT_TRUE(timers_.set_interval(now_, id, milliseconds(20)));
  EXPECT_EQ(run_at(69), Ids{});
  ASSERT_TRUE(timers_.reset(now_, id));
  EXPECT_EQ(run_at(88), Ids{});
  EXPECT_EQ(run_at(89), Ids{id});
  EXPECT_EQ(timers_.reset(now_, 77).error(), Errc::invalid_argument);
  EXPECT_EQ(timers_.set_interval(now_, 77, milliseconds(1)).error(), Errc::invalid_argument);
}

TEST_F(IntervalTimersTest, ATimerWithoutAnIntervalRunsOnceARun) {
  const int id = add(0);
  EXPECT_EQ(run_at(0), Ids{id});
  EXPECT_EQ(run_at(0), Ids{id});
}

TEST_F(IntervalTimersTest, ACallbackMayCancelItselfAndOthers) {
  const int first = add(10);
  const int second = add(10);
  in_callback_ = [&](int) {
    EXPECT_TRUE(timers_.cancel(first));
    EXPECT_TRUE(timers_.cancel(second));
  };
  EXPECT_EQ(run_at(10), Ids{first});
  EXPECT_EQ(timers_.until_next(now_), std::nullopt);
}

TEST_F(IntervalTimersTest, ATimerThatACallbackAddsOrResetsWaitsForTheNextRun) {
  const int id = add(0);
  in_callback_ = [&](int ran) {
    if (ran == id) {
      add(0);
      EXPECT_TRUE(timers_.reset(now_, id));
      EXPECT_TRUE(timers_.running());
      timers_.run(now_);
    }
  };
  EXPECT_EQ(run_at(1), Ids{id});
  EXPECT_EQ(run_at(2).size(), 2u);
}

TEST_F(IntervalTimersTest, AnEndlessIntervalNeverComes) {
  (void)timers_.add(now_, Duration::max(), &remember, this);
  EXPECT_EQ(run_at(1'000'000), Ids{});
}

TEST_F(IntervalTimersTest, ACallbackThatThrowsEndsOnlyItsOwnCall) {
  const int first = add(10);
  const int second = add(10);
  in_callback_ = [&](int id) {
    if (id == first) {
      throw std::runtime_error("a callback");
    }
  };
  EXPECT_THROW(run_at(10), std::runtime_error);
  EXPECT_FALSE(timers_.running());
  EXPECT_EQ(run_at(10), Ids{second});
  EXPECT_THROW(run_at(20), std::runtime_error);
  EXPECT_EQ(run_at(20), Ids{second});
}

TEST_F(IntervalTimersTest, ATimerWithoutACallbackIsNone) {
  EXPECT_EQ(timers_.add(now_, Duration::zero(), nullptr, nullptr), 0);
  EXPECT_EQ(timers_.until_next(now_), std::nullopt);
}

TEST(IntervalTimers, ACallbackMayDestroyThemAndNoOtherIsCalled) {
  static int calls;
  calls = 0;
  auto timers = std::make_unique<IntervalTimers>();
  for (int i = 0; i < 3; ++i) {
    (void)timers->add(
        Instant(), Duration(1),
        [](int /*id*/, void* owner) {
          ++calls;
          static_cast<std::unique_ptr<IntervalTimers>*>(owner)->reset();
        },
        &timers);
  }
  timers->run(Instant(Duration(1)));
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace weft::rt
