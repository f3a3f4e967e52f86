// SPDX-License-Identifier: MIT
#include "weft/serve/dispatcher.h"

#include <memory>
#include <stdexcept>
#include <string>

#include "weft/serve/test_caller.h"
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

// The published dispatcher overwrites the first one silently.
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

TEST(Dispatcher, AHeartbeatThatNobodyHandlesIsCountedAndNotAnswered) {
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

// What a caller that runs coroutines sees: the task as the handler made it.
struct Spawner : Caller {
  std::vector<std::unique_ptr<int>> spawned;
  void spawn(std::unique_ptr<int> task) { spawned.push_back(std::move(task)); }
};

TEST(Dispatcher, WhatIsNeitherVoidNorAResultIsSpawned) {
  Dispatcher<Spawner> dispatcher;
  ASSERT_TRUE(dispatcher.on(
      1, [](Spawner&, const Frame& frame) { return std::make_unique<int>(static_cast<int>(frame.body.size())); }));
  Spawner caller;
  dispatcher.dispatch(caller, frame_of(1, 0, as_bytes("abc")));
  ASSERT_EQ(caller.spawned.size(), 1u);
  EXPECT_EQ(*caller.spawned[0], 3);
  EXPECT_EQ(dispatcher.counts().handled.value(), 1u);
}

struct FullSpawner : Caller {
  Result<void> spawn(const std::unique_ptr<int>& /*task*/) { return Error(Errc::resource_exhausted, "tasks"); }
};

TEST(Dispatcher, ATaskThatCannotBeStartedIsAnswered) {
  Dispatcher<FullSpawner> dispatcher;
  ASSERT_TRUE(dispatcher.on(1, [](FullSpawner&, const Frame&) { return std::make_unique<int>(1); }));
  FullSpawner caller;
  dispatcher.dispatch(caller, frame_of(1));
  EXPECT_EQ(caller.only_error().code, ErrorCode::refused);
  EXPECT_EQ(caller.only_error().text, "tasks");
}

}  // namespace
}  // namespace weft::serve
