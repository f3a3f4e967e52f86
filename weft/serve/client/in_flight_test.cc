// SPDX-License-Identifier: MIT
#include "weft/serve/client/in_flight.h"

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "weft/rt/task/test_tasks.h"
#include <gtest/gtest.h>

namespace weft::serve {
namespace {

using namespace std::chrono_literals;

struct CallOutcome {
  bool over = false;
  Result<void> result;
  std::string body;
  Instant when;
  std::uint32_t number = 0;
};

rt::Task<void> wait_for(InFlight* in_flight, std::uint32_t key, Instant deadline, rt::test::HandTurned* time,
                        CallOutcome* outcome) {
  InFlight::Waiter waiter(deadline);
  const auto number = in_flight->add(waiter, key);
  if (!number) {
    outcome->result = number.error();
    outcome->over = true;
    co_return;
  }
  outcome->number = *number;
  co_await waiter;
  outcome->result = waiter.result();
  outcome->body = as_text(waiter.body().bytes());
  outcome->when = time->now();
  outcome->over = true;
}

// The test turns the clock.
class InFlightTest : public testing::Test {
 protected:
  InFlight& make(Matching matching, std::uint32_t max = 16) {
    in_flight_ = std::make_unique<InFlight>(matching, max, counts_);
    return *in_flight_;
  }
  CallOutcome& ask(std::uint32_t key = 0, Instant deadline = kNever) {
    outcomes_.push_back(std::make_unique<CallOutcome>());
    time_.start(wait_for(in_flight_.get(), key, deadline, &time_, outcomes_.back().get()));
    return *outcomes_.back();
  }
  // Delivers a response. Returns true if a waiter got it.
  bool answer(std::uint32_t key, std::string_view body) {
    const auto match = in_flight_->match(key);
    if (match.waiter != nullptr) {
      match.waiter->answer(as_bytes(body));
    }
    time_.turn();
    return match.waiter != nullptr;
  }
  void TearDown() override {
    in_flight_->fail_all(Error(Errc::closed));
    time_.turn();
    EXPECT_EQ(in_flight_->size(), 0u);
    EXPECT_EQ(in_flight_->waiting(), 0u);
  }

