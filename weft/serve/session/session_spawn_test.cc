// SPDX-License-Identifier: MIT
// Coroutines of sessions, in a real server, that go on when their session has ended.
#include <array>
#include <string>

#include "weft/rt/exec/thread_pool.h"
#include "weft/rt/task/task_time.h"
#include "weft/rt/task/task_work.h"
#include "weft/serve/dispatch/dispatcher.h"
#include "weft/serve/server/test_client.h"
#include <gtest/gtest.h>

namespace weft::serve {
namespace {

using test::Client;
using test::HeaderSession;
using test::kLong;
using test::Signal;
using Frame = HeaderCodec::Frame;

constexpr Duration kNoEnd = std::chrono::hours(1000);

// Shared by the coroutines of a test, on one core at a time.
struct Shared {
  Signal begun;
  int running = 0;
};

class IgnoredEnd : public test::ServerTest {
 protected:
  void SetUp() override { start_runtime(1); }
  void TearDown() override {
    test::ServerTest::TearDown();
    EXPECT_EQ(shared_.running, 0) << "a coroutine hangs";
  }
  // Starts a listener whose frames go to the dispatcher.
  std::string listen_with_dispatcher() {
    script_.on_frame = [this](HeaderSession& session, const Frame& frame) { dispatcher_.dispatch(session, frame); };
    return listen();
  }

  Shared shared_;
  Dispatcher<HeaderSession> dispatcher_;
};

// Never ends by itself: it does not check the result of sleep().
rt::Task<> ignore_the_end(Shared& shared, HeaderSession& session) {
  ++shared.running;
  shared.begun.give();
  struct Leaving {
    Shared* shared;
    ~Leaving() { --shared->running; }
  } leaving{&shared};
  for (;;) {
    (void)co_await rt::sleep(kNoEnd);
    (void)session.send({9, 0}, as_bytes("tick"));
  }
}

TEST_F(IgnoredEnd, ACoroutineThatIgnoresTheEndOfItsSessionLeavesItsCoreToTheOthersAndEnds) {
  ServerOptions options;
  std::string what;
  options.on_exception = [&](const HandlerException& thrown) { what = thrown.what; };
  make_server(options);
  watch_close();
  ASSERT_TRUE(dispatcher_.on(1, [this](HeaderSession& session, const Frame&) {
    EXPECT_TRUE(session.spawn(ignore_the_end(shared_, session)));
  }));
  ASSERT_TRUE(dispatcher_.on(2, test::echo));
  const std::string endpoint = listen_with_dispatcher();
  Client other(endpoint);
  Client client(endpoint);
  client.send(1, "");
  ASSERT_TRUE(shared_.begun.take());
  client.close();
  other.send(2, "x");
  EXPECT_EQ(other.receive(), "x");
  ASSERT_TRUE(closed_.take());
  other.close();
  EXPECT_TRUE(server_->stop(sys::now() + kLong));
  EXPECT_EQ(what, rt::CancelIgnored().what());
  EXPECT_EQ(shared_.running, 0);
  EXPECT_GT(runtime_->core(0).counts().cancels_ignored, 0u);
}

// Each goes on with awaits that wait for other threads or cores.
TEST_F(IgnoredEnd, WhateverACoroutineAwaitsAfterTheEndOfItsSessionLeavesItsCoreToTheOthers) {
  start_runtime(2);
  const auto pool = std::move(rt::ThreadPool::make_fixed(1)).value();
  auto never = pool->submit_after(kNoEnd, [] {});
  const auto await_one = [&](std::uint32_t id, unsigned other) -> rt::Task<> {
    switch (id) {
      case 1: (void)co_await rt::run_on(*pool, [] {}); break;
      case 2: (void)co_await runtime_->call(other, [] {}); break;
      case 3: (void)co_await runtime_->call(other, []() -> rt::Task<> { co_return; }); break;
      case 4: (void)co_await never; break;
      default: (void)co_await rt::is_cancelled(); break;
    }
  };
  const auto go_on = [&](HeaderSession& session, std::uint32_t id) -> rt::Task<> {
    ++shared_.running;
    shared_.begun.give();
    (void)co_await rt::sleep(kNoEnd);
    try {
      for (;;) {
        co_await await_one(id, 1 - session.id().core());
      }
    } catch (const rt::CancelIgnored&) {
      --shared_.running;
    }
  };
  constexpr std::array kIds = {1u, 2u, 3u, 4u, 5u};
  for (const std::uint32_t id : kIds) {
    ASSERT_TRUE(dispatcher_.on(id, [&](HeaderSession& session, const Frame& frame) {
      EXPECT_TRUE(session.spawn(go_on(session, frame.header.id)));
    }));
  }
  watch_close();
  const std::string endpoint = listen_with_dispatcher();
  for (const std::uint32_t id : kIds) {
    Client client(endpoint);
    client.send(id, "");
    ASSERT_TRUE(shared_.begun.take());
    client.close();
    ASSERT_TRUE(closed_.take()) << "await " << id;
  }
  EXPECT_TRUE(server_->stop(sys::now() + kLong));
  EXPECT_EQ(shared_.running, 0);
}

TEST_F(IgnoredEnd, ACoroutineThatIgnoresTheEndOfItsSessionDoesNotHoldUpAStop) {
  ASSERT_TRUE(dispatcher_.on(
      1, [this](HeaderSession& session, const Frame&) -> rt::Task<> { return ignore_the_end(shared_, session); }));
  Client client(listen_with_dispatcher());
  client.send(1, "");
  ASSERT_TRUE(shared_.begun.take());
  EXPECT_EQ(stop_now().error(), Errc::timed_out);
  EXPECT_EQ(shared_.running, 0);
}

}  // namespace
}  // namespace weft::serve
