// SPDX-License-Identifier: MIT
#include <memory>
#include <string>
#include <vector>

#include "weft/rt/core/test_runtime.h"
#include "weft/rt/task/async_event.h"
#include "weft/rt/task/task_scope.h"
#include "weft/serve/rpc/test_rpc.h"
#include <gtest/gtest.h>

namespace weft::serve::rpc {
namespace {

using test::call_into;
using test::open_rpc;
using test::Ping;
using test::RawCaller;
using test::Signal;
using test::Wait;

// Calls in flight when one of their ends ends. The handler of Wait waits on the session's core.
class RpcEnd : public test::RpcFixture {
 protected:
  Methods waiting() {
    Methods methods;
    EXPECT_TRUE(methods.add<Wait>([this](const std::string& text, Call& call) -> rt::Task<Result<std::string>> {
      rt::AsyncEvent gate;
      gate_ = &gate;
      session_ = call.session().id();
      begun_.give();
      const auto opened = co_await gate.wait();
      const bool in_time = opened.has_value();
      ended_.give();
      if (!in_time) {
        co_return opened.error();
      }
      co_return text;
    }));
    EXPECT_TRUE(methods.add<Ping>([](const Empty&, Call& call) { call.session().abort(); }));
    return methods;
  }
  void open_gate() {
    EXPECT_TRUE(server_->post_to(session_, [this](serve::Session&) { gate_->set(); }));
  }
  // Begins a call on core 0. It has begun when this returns.
  void begin_call(const std::string& endpoint) {
    future_ = std::make_unique<rt::Future<void>>(
        rt::spawn(runtime_->core(0).loop(), call_once(endpoint, &client_, &outcome_)));
    ASSERT_TRUE(begun_.take());
  }
  void await_outcome() {
    ASSERT_TRUE(future_->wait_until(sys::now() + test::kLong));
    const auto ended = future_->get();
    EXPECT_TRUE(ended) << ended.error().message();
  }
  static rt::Task<void> call_once(std::string endpoint, std::unique_ptr<Client>* client, Result<std::string>* outcome) {
    *client = open_rpc(endpoint);
    co_await test::await_connection(client->get());
    const std::string text = "done";
    *outcome = co_await (*client)->call<Wait>(text);
  }
  void TearDown() override {
    rt::test::on_core(*runtime_, 0, [this] { client_.reset(); });
    RpcFixture::TearDown();
  }

  Signal begun_;
  Signal ended_;
  rt::AsyncEvent* gate_ = nullptr;
  SessionId session_;
  std::unique_ptr<Client> client_;
  std::unique_ptr<rt::Future<void>> future_;
  Result<std::string> outcome_ = Error(Errc::would_block);
};

TEST_F(RpcEnd, AStopWaitsForTheAnswersThatAreOwed) {
  begin_call(serve(waiting()));
  server_->begin_stop(sys::now() + 2 * test::kLong);
  open_gate();
  await_outcome();
  EXPECT_EQ(outcome_, "done");
  EXPECT_TRUE(server_->stop(sys::now() + test::kLong));
  EXPECT_EQ(service_->counts().answered, 1u);
}

TEST_F(RpcEnd, AStopAtItsDeadlineCancelsTheHandlers) {
  begin_call(serve(waiting()));
  (void)stop_now();
  EXPECT_TRUE(ended_.take());
  await_outcome();
  EXPECT_FALSE(outcome_);
  EXPECT_EQ(outcome_.error().fate(), Fate::outcome_unknown) << outcome_.error().message();
  EXPECT_EQ(service_->counts().lost, 1u);
}

TEST_F(RpcEnd, AConnectionThatTheServerCutsEndsTheCallAndItsHandler) {
  begin_call(serve(waiting()));
  EXPECT_TRUE(server_->post_to(session_, [](serve::Session& session) { session.abort(); }));
  EXPECT_TRUE(ended_.take());
  await_outcome();
  EXPECT_FALSE(outcome_);
  EXPECT_EQ(outcome_.error().fate(), Fate::outcome_unknown) << outcome_.error().message();
  until_counted([](const RpcCounts& counts) { return counts.lost == 1; });
}

TEST_F(RpcEnd, AClientThatEndsEndsItsCallsAndTheirHandlers) {
  begin_call(serve(waiting()));
  rt::test::on_core(*runtime_, 0, [this] { client_.reset(); });
  await_outcome();
  EXPECT_EQ(outcome_.error(), Errc::closed) << outcome_.error().message();
  EXPECT_TRUE(ended_.take());
  until_counted([](const RpcCounts& counts) { return counts.lost == 1; });
}

TEST_F(RpcEnd, APeerThatVanishesEndsTheHandlersOfItsCalls) {
  RawCaller caller(serve(waiting()));
  caller.write(RawCaller::request(1, "wait", "never"));
  ASSERT_TRUE(begun_.take());
  caller.close();
  EXPECT_TRUE(ended_.take());
  until_counted([](const RpcCounts& counts) { return counts.lost == 1; });
}

rt::Task<void> call_the_aborting(std::string endpoint) {
  const auto client = open_rpc(endpoint);
  co_await test::await_connection(client.get());
  const auto outcome = co_await client->call<Ping>(Empty());
  EXPECT_EQ(outcome.error().fate(), Fate::outcome_unknown) << outcome.error().message();
}
TEST_F(RpcEnd, AHandlerThatAbortsItsSessionAnswersNothing) {
  run(call_the_aborting(serve(waiting())));
  until_counted([](const RpcCounts& counts) { return counts.lost == 1 && counts.answered == 0; });
}

TEST_F(RpcEnd, TheServerGoesOnAfterARestart) {
  const std::string endpoint = serve(waiting());
  begin_call(endpoint);
  (void)stop_now();
  await_outcome();
  ASSERT_TRUE(ended_.take());
  ASSERT_TRUE(server_->restart());
  RawCaller caller(endpoint);
  caller.write(RawCaller::request(1, "weft.methods"));
  EXPECT_EQ(caller.receive(), (RawCaller::Got{1, Status::ok, 0, "wait\nping\nweft.methods\n"}));
}

}  // namespace
}  // namespace weft::serve::rpc