  RequestCounts counts_;
  std::unique_ptr<InFlight> in_flight_;
  rt::test::HandTurned time_;
  std::vector<std::unique_ptr<CallOutcome>> outcomes_;
};

TEST_F(InFlightTest, InOrderEachGetsTheNextResponse) {
  make(Matching::in_order);
  const CallOutcome& first = ask();
  const CallOutcome& second = ask();
  EXPECT_TRUE(answer(0, "1"));
  EXPECT_EQ(first.body, "1");
  EXPECT_FALSE(second.over);
  EXPECT_TRUE(answer(0, "2"));
  EXPECT_EQ(second.body, "2");
  EXPECT_FALSE(answer(0, "3"));  // no request waits for it
  EXPECT_EQ(counts_.answered.value(), 2u);
  EXPECT_EQ(counts_.late.value(), 0u);
}

TEST_F(InFlightTest, KeysAreAnsweredApartFromEachOther) {
  make(Matching::in_order_of_key);
  const CallOutcome& a1 = ask(1);
  const CallOutcome& b1 = ask(2);
  const CallOutcome& a2 = ask(1);
  EXPECT_TRUE(answer(2, "b1"));
  EXPECT_TRUE(answer(1, "a1"));
  EXPECT_TRUE(answer(1, "a2"));
  EXPECT_FALSE(answer(1, "a3"));
  EXPECT_EQ(a1.body + b1.body + a2.body, "a1b1a2");
}

TEST_F(InFlightTest, NumbersAreAnsweredInAnyOrder) {
  make(Matching::by_number);
  const CallOutcome& first = ask();
  const CallOutcome& second = ask();
  EXPECT_NE(first.number, second.number);
  EXPECT_TRUE(answer(second.number, "2"));
  EXPECT_TRUE(answer(first.number, "1"));
  EXPECT_FALSE(answer(first.number, "again"));
  EXPECT_EQ(first.body + second.body, "12");
}

TEST_F(InFlightTest, ADeadlineIsNeverEarlyAndAtMostATickLate) {
  make(Matching::in_order);
  const Instant start = time_.now();
  std::vector<std::pair<const CallOutcome*, Instant>> asked;
  for (const Duration wait : {Duration(1ms), Duration(2ms), Duration(50ms), Duration(1s)}) {
    asked.emplace_back(&ask(0, start + wait), start + wait);
  }
  time_.pass(2s);
  for (const auto& [outcome, deadline] : asked) {
    EXPECT_EQ(outcome->result.error(), Errc::timed_out);
    EXPECT_GE(outcome->when, deadline);
    EXPECT_LE(outcome->when, deadline + 2 * time_.wheel().tick());
  }
  EXPECT_EQ(counts_.timed_out.value(), 4u);
  EXPECT_EQ(time_.wheel().size(), 0u);
}

TEST_F(InFlightTest, AResponseTakesTheTimerAway) {
  make(Matching::in_order);
  const CallOutcome& outcome = ask(0, time_.now() + 1s);
  EXPECT_TRUE(answer(0, "in time"));
  EXPECT_EQ(time_.wheel().size(), 0u);
  time_.pass(2s);
  EXPECT_EQ(outcome.body, "in time");
}

TEST_F(InFlightTest, ARequestThatIsGivenUpKeepsItsPlaceInTheOrder) {
  for (const Matching matching : {Matching::in_order, Matching::in_order_of_key}) {
    make(matching);
    ask(0, time_.now() + 1ms);
    const CallOutcome& patient = ask();
    time_.pass(10ms);
    EXPECT_EQ(in_flight_->size(), 2u);
    EXPECT_EQ(in_flight_->waiting(), 1u);
    EXPECT_FALSE(answer(0, "late"));
    EXPECT_TRUE(answer(0, "in time"));
    EXPECT_EQ(patient.body, "in time");
  }
  EXPECT_EQ(counts_.late.value(), 2u);
}

TEST_F(InFlightTest, ByNumberNoPlaceIsKeptAndALateResponseIsKnownAsOne) {
  make(Matching::by_number, 1);
  const CallOutcome& first = ask(0, time_.now() + 1ms);
  time_.pass(10ms);
  EXPECT_EQ(in_flight_->size(), 0u);
  const CallOutcome& second = ask();
  EXPECT_FALSE(answer(first.number, "late"));
  EXPECT_EQ(counts_.late.value(), 1u);
  EXPECT_FALSE(second.over);
  EXPECT_TRUE(answer(second.number, "in time"));
}

TEST_F(InFlightTest, TheWindowIsBoundedAndPlacesThatAreKeptCount) {
  make(Matching::in_order, 2);
  ask(0, time_.now() + 1ms);
  ask();
  EXPECT_EQ(ask().result.error(), Errc::resource_exhausted);
  time_.pass(10ms);
  EXPECT_EQ(ask().result.error(), Errc::resource_exhausted);
  EXPECT_FALSE(answer(0, "late"));
  EXPECT_FALSE(ask().over);
}

TEST_F(InFlightTest, ARequestThatWasNotSentLeavesNoPlace) {
  for (const Matching matching : {Matching::in_order, Matching::in_order_of_key, Matching::by_number}) {
    make(matching);
    const CallOutcome& first = ask(7);
    InFlight::Waiter unsent(kNever);
    ASSERT_TRUE(in_flight_->add(unsent, 7));
    in_flight_->take_back(unsent);
    const CallOutcome& second = ask(7);
    InFlight::Waiter alone(kNever);
    ASSERT_TRUE(in_flight_->add(alone, 8));
    in_flight_->take_back(alone);
    EXPECT_EQ(in_flight_->size(), 2u);
    EXPECT_TRUE(answer(matching == Matching::by_number ? first.number : 7, "1"));
    EXPECT_TRUE(answer(matching == Matching::by_number ? second.number : 7, "2"));
    EXPECT_EQ(first.body + second.body, "12");
  }
}

TEST_F(InFlightTest, AllFailTogetherAndNoWaiterIsForgotten) {
  for (const Matching matching : {Matching::in_order, Matching::in_order_of_key, Matching::by_number}) {
    make(matching);
    ask(1, time_.now() + 1ms);
    time_.pass(10ms);
    const CallOutcome& one = ask(1, time_.now() + 1s);
    const CallOutcome& two = ask(2);
    in_flight_->fail_all(Error(Errc::connection_closed));
    time_.turn();
    EXPECT_EQ(one.result.error(), Errc::connection_closed);
    EXPECT_EQ(two.result.error(), Errc::connection_closed);
    EXPECT_EQ(in_flight_->size(), 0u);
    const CallOutcome& next = ask(1);  // the lost request's place is not before it
    EXPECT_TRUE(answer(matching == Matching::by_number ? next.number : 1, "fresh"));
    EXPECT_EQ(next.body, "fresh");
  }
  EXPECT_EQ(counts_.lost.value(), 6u);
}

TEST_F(InFlightTest, ACancelledTaskResumesAtOnce) {
  make(Matching::in_order);
  rt::TaskScope scope(time_.runner());
  CallOutcome outcome;
  ASSERT_TRUE(scope.spawn(wait_for(in_flight_.get(), 0, time_.now() + 1s, &time_, &outcome)));
  scope.cancel();
  time_.turn();
  EXPECT_EQ(outcome.result.error(), rt::kCancelled);
  EXPECT_EQ(time_.wheel().size(), 0u);
  EXPECT_EQ(counts_.cancelled.value(), 1u);
  EXPECT_FALSE(answer(0, "late"));
}

rt::Task<void> ask_for_ever(InFlight* in_flight) {
  for (;;) {
    InFlight::Waiter waiter(kNever);
    const auto number = in_flight->add(waiter, 0);
    if (!number) {
      ADD_FAILURE() << number.error().message();
      co_return;
    }
    co_await waiter;
  }
}

TEST_F(InFlightTest, ACancelledTaskThatGoesOnAskingLeavesTheThreadToOthersAndEnds) {
  make(Matching::by_number);
  rt::TaskScope scope(time_.runner());
  ASSERT_TRUE(scope.spawn(ask_for_ever(in_flight_.get())));
  scope.cancel();
  for (int turn = 0; turn < 10; ++turn) {
    const auto before = counts_.cancelled.value();
    time_.runner().turn();
    EXPECT_LE(counts_.cancelled.value() - before, 2u);
    EXPECT_EQ(in_flight_->waiting(), 0u);
  }
  time_.turn();
  ASSERT_NE(scope.exception(), nullptr);
  EXPECT_THROW(std::rethrow_exception(scope.exception()), rt::CancelIgnored);
}

}  // namespace
}  // namespace weft::serve
