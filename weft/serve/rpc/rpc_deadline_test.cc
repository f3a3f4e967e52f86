// SPDX-License-Identifier: MIT
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "weft/rt/task/async_event.h"
#include "weft/rt/task/task_scope.h"
#include "weft/rt/task/task_time.h"
#include "weft/serve/rpc/test_rpc.h"
#include <gtest/gtest.h>

namespace weft::serve::rpc {
namespace {

using namespace std::chrono_literals;
using test::Add;
using test::call_into;
using test::for_at_most;
using test::open_rpc;
using test::RawCaller;
using test::Sum;
using test::Wait;

// The handler of Wait waits until the test opens its gate, or its coroutine is cancelled. One core.
class RpcDeadline : public test::RpcFixture {
 protected:
  void SetUp() override { start_runtime(1); }
  void TearDown() override {
    if (server_ != nullptr) {
      (void)stop_now();
    }
    RpcFixture::TearDown();
  }

  Methods waiting() {
    Methods methods;
    EXPECT_TRUE(methods.add<Wait>([this](const std::string& text) -> rt::Task<Result<std::string>> {
      ++begun_;
      begun_event_.pulse();
      const auto opened = co_await gate_.wait();
      ended_ += opened ? 0 : 1;
      ended_event_.pulse();
      if (!opened) {
        co_return opened.error();
      }
      co_return text;
    }));
    EXPECT_TRUE(methods.add<Add>([](const Sum& sum) { return sum.a + sum.b; }));
    return methods;
  }
  rt::Task<void> until_begun(int count) {
    while (begun_ < count) {
      const auto come = co_await begun_event_.wait();
      EXPECT_TRUE(come);
    }
  }
  rt::Task<void> until_cancelled(int count) {
    while (ended_ < count) {
      const auto come = co_await ended_event_.wait();
      EXPECT_TRUE(come);
    }
  }

