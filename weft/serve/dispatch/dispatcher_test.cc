// SPDX-License-Identifier: MIT
#include "weft/serve/dispatch/dispatcher.h"

#include <memory>
#include <stdexcept>
#include <string>

#include "weft/rt/task/async_event.h"
#include "weft/rt/task/task_time.h"
#include "weft/serve/dispatch/test_caller.h"
#include <gtest/gtest.h>

namespace weft::serve {
namespace {

using test::bytes;
using test::Caller;
using Frame = HeaderCodec::Frame;

Frame frame_of(std::uint32_t id, std::uint8_t flags = 0, Bytes body = {}) { return {{id, flags}, body}; }

void echo(Caller& caller, const Frame& frame) { (void)caller.send(frame.header, frame.body); }

TEST(Dispatcher, AFrameReachesTheHandlerOfItsIdWithItsBody) {
  Dispatcher<Caller> dispatcher;
  int others = 0;
  ASSERT_TRUE(dispatcher.on(7, echo));
  ASSERT_TRUE(dispatcher.on(0xFFFF'FFFF, [&others](Caller&, const Frame&) { ++others; }));
  Caller caller;
  dispatcher.dispatch(caller, frame_of(7, kFlagCompressed, as_bytes("hello")));
  dispatcher.dispatch(caller, frame_of(0xFFFF'FFFF));
  ASSERT_EQ(caller.sent.size(), 1u);
  EXPECT_EQ(caller.sent[0], (test::Got{{7, kFlagCompressed}, bytes("hello")}));
  EXPECT_EQ(others, 1);
  EXPECT_EQ(dispatcher.counts().handled.value(), 2u);
}

TEST(Dispatcher, AHandlerIsAFunctionAClosureThatCannotBeCopiedOrAMethod) {
  struct Service {
    int calls = 0;
    void take(Caller& /*caller*/, const Frame& /*frame*/) { ++calls; }
  } service;
  int calls = 0;
  Dispatcher<Caller> dispatcher;
  ASSERT_TRUE(dispatcher.on(1, &Service::take, service));
  ASSERT_TRUE(dispatcher.on(2, [&calls, owned = std::make_unique<int>(3)](Caller&, const Frame&) { calls += *owned; }));
  Caller caller;
  dispatcher.dispatch(caller, frame_of(1));
  dispatcher.dispatch(caller, frame_of(2));
  EXPECT_EQ(service.calls, 1);
  EXPECT_EQ(calls, 3);
}

TEST(Dispatcher, TimedHandlersHaveAHistogramByTheirId) {
  Dispatcher<Caller> dispatcher;
  ASSERT_TRUE(dispatcher.on(1, echo));
  dispatcher.time_handlers();
  dispatcher.time_handlers();
  ASSERT_TRUE(dispatcher.on(7, echo));
  ASSERT_TRUE(dispatcher.on(8, [](Caller&, const Frame&) -> Result<void> { throw std::runtime_error("8"); }));
  ASSERT_TRUE(dispatcher.on(9, echo));
  ASSERT_TRUE(dispatcher.on_unknown(echo));
  EXPECT_FALSE(dispatcher.on(7, echo));
  Caller caller;
  for (const std::uint32_t id : {1U, 7U, 7U, 8U, 99U}) {
    dispatcher.dispatch(caller, frame_of(id));
  }
  sync::DurationReadings readings;
  dispatcher.duration_source()("games", readings);
  std::string found;
  for (const sync::DurationReading& reading : readings) {
    EXPECT_EQ(reading.labels[0], (CounterLabel{"dispatcher", "games"}));
    found += reading.labels[1].value + "=" + std::to_string(reading.values.total()) + " ";
  }
  EXPECT_EQ(found, "7=2 8=1 unknown=1 ");
  EXPECT_EQ(dispatcher.counts().handled.value(), 4u);
}

// The published dispatcher silently overwrites the first handler.
TEST(Dispatcher, ASecondHandlerForAnIdIsRefusedAndTheFirstOneStays) {
  Dispatcher<Caller> dispatcher;
  int first = 0;
  ASSERT_TRUE(dispatcher.on(1, [&first](Caller&, const Frame&) { ++first; }));
  EXPECT_EQ(dispatcher.on(1, echo).error(), Errc::invalid_state);
  ASSERT_TRUE(dispatcher.on(70'000, echo));
  EXPECT_EQ(dispatcher.on(70'000, echo).error(), Errc::invalid_state);
  ASSERT_TRUE(dispatcher.on_unknown(echo));
  EXPECT_EQ(dispatcher.on_unknown(echo).error(), Errc::invalid_state);
  Caller caller;
  dispatcher.dispatch(caller, frame_of(1));
  EXPECT_EQ(first, 1);
  EXPECT_EQ(dispatcher.size(), 2u);
}

TEST(Dispatcher, AnUnknownIdIsAnsweredWithAnErrorFrameOfThatId) {
  Dispatcher<Caller> dispatcher;
  Caller caller;
  dispatcher.dispatch(caller, frame_of(99));
  EXPECT_EQ(caller.only_error().code, ErrorCode::unknown_message);
  EXPECT_EQ(caller.sent[0].header.id, 99u);
  EXPECT_EQ(dispatcher.counts().unknown.value(), 1u);
}

TEST(Dispatcher, TheHandlerForUnknownIdsTakesThem) {
  Dispatcher<Caller> dispatcher;
  ASSERT_TRUE(dispatcher.on_unknown(echo));
  Caller caller;
  dispatcher.dispatch(caller, frame_of(99, 0, as_bytes("x")));
  EXPECT_EQ(caller.sent[0].body, bytes("x"));
  EXPECT_EQ(dispatcher.counts().unknown.value(), 0u);
  EXPECT_EQ(dispatcher.counts().handled.value(), 1u);
}

TEST(Dispatcher, AnExceptionIsContainedCountedAndToldToThePeerWithoutItsText) {
  Dispatcher<Caller> dispatcher;
  ASSERT_TRUE(dispatcher.on(1, [](Caller&, const Frame&) { throw std::runtime_error("the password is x"); }));
  ASSERT_TRUE(dispatcher.on(2, [](Caller&, const Frame&) { throw 5; }));
  Caller caller;
  dispatcher.dispatch(caller, frame_of(1));
  EXPECT_EQ(caller.only_error(), (ErrorResponse{ErrorCode::handler_failed, 0, "the handler failed"}));
  dispatcher.dispatch(caller, frame_of(2));
  EXPECT_EQ(caller.sent.size(), 2u);
  EXPECT_EQ(dispatcher.counts().failed.value(), 2u);
  EXPECT_EQ(dispatcher.counts().handled.value(), 0u);
}

TEST(Dispatcher, AnErrorThatAHandlerReturnsIsTheAnswer) {
  Dispatcher<Caller> dispatcher;
  ASSERT_TRUE(dispatcher.on(1, [](Caller&, const Frame&) -> Result<void> { return Errc::invalid_state; }));
  ASSERT_TRUE(dispatcher.on(2, [](Caller&, const Frame&) -> Result<void> { return {}; }));
  Caller caller;
  dispatcher.dispatch(caller, frame_of(2));
  EXPECT_TRUE(caller.sent.empty());
  dispatcher.dispatch(caller, frame_of(1));
  const auto expected = static_cast<std::uint16_t>(Errc::invalid_state);
  EXPECT_EQ(caller.only_error(), (ErrorResponse{ErrorCode::refused, expected, describe(Errc::invalid_state)}));
  EXPECT_EQ(dispatcher.counts().refused.value(), 1u);
}

TEST(Dispatcher, ErrorFramesReachOnlyTheirHandlerAndAreNeverAnswered) {
  Dispatcher<Caller> dispatcher;
  int taken = 0;
  ASSERT_TRUE(dispatcher.on(1, [&taken](Caller&, const Frame&) { ++taken; }));
  Caller caller;
  dispatcher.dispatch(caller, frame_of(1, kFlagError));
  dispatcher.dispatch(caller, frame_of(2, kFlagError));
  EXPECT_EQ(dispatcher.counts().errors.value(), 2u);
  int errors = 0;
  ASSERT_TRUE(dispatcher.on_error([&errors](Caller&, const Frame& frame) {
    ++errors;
    if (frame.header.id == 3) {
      throw std::runtime_error("again");
    }
  }));
  dispatcher.dispatch(caller, frame_of(1, kFlagError));
  dispatcher.dispatch(caller, frame_of(3, kFlagError));
  EXPECT_EQ(errors, 2);
  EXPECT_EQ(taken, 0);
  EXPECT_TRUE(caller.sent.empty());
  EXPECT_EQ(dispatcher.counts().errors.value(), 4u);
}

TEST(Dispatcher, AHeartbeatWithoutAHandlerIsCountedAndNotAnswered) {
  Dispatcher<Caller> dispatcher;
  Caller caller;
  dispatcher.dispatch(caller, frame_of(9, kFlagHeartbeat));
  EXPECT_TRUE(caller.sent.empty());
  EXPECT_EQ(dispatcher.counts().heartbeats.value(), 1u);
}

TEST(Dispatcher, AHandlerMayAddHandlersWhileItRuns) {
  Dispatcher<Caller> dispatcher;
  ASSERT_TRUE(dispatcher.on(1, [&dispatcher, name = std::string(100, 'n')](Caller& caller, const Frame&) {
    for (std::uint32_t id = 2; id < 5000; ++id) {
      (void)dispatcher.on(id, echo);
    }
    (void)caller.send({}, as_bytes(name));
  }));
  Caller caller;
  dispatcher.dispatch(caller, frame_of(1));
  dispatcher.dispatch(caller, frame_of(4999, 0, as_bytes("x")));
  EXPECT_EQ(caller.sent.size(), 2u);
  EXPECT_EQ(caller.sent[0].body.size(), 100u);
}

// --- coroutines ---

using test::TaskCaller;

TEST(DispatcherTask, AHandlerMayBeACoroutineWhoseFrameAndCapturesLiveUntilItHasEnded) {
  rt::test::HandTurned here;
  TaskCaller caller(here.runner());
  rt::AsyncEvent proceed;
  Dispatcher<TaskCaller> dispatcher;
  ASSERT_TRUE(dispatcher.on(
      1, [&proceed, name = std::string(100, 'n')](TaskCaller& to, const Frame& frame) -> rt::Task<Result<void>> {
        (void)co_await proceed.wait();
        (void)to.send(frame.header, frame.body);
        (void)to.send({2, 0}, as_bytes(name));
        co_return Result<void>();
      }));
  {
    test::Buffer body = bytes("the frame's body");
    dispatcher.dispatch(caller, frame_of(1, kFlagAuthCheck, body));
    std::fill(body.begin(), body.end(), std::uint8_t{0});
  }
  EXPECT_EQ(caller.tasks.size(), 1u);
  EXPECT_EQ(dispatcher.counts().handled.value(), 0u) << "not yet";
  proceed.set();
  here.turn();
  ASSERT_EQ(caller.sent.size(), 2u);
  EXPECT_EQ(caller.sent[0], (test::Got{{1, kFlagAuthCheck}, bytes("the frame's body")}));
  EXPECT_EQ(caller.sent[1].body, bytes(std::string(100, 'n')));
  EXPECT_EQ(caller.tasks.size(), 0u);
  EXPECT_EQ(dispatcher.counts().handled.value(), 1u);
}

TEST(DispatcherTask, ACoroutineIsTimedUntilItsEnd) {
  rt::test::HandTurned here;
  TaskCaller caller(here.runner());
  rt::AsyncEvent proceed;
  Dispatcher<TaskCaller> dispatcher;
  dispatcher.time_handlers();
  ASSERT_TRUE(dispatcher.on(1, [&proceed](TaskCaller&, const Frame&) -> rt::Task<> { (void)co_await proceed.wait(); }));
  const auto timed = [&dispatcher] {
    sync::DurationReadings readings;
    dispatcher.duration_source()("games", readings);
    return readings.empty() ? std::uint64_t{0} : readings[0].values.total();
  };
  dispatcher.dispatch(caller, frame_of(1));
  EXPECT_EQ(timed(), 0u) << "not yet";
  proceed.set();
  here.turn();
  EXPECT_EQ(timed(), 1u);
}

rt::Task<> echo_at_once(TaskCaller& caller, const Frame& frame) {
  (void)caller.send(frame.header, frame.body);
  co_return;
}

TEST(DispatcherTask, AHandlerThatNeverWaitsIsOverWhenDispatchReturns) {
  rt::test::HandTurned here;
  TaskCaller caller(here.runner());
  Dispatcher<TaskCaller> dispatcher;
  ASSERT_TRUE(dispatcher.on(1, echo_at_once));
  dispatcher.dispatch(caller, frame_of(1, 0, as_bytes("x")));
  EXPECT_EQ(caller.sent.size(), 1u);
  EXPECT_EQ(caller.tasks.size(), 0u);
  EXPECT_EQ(dispatcher.counts().handled.value(), 1u);
}

TEST(DispatcherTask, ItsErrorOrExceptionIsAnsweredWhetherTheHandlerWaitedOrNot) {
  rt::test::HandTurned here;
  Dispatcher<TaskCaller> dispatcher;
  const auto fail = [](TaskCaller&, const Frame& frame) -> rt::Task<Result<void>> {
    if ((frame.header.flags & kFlagAuthCheck) != 0) {
      (void)co_await rt::yield();
    }
    if (frame.header.id == 1) {
      throw std::runtime_error("the password is x");
    }
    co_return Errc::invalid_state;
  };
  ASSERT_TRUE(dispatcher.on(1, fail));
  ASSERT_TRUE(dispatcher.on(2, fail));
  for (const std::uint8_t flags : {std::uint8_t{0}, kFlagAuthCheck}) {
    TaskCaller threw(here.runner());
    dispatcher.dispatch(threw, frame_of(1, flags));
    here.turn();
    EXPECT_EQ(threw.only_error(), (ErrorResponse{ErrorCode::handler_failed, 0, "the handler failed"}));
    TaskCaller refused(here.runner());
    dispatcher.dispatch(refused, frame_of(2, flags));
    here.turn();
    EXPECT_EQ(refused.only_error().code, ErrorCode::refused);
    EXPECT_EQ(refused.sent.at(0).header.id, 2u);
  }
  EXPECT_EQ(dispatcher.counts().failed.value(), 2u);
  EXPECT_EQ(dispatcher.counts().refused.value(), 2u);
  EXPECT_EQ(dispatcher.counts().handled.value(), 0u);
}

TEST(DispatcherTask, AHandlerThatIsCancelledIsCountedAndNotAnswered) {
  rt::test::HandTurned here;
  TaskCaller caller(here.runner());
  Dispatcher<TaskCaller> dispatcher;
  ASSERT_TRUE(dispatcher.on(1, [](TaskCaller&, const Frame&) -> rt::Task<Result<void>> {
    co_return co_await rt::sleep(std::chrono::hours(1));
  }));
  dispatcher.dispatch(caller, frame_of(1));
  caller.tasks.cancel();
  here.turn();
  EXPECT_EQ(caller.tasks.size(), 0u);
  EXPECT_TRUE(caller.sent.empty());
  EXPECT_EQ(dispatcher.counts().cancelled.value(), 1u);
}

TEST(DispatcherTask, AHandlerThatCannotBeStartedIsAnswered) {
  rt::test::HandTurned here;
  TaskCaller caller(here.runner());
  caller.refusal = Error(Errc::resource_exhausted, "tasks");
  Dispatcher<TaskCaller> dispatcher;
  bool began = false;
  ASSERT_TRUE(dispatcher.on(1, [&began](TaskCaller&, const Frame&) -> rt::Task<> {
    began = true;
    co_return;
  }));
  ASSERT_TRUE(dispatcher.on(2, [](TaskCaller&, const Frame&) { return rt::Task<>(); }));
  dispatcher.dispatch(caller, frame_of(1));
  EXPECT_FALSE(began);
  EXPECT_EQ(caller.only_error().code, ErrorCode::refused);
  EXPECT_EQ(caller.only_error().text, "tasks");
  caller.sent.clear();
  dispatcher.dispatch(caller, frame_of(2));
  EXPECT_EQ(caller.only_error().code, ErrorCode::refused);
}

}  // namespace
}  // namespace weft::serve
