// SPDX-License-Identifier: MIT
#include "weft/serve/client/guarded.h"

#include <chrono>
#include <stdexcept>

#include "weft/rt/task/async_event.h"
#include "weft/rt/task/test_tasks.h"
#include <gtest/gtest.h>

namespace weft::serve {
namespace {

using namespace std::chrono_literals;
using State = CircuitBreaker::State;

// A request that ends when the test sets `answered`.
struct Call {
  rt::AsyncEvent answered;
  Result<int> answer = Error(Errc::timed_out);
  bool ran = false;
  Result<int> got = Error(Errc::would_block);

  static rt::Task<Result<int>> ask(Call* self) {
    self->ran = true;
    const Result<void> waited = co_await self->answered.wait();
    if (!waited) {
      co_return waited.error();
    }
    co_return self->answer;
  }
  static rt::Task<void> run(CircuitBreaker* breaker, Call* self) { self->got = co_await guarded(breaker, ask(self)); }
};

class GuardedTest : public testing::Test {
 protected:
  Result<int> call(const Result<int>& answer) {
    Call one;
    one.answer = answer;
    one.answered.set();
    time_.start(Call::run(&breaker_, &one));
    time_.turn();
    return one.got;
  }

  rt::test::HandTurned time_;
  CircuitBreaker breaker_{{.failure_percent = 101, .failures_in_row = 2, .open_time = 5s, .probes = 1}};
};

TEST_F(GuardedTest, FailuresOfTheOtherSideOpenItAndRequestsAreRefusedUnasked) {
  EXPECT_EQ(call(Error(Errc::timed_out)).error(), Errc::timed_out);
  EXPECT_EQ(call(Error(Errc::connection_closed)).error(), Errc::connection_closed);
  Call refused;
  time_.start(Call::run(&breaker_, &refused));
  time_.turn();
  EXPECT_EQ(refused.got.error(), Errc::unreachable);
  EXPECT_FALSE(refused.ran);
}

TEST_F(GuardedTest, MistakesOfTheCallerDoNotCount) {
  for (const Errc code : {Errc::resource_exhausted, Errc::cancelled, Errc::closed, Errc::invalid_argument}) {
    EXPECT_EQ(call(Error(code)).error(), code);
  }
  EXPECT_EQ(breaker_.state(time_.now()), State::closed);
}

TEST_F(GuardedTest, AnErrorFrameIsAFailureUnlessTheCallerErredOrTheJudgeSaysOtherwise) {
  EXPECT_EQ(call(frame_error(ErrorCode::unknown_message, "")).error(), Errc::other);
  EXPECT_EQ(call(frame_error(ErrorCode::invalid_body, "")).error(), Errc::other);
  EXPECT_EQ(call(Error(kServiceDomain, 7, "busy")).error(), Error(kServiceDomain, 7));
  EXPECT_EQ(breaker_.state(time_.now()), State::closed);
  EXPECT_EQ(call(frame_error(ErrorCode::handler_failed, "")).error(), Errc::other);
  EXPECT_EQ(breaker_.state(time_.now()), State::open);

  CircuitBreaker lenient({.failure_percent = 101, .failures_in_row = 1});
  const auto run = [](CircuitBreaker* breaker) -> rt::Task<Result<int>> {
    const auto judge = [](const Error& error) {
      return error.domain() == kServiceDomain ? CircuitBreaker::Outcome::success : outcome_of(error);
    };
    const auto refuse = []() -> rt::Task<Result<int>> { co_return Error(kServiceDomain, 7, "busy"); };
    const auto answer = co_await guarded(breaker, refuse(), nullptr, judge);
    co_return answer;
  };
  EXPECT_EQ(time_.run(run(&lenient))->error(), Error(kServiceDomain, 7));
  EXPECT_EQ(lenient.state(time_.now()), State::closed);
}

TEST_F(GuardedTest, HalfOpenOneGoesThroughAndItsAnswerClosesIt) {
  (void)call(Error(Errc::timed_out));
  (void)call(Error(Errc::timed_out));
  time_.pass(6s);
  Call probe;
  probe.answer = 7;
  Call other;
  time_.start(Call::run(&breaker_, &probe));
  time_.start(Call::run(&breaker_, &other));
  time_.turn();
  EXPECT_TRUE(probe.ran);
  EXPECT_FALSE(other.ran);
  EXPECT_EQ(other.got.error(), Errc::unreachable);
  probe.answered.set();
  time_.turn();
  EXPECT_EQ(probe.got, 7);
  EXPECT_EQ(breaker_.state(time_.now()), State::closed);
}

TEST_F(GuardedTest, AProbeThatIsCancelledMakesRoomForTheNext) {
  (void)call(Error(Errc::timed_out));
  (void)call(Error(Errc::timed_out));
  time_.pass(6s);
  {
    Call probe;
    rt::TaskScope scope(time_.runner());
    ASSERT_TRUE(scope.spawn(Call::run(&breaker_, &probe)));
    scope.cancel();
    time_.turn();
    EXPECT_EQ(probe.got.error(), rt::kCancelled);
  }
  EXPECT_EQ(call(8), 8);
  EXPECT_EQ(breaker_.state(time_.now()), State::closed);
}

TEST_F(GuardedTest, AProbeThatThrowsMakesRoomForTheNext) {
  (void)call(Error(Errc::timed_out));
  (void)call(Error(Errc::timed_out));
  time_.pass(6s);
  const auto throws = []() -> rt::Task<Result<int>> {
    throw std::runtime_error("probe");
    co_return 1;
  };
  rt::TaskScope scope(time_.runner());
  const auto run = [](CircuitBreaker* breaker, rt::Task<Result<int>> task) -> rt::Task<void> {
    (void)co_await guarded(breaker, std::move(task));
  };
  ASSERT_TRUE(scope.spawn(run(&breaker_, throws())));
  time_.turn();
  EXPECT_NE(scope.exception(), nullptr);
  EXPECT_EQ(call(9), 9);
}

}  // namespace
}  // namespace weft::serve