  rt::AsyncEvent gate_;
  rt::AsyncEvent begun_event_;
  rt::AsyncEvent ended_event_;
  int begun_ = 0;
  int ended_ = 0;  // handlers that were cancelled
};

// --- cancellation ---

TEST_F(RpcDeadline, ACallThatItsTaskCancelsCancelsTheHandler) {
  const std::string endpoint = serve(waiting());
  Result<std::string> outcome;
  const auto call_and_cancel = [&]() -> rt::Task<void> {
    const auto client = open_rpc(endpoint);
    co_await test::await_connection(client.get());
    rt::TaskScope scope(*rt::Loop::current());
    const auto spawned = scope.spawn(call_into<Wait>(client.get(), "never", &outcome));
    EXPECT_TRUE(spawned);
    co_await until_begun(1);
    scope.cancel();
    const auto joined = co_await scope.join();
    EXPECT_TRUE(joined);
    co_await until_cancelled(1);
    const auto sum = co_await client->call<Add>({1, 2});
    EXPECT_EQ(sum, 3) << "the connection stays";
    EXPECT_EQ(client->connection().requests().cancelled.value(), 1u);
    EXPECT_EQ(client->connection().requests().late.value(), 0u) << "a cancelled call has no answer";
  };
  run(call_and_cancel());
  EXPECT_EQ(outcome.error(), Errc::cancelled);
  EXPECT_EQ(outcome.error().fate(), Fate::outcome_unknown);
  EXPECT_EQ(service_->counts().cancelled, 1u);
  EXPECT_EQ(service_->counts().answered, 1u);
}

TEST_F(RpcDeadline, ACallEndsAtItsDeadlineAndCancelsTheHandler) {
  const std::string endpoint = serve(waiting());
  const auto call_until_deadline = [&]() -> rt::Task<void> {
    const auto client = open_rpc(endpoint);
    co_await test::await_connection(client.get());
    const std::string text = "never";
    // On a busy machine the deadline may pass before the request is sent: then nothing began.
    while (ended_ == 0) {
      const auto outcome = co_await client->call<Wait>(text, for_at_most(20ms));
      EXPECT_EQ(outcome.error(), Errc::timed_out) << outcome.error().message();
      if (begun_ != 0) {
        co_await until_cancelled(1);
      }
    }
  };
  run(call_until_deadline());
  until_counted([this](const RpcCounts& counts) {
    return counts.cancelled + counts.timed_out == static_cast<std::uint64_t>(begun_);
  });
}

TEST_F(RpcDeadline, ACallWithoutATimeoutOfItsOwnHasThatOfItsClient) {
  const std::string endpoint = serve(waiting());
  const auto call_by_default = [&]() -> rt::Task<void> {
    ClientOptions options;
    options.timeout = 1ms;
    const auto client = open_rpc(endpoint, options);
    co_await test::await_connection(client.get());
    const std::string text = "never";
    const auto outcome = co_await client->call<Wait>(text);
    EXPECT_EQ(outcome.error(), Errc::timed_out);
    gate_.set();
    const auto unbounded = co_await client->call<Wait>(text, for_at_most(Duration(-1)));
    EXPECT_EQ(unbounded, text);
  };
  run(call_by_default());
}

TEST_F(RpcDeadline, ADeadlineInThePastSendsNothing) {
  const std::string endpoint = serve(waiting());
  const auto call_too_late = [&]() -> rt::Task<void> {
    const auto client = open_rpc(endpoint);
    co_await test::await_connection(client.get());
    const std::string text = "late";
    auto late = client->call<Wait>(text, for_at_most(Duration(0)));
    const Instant passed = sys::now();
    while (rt::Loop::current()->now() <= passed) {
      const auto slept = co_await rt::sleep(1ms);
      EXPECT_TRUE(slept);
    }
    const auto outcome = co_await std::move(late);
    EXPECT_EQ(outcome.error(), Errc::timed_out);
    EXPECT_EQ(outcome.error().fate(), Fate::not_sent);
  };
  run(call_too_late());
  EXPECT_EQ(begun_, 0);
}

// --- the server's own clock ---

TEST_F(RpcDeadline, TheServerEndsACallWhoseCallerNeverCancels) {
  RawCaller caller(serve(waiting()));
  caller.write(RawCaller::request(1, "wait", "never", 1000));
  const auto answer = caller.receive();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->id, 1u);
  EXPECT_EQ(answer->status, Status::timed_out);
  until_counted([](const RpcCounts& counts) { return counts.timed_out == 1; });
  caller.write(RawCaller::request(1, "calc.add", std::string(16, '\0')));
  EXPECT_EQ(caller.receive()->status, Status::ok) << "the id may come again";
}

// A handler that finishes nevertheless has its response sent.
using Stubborn = Method<"stubborn", Empty, std::string>;
TEST_F(RpcDeadline, AHandlerMayAnswerAfterTheDeadline) {
  Methods methods;
  ASSERT_TRUE(methods.add<Stubborn>([]() -> rt::Task<std::string> {
    rt::AsyncEvent never;
    const auto waited = co_await never.wait();
    EXPECT_EQ(waited.error(), Errc::cancelled);
    co_return "nevertheless";
  }));
  RawCaller caller(serve(std::move(methods)));
  caller.write(RawCaller::request(1, "stubborn", "", 1000));
  EXPECT_EQ(caller.receive(), (RawCaller::Got{1, Status::ok, 0, "nevertheless"}));
}

TEST_F(RpcDeadline, TimesOfAnySizeAreTaken) {
  RawCaller caller(serve(waiting()));
  const std::string zeros(16, '\0');
  std::uint64_t id = 1;
  for (const std::uint64_t time :
       {std::uint64_t{0}, kTimeMax, kTimeMax + 1, ~std::uint64_t{0}, std::uint64_t{1} << 63U}) {
    caller.write(RawCaller::request(id, "calc.add", zeros, time));
    EXPECT_EQ(caller.receive()->id, id);
    caller.write(RawCaller::request(id + 1, "wait", "x", time) + RawCaller::cancel(id + 1));
    id += 2;
  }
  until_counted([](const RpcCounts& counts) { return counts.cancelled == 5; });
}

// --- a handler that calls on ---

using Left = Method<"left", Empty, std::string>;    // the time that the call has, and its trace
using Relay = Method<"relay", Empty, std::string>;  // calls Left
class RpcRelay : public RpcDeadline {};

TEST_F(RpcRelay, ACallWithinACallHasItsRestOfTimeAndItsTrace) {
  std::unique_ptr<Client> inner;
  Methods methods;
  ASSERT_TRUE(methods.add<Left>([](const Empty&, Call& call) {
    const Duration left = time_left(call.deadline(), sys::now());
    return std::to_string(std::chrono::duration_cast<std::chrono::seconds>(left).count()) + ' ' +
           call.trace().to_text();
  }));
  ASSERT_TRUE(methods.add<Relay>([&inner](const Empty&, Call& call) -> rt::Task<Result<std::string>> {
    CallOptions options = for_at_most(1h);
    options.within = &call;
    co_return co_await inner->call<Left>(Empty(), options);
  }));
  const std::string endpoint = serve(std::move(methods));
  const auto relay = [&]() -> rt::Task<void> {
    inner = open_rpc(endpoint);
    const auto outer = open_rpc(endpoint);
    co_await test::await_connection(inner.get());
    co_await test::await_connection(outer.get());
    const trace::TraceContext context({1, 2}, {3}, true, "vendor=of-more-than-15-bytes");
    CallOptions options = for_at_most(10min);
    options.trace = &context;
    const auto told = co_await outer->call<Relay>(Empty(), options);
    EXPECT_TRUE(told) << told.error().message();
    if (told) {
      const std::int64_t seconds = std::stoll(*told);
      EXPECT_LE(seconds, 600) << "not the hour of the inner call";
      EXPECT_GT(seconds, 0);
      EXPECT_EQ(told->substr(told->find(' ') + 1), context.to_text());
    }
    const auto untraced = co_await outer->call<Left>(Empty(), for_at_most(Duration(-1)));
    EXPECT_EQ(untraced, "0 ") << "no deadline, no trace";
    co_await test::end_client(inner.get());
    inner.reset();
  };
  run(relay());
}

// The caller's cancel also reaches the next server.
using RelayWait = Method<"relay.wait", Empty, std::string>;
TEST_F(RpcRelay, ACancelReachesTheCallsThatAHandlerMade) {
  std::unique_ptr<Client> inner;
  Methods methods = waiting();
  ASSERT_TRUE(methods.add<RelayWait>([&inner](const Empty&, Call& call) -> rt::Task<Result<std::string>> {
    CallOptions options;
    options.within = &call;
    const std::string text = "never";
    co_return co_await inner->call<Wait>(text, options);
  }));
  const std::string endpoint = serve(std::move(methods));
  Result<std::string> outcome;
  const auto relay = [&]() -> rt::Task<void> {
    inner = open_rpc(endpoint);
    const auto outer = open_rpc(endpoint);
    co_await test::await_connection(inner.get());
    co_await test::await_connection(outer.get());
    rt::TaskScope scope(*rt::Loop::current());
    const auto spawned = scope.spawn(call_into<RelayWait>(outer.get(), Empty(), &outcome));
    EXPECT_TRUE(spawned);
    co_await until_begun(1);
    scope.cancel();
    const auto joined = co_await scope.join();
    EXPECT_TRUE(joined);
    co_await until_cancelled(1);
    co_await test::end_client(inner.get());
    inner.reset();
  };
  run(relay());
  EXPECT_EQ(outcome.error(), Errc::cancelled);
  until_counted([](const RpcCounts& counts) { return counts.cancelled == 2; });
}

// --- bounds ---

TEST_F(RpcDeadline, FurtherCallsOfAConnectionAreBusyUntilOneHasEnded) {
  ServiceOptions limits;
  limits.calls_max = 2;
  const std::string endpoint = serve(waiting(), limits);
  std::vector<Result<std::string>> outcomes(2);
  const auto fill = [&]() -> rt::Task<void> {
    const auto client = open_rpc(endpoint);
    co_await test::await_connection(client.get());
    rt::TaskScope first(*rt::Loop::current());
    rt::TaskScope second(*rt::Loop::current());
    const auto spawned = first.spawn(call_into<Wait>(client.get(), "one", &outcomes[0]));
    const auto another = second.spawn(call_into<Wait>(client.get(), "two", &outcomes[1]));
    EXPECT_TRUE(spawned && another);
    co_await until_begun(2);
    const std::string text = "three";
    const auto refused = co_await client->call<Wait>(text);
    EXPECT_TRUE(is_busy(refused.error())) << refused.error().message();
    EXPECT_EQ(begun_, 2);
    const auto plain = co_await client->call<Add>({1, 2});
    EXPECT_EQ(plain, 3) << "a plain handler is never in flight";
    first.cancel();
    const auto joined = co_await first.join();
    EXPECT_TRUE(joined);
    co_await until_cancelled(1);
    gate_.set();
    const auto taken = co_await client->call<Wait>(text);
    EXPECT_EQ(taken, text);
    const auto ended = co_await second.join();
    EXPECT_TRUE(ended);
  };
  run(fill());
  EXPECT_EQ(outcomes[0].error(), Errc::cancelled);
  EXPECT_EQ(outcomes[1], "two");
  until_counted([](const RpcCounts& counts) { return counts.busy == 1 && counts.answered == 3; });
}

}  // namespace
}  // namespace weft::serve::rpc
