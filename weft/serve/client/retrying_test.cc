// SPDX-License-Identifier: MIT
#include "weft/serve/client/retrying.h"

#include <chrono>
#include <vector>

#include "weft/rt/task/test_tasks.h"
#include <gtest/gtest.h>

namespace weft::serve {
namespace {

using namespace std::chrono_literals;

constexpr Error kUnsent = Error(Errc::unreachable, "not connected").with_fate(Fate::not_sent);
constexpr Error kInDoubt = Error(Errc::connection_closed, "reset").with_fate(Fate::outcome_unknown);
constexpr Error kAnswered = Error(kServiceDomain, 7, "busy").with_fate(Fate::answered);

// Requests that end with these errors, one after the other, and then with a value.
struct Requests {
  std::vector<Error> errors;
  std::size_t made = 0;
  std::vector<Instant> times;
  rt::test::HandTurned* time = nullptr;

  static rt::Task<Result<int>> one(Requests* self) {
    self->times.push_back(self->time->now());
    const std::size_t i = self->made++;
    co_return i < self->errors.size() ? Result<int>(self->errors[i]) : Result<int>(42);
  }
};

class Retrying : public testing::Test {
 protected:
  static rt::Task<Result<int>> run(RetryPolicy policy, Requests* requests) {
    const auto answer = co_await retrying(policy, [requests] { return Requests::one(requests); });
    co_return answer;
  }
  Result<int> ask(const RetryPolicy& policy, std::vector<Error> errors) {
    requests_ = {std::move(errors), 0, {}, &time_};
    return *time_.run(run(policy, &requests_));
  }

  rt::test::HandTurned time_;
  Requests requests_;
};

TEST_F(Retrying, ARequestThatWasNotSentIsSentAgain) {
  EXPECT_EQ(ask({}, {kUnsent, kUnsent}), 42);
  EXPECT_EQ(requests_.made, 3u);
  EXPECT_EQ(ask({.attempts = 2}, {kUnsent, kUnsent}).error(), kUnsent);
  EXPECT_EQ(requests_.made, 2u);
}

TEST_F(Retrying, ARequestWhoseOutcomeIsUnknownIsSentAgainOnlyIfItMayBeRepeated) {
  const auto lost = ask({}, {kInDoubt});
  EXPECT_EQ(lost.error(), kInDoubt);
  EXPECT_EQ(lost.error().fate(), Fate::outcome_unknown);
  EXPECT_EQ(requests_.made, 1u);
  EXPECT_EQ(ask({.repeatable = true}, {kInDoubt}), 42);
  EXPECT_EQ(ask({}, {Error(Errc::timed_out)}).error(), Errc::timed_out) << "an error that does not say";
  EXPECT_EQ(requests_.made, 1u);
}

TEST_F(Retrying, AnAnswerEndsTheAttemptsUnlessThePolicyTakesItForAnInvitation) {
  EXPECT_EQ(ask({.repeatable = true}, {kAnswered}).error(), kAnswered);
  EXPECT_EQ(requests_.made, 1u);
  EXPECT_EQ(ask({.retry_answer = [](const Error& error) { return error.value() == 7; }}, {kAnswered}), 42);
}

TEST_F(Retrying, AMistakeOfTheCallerIsNotRepeated) {
  for (const Errc code :
       {Errc::invalid_argument, Errc::invalid_state, Errc::closed, Errc::cancelled, Errc::message_too_large}) {
    EXPECT_EQ(ask({.repeatable = true}, {Error(code).with_fate(Fate::not_sent)}).error(), code);
    EXPECT_EQ(requests_.made, 1u);
  }
}

TEST_F(Retrying, TheLastErrorSaysThatAnEarlierAttemptMayHaveBeenCarriedOut) {
  const auto lost = ask({.attempts = 2, .repeatable = true}, {kInDoubt, kUnsent});
  EXPECT_EQ(lost.error(), kUnsent);
  EXPECT_EQ(lost.error().fate(), Fate::outcome_unknown);
}

TEST_F(Retrying, WaitsLongerEachTimeAndNeverBeyondItsDeadline) {
  EXPECT_EQ(ask({.attempts = 4, .wait_first = 1s, .wait_max = 10s}, {kUnsent, kUnsent, kUnsent}), 42);
  ASSERT_EQ(requests_.times.size(), 4u);
  for (std::size_t i = 1; i < requests_.times.size(); ++i) {
    EXPECT_GE(requests_.times[i] - requests_.times[i - 1], 500ms);
  }
  EXPECT_EQ(ask({.wait_first = 1h, .wait_max = 1h, .deadline = time_.now() + 1s}, {kUnsent}).error(), kUnsent);
  EXPECT_EQ(requests_.made, 1u);
}

TEST_F(Retrying, ABudgetBoundsTheRetriesToAShareOfTheRequests) {
  RetryBudget budget(50, 2);
  const RetryPolicy policy{.attempts = 10, .budget = &budget};
  const std::vector<Error> always(10, kUnsent);
  std::vector<std::size_t> made;
  for (int i = 0; i < 5; ++i) {
    EXPECT_FALSE(ask(policy, always));
    made.push_back(requests_.made);
  }
  EXPECT_EQ(made, (std::vector<std::size_t>{3, 1, 2, 1, 2}));
}

TEST_F(Retrying, ACancelledOneEndsWhileItWaits) {
  requests_ = {{kUnsent}, 0, {}, &time_};
  Result<int> got;
  const auto keep = [](RetryPolicy policy, Requests* requests, Result<int>* into) -> rt::Task<void> {
    auto answer = co_await run(policy, requests);
    *into = answer;
  };
  time_.start(keep({.wait_first = 1h, .wait_max = 1h}, &requests_, &got));
  time_.turn();
  time_.scope().cancel();
  time_.turn();
  EXPECT_EQ(got.error(), Errc::cancelled);
  EXPECT_EQ(got.error().fate(), Fate::not_sent);
  EXPECT_EQ(requests_.made, 1u);
}

// An open breaker refuses without a request: after the breaker's time another attempt gets through.
TEST_F(Retrying, StandsAroundABreaker) {
  CircuitBreaker breaker({.failure_percent = 101, .failures_in_row = 1, .open_time = 1s, .probes = 1});
  requests_ = {{kUnsent}, 0, {}, &time_};
  const auto ask_guarded = [](CircuitBreaker* by, Requests* requests) -> rt::Task<Result<int>> {
    auto once = [by, requests] { return guarded(by, Requests::one(requests)); };
    const auto answer = co_await retrying({.attempts = 5, .wait_first = 2s, .wait_max = 2s}, once);
    co_return answer;
  };
  EXPECT_EQ(*time_.run(ask_guarded(&breaker, &requests_)), 42);
  EXPECT_EQ(requests_.made, 2u);
}

}  // namespace
}  // namespace weft::serve
