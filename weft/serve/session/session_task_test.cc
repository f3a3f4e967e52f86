// SPDX-License-Identifier: MIT
// Coroutines of sessions, in a real server.
#include "weft/serve/session/session_task.h"

#include <array>
#include <string>
#include <vector>

#include "weft/rt/exec/thread_pool.h"
#include "weft/rt/task/async_event.h"
#include "weft/rt/task/task_time.h"
#include "weft/rt/task/task_work.h"
#include "weft/serve/dispatch/dispatcher.h"
#include "weft/serve/server/test_client.h"
#include "weft/serve/session/shard.h"
#include <gtest/gtest.h>

namespace weft::serve {
namespace {

using test::Client;
using test::frame_of;
using test::HeaderSession;
using test::kLong;
using test::Signal;
using Frame = HeaderCodec::Frame;

constexpr Duration kForever = std::chrono::hours(1000);

rt::Task<> echo_when(rt::AsyncEvent& event, HeaderSession& session, const Frame& frame) {
  const auto waited = co_await event.wait();
  if (waited) {
    (void)session.send(frame.header, frame.body);
  }
}

// Progress by the coroutines of a test, on the one core.
struct Progress {
  rt::AsyncEvent proceed;
  Signal begun;
  Signal ended;
  std::vector<Error> outcomes;  // of their awaits
  int running = 0;
  int most = 0;
};

// Waits until it is cancelled.
rt::Task<> wait_for_the_end(Progress& shared, HeaderSession& session) {
  ++shared.running;
  shared.begun.give();
  const auto slept = co_await rt::sleep(kForever);
  shared.outcomes.push_back(slept.error());
  EXPECT_FALSE(session.is_open());
  EXPECT_TRUE(co_await rt::is_cancelled());
  EXPECT_EQ(session.send({1, 0}, {}).error(), Errc::closed);
  --shared.running;
  shared.ended.give();
}

class SessionTasks : public test::ServerTest {
 protected:
  void SetUp() override { start_runtime(1); }
  void TearDown() override {
    test::ServerTest::TearDown();
    EXPECT_EQ(shared_.running, 0) << "a coroutine hangs";
  }
  // Starts a listener whose frames go to the dispatcher.
  std::string listen_with_dispatcher(const ListenerOptions& options = {}) {
    script_.on_frame = [this](HeaderSession& session, const Frame& frame) { dispatcher_.dispatch(session, frame); };
    return listen(options);
  }
  void on_core(std::function<void()> function) {
    Signal done;
    ASSERT_TRUE(runtime_->post(0, [&] {
      function();
      done.give();
    }));
    ASSERT_TRUE(done.take());
  }

  Progress shared_;
  Dispatcher<HeaderSession> dispatcher_;
};

TEST_F(SessionTasks, AHandlerThatWaitsAnswersWithTheFrameThatItWasGiven) {
  ASSERT_TRUE(dispatcher_.on(7, [this](HeaderSession& session, const Frame& frame) -> rt::Task<> {
    return echo_when(shared_.proceed, session, frame);
  }));
  Client client(listen_with_dispatcher());
  // The first in the shared scratch block, the others in the session's own.
  for (const std::size_t size : {5u, 60'000u, 1'000'000u}) {
    const std::string body(size, static_cast<char>('a' + size % 7));
    client.send(7, body);
    on_core([this] { shared_.proceed.set(); });
    EXPECT_EQ(client.receive(), body);
    on_core([this] { shared_.proceed.reset(); });
  }
}

// The default: replies leave in the order of the requests, whatever each handler waits for.
TEST_F(SessionTasks, HandlersOfOneSessionDoNotInterleaveByDefault) {
  int next = 0;
  ASSERT_TRUE(dispatcher_.on(1, [&, this](HeaderSession& session, const Frame& frame) -> rt::Task<> {
    EXPECT_EQ(++shared_.running, 1);
    const int mine = next++;
    if (mine % 3 != 0) {
      (void)co_await rt::sleep(std::chrono::microseconds(100 * (mine % 5)));
    }
    (void)session.send(frame.header, frame.body);
    --shared_.running;
  }));
  ASSERT_TRUE(dispatcher_.on(2, [this](HeaderSession& session, const Frame& frame) {
    EXPECT_EQ(shared_.running, 0) << "a plain handler waits for its turn, too";
    (void)session.send(frame.header, frame.body);
  }));
  ListenerOptions options;
  options.limits.peer_left = PeerLeft::answer;
  Client client(listen_with_dispatcher(options));
  std::string frames;
  for (int i = 0; i < 100; ++i) {
    frames += frame_of(static_cast<std::uint32_t>(1 + i % 4 / 3), std::to_string(i));
  }
  client.write(frames);
  client.end_writing();
  EXPECT_EQ(client.read_to_end(), frames) << "also when the peer has ended its stream";
  EXPECT_GT(server_->counters().handler_pauses, 0u);
}

// The id of its frames is the request number.
struct NumberInId : HeaderCodec {
  using Correlation = RequestNumber<&FrameHeader::id>;
};
using NumberedSession = SessionOf<NumberInId>;
struct NumberedTaskService {
  Dispatcher<NumberedSession>* dispatcher;
  void on_frame(NumberedSession& session, const Frame& frame) { dispatcher->dispatch(session, frame); }
};

TEST_F(SessionTasks, AsManyHandlersRunAtATimeAsMayAndTheNextFramesWait) {
  Dispatcher<NumberedSession> dispatcher;
  ASSERT_TRUE(dispatcher.on(1, [this](NumberedSession& session, const Frame& frame) -> rt::Task<> {
    shared_.most = std::max(shared_.most, ++shared_.running);
    shared_.begun.give();
    (void)co_await shared_.proceed.wait();
    (void)session.send(frame.header, frame.body);
    --shared_.running;
  }));
  ASSERT_TRUE(dispatcher.on(
      2, [](NumberedSession& session, const Frame& frame) { return session.send(frame.header, frame.body); }));
  ListenerOptions options;
  options.limits.handlers_max = 3;
  make_server();
  const auto bound =
      server_->listen<NumberInId>("tcp://127.0.0.1:0", options, [&] { return NumberedTaskService{&dispatcher}; });
  ASSERT_TRUE(bound) << bound.error().message();
  Client client(*bound);
  client.send(2, "overtakes");
  for (int i = 0; i < 10; ++i) {
    client.send(1, std::to_string(i));
  }
  EXPECT_EQ(client.receive(), "overtakes");
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(shared_.begun.take());
  }
  on_core([this] { EXPECT_EQ(shared_.running, 3); });
  on_core([this] { shared_.proceed.set(); });
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(client.receive(), std::to_string(i));
  }
  EXPECT_EQ(shared_.most, 3);
  EXPECT_EQ(server_->counters().tasks_refused, 0u) << "the peer is slowed down, and nothing is refused";
  (void)stop_now();  // aborts the session, before the dispatcher ends
}

TEST_F(SessionTasks, TheFramesOfHandlersThatRunCountAsMemoryOfTheServer) {
  Shard* shard = nullptr;
  ASSERT_TRUE(dispatcher_.on(1, [&](HeaderSession& session, const Frame&) -> rt::Task<> {
    shard = &session.shard();
    shared_.begun.give();
    (void)co_await shared_.proceed.wait();
  }));
  ASSERT_TRUE(dispatcher_.on(2, test::echo));
  Client client(listen_with_dispatcher());
  client.send(1, std::string(500'000, 'x'));
  ASSERT_TRUE(shared_.begun.take());
  on_core([&] { EXPECT_GE(shard->budget().held(), 500'000u); });
  on_core([this] { shared_.proceed.set(); });
  client.send(2, "x");
  EXPECT_EQ(client.receive(), "x");
  on_core([&] { EXPECT_LT(shard->budget().held(), 100'000u); });
}

TEST_F(SessionTasks, AHandlerWhoseFrameExceedsTheMemoryIsRefusedAndIsNotOneTooMany) {
  ServerOptions options;
  options.memory_max = options.core_memory_max = 128 * 1024;
  make_server(options);
  Result<void> started;
  script_.on_frame = [&](HeaderSession& session, const Frame& frame) {
    const std::string body(200'000, 'x');
    const auto handle = [](const Frame&) -> rt::Task<> {
      ADD_FAILURE() << "a refused handler does not run";
      co_return;
    };
    const auto report = [](const Error&, bool, const Frame&) { ADD_FAILURE() << "a refused handler has no outcome"; };
    started = start_with_frame(session, Frame{frame.header, as_bytes(body)}, handle, report);
    EXPECT_FALSE(session.has_tasks());
    test::echo(session, frame);
  };
  Client client(listen());
  client.send(1, "x");
  EXPECT_EQ(client.receive(), "x");
  EXPECT_EQ(started.error(), Errc::resource_exhausted);
  EXPECT_EQ(server_->counters().tasks_refused, 0u) << "this counter is of handlers_max and tasks_max";
}

TEST_F(SessionTasks, AHandlerThatWaitsDoesNotDelayOtherSessions) {
  ASSERT_TRUE(dispatcher_.on(1, [this](HeaderSession& session, const Frame& frame) -> rt::Task<> {
    return echo_when(shared_.proceed, session, frame);
  }));
  ASSERT_TRUE(dispatcher_.on(2, test::echo));
  const std::string endpoint = listen_with_dispatcher();
  Client waits(endpoint);
  waits.send(1, "later");
  Client other(endpoint);
  for (int i = 0; i < 10; ++i) {
    other.send(2, "now");
    EXPECT_EQ(other.receive(), "now");
  }
  on_core([this] { shared_.proceed.set(); });
  EXPECT_EQ(waits.receive(), "later");
}

// A timer, a time limit, a call of another core, a task on that core, a thread pool.
TEST_F(SessionTasks, AHandlerMayAwaitWhateverATaskMay) {
  start_runtime(2);
  const auto pool = std::move(rt::ThreadPool::make_fixed(1)).value();
  const auto steps = [&](HeaderSession& session) -> rt::Task<Result<std::string>> {
    const unsigned here = session.id().core();
    EXPECT_TRUE(co_await rt::sleep(std::chrono::milliseconds(1)));
    const auto late = co_await rt::with_timeout(echo_when(shared_.proceed, session, {}), std::chrono::milliseconds(1));
    EXPECT_EQ(late.error(), Errc::timed_out);
    const auto other = co_await runtime_->call(1 - here, [] { return rt::Core::current()->index(); });
    const auto slept = co_await runtime_->call(
        1 - here, []() -> rt::Task<Result<void>> { co_return co_await rt::sleep(std::chrono::milliseconds(1)); });
    EXPECT_TRUE(slept);
    const auto worked = co_await rt::run_on(*pool, [] { return std::string("work"); });
    EXPECT_EQ(rt::Core::current()->index(), here);
    co_return worked.value_or("") + (other.value_or(here) != here ? " and more" : "");
  };
  ASSERT_TRUE(dispatcher_.on(1, [&](HeaderSession& session, const Frame& frame) -> rt::Task<Result<void>> {
    const Result<std::string> text = co_await steps(session);
    if (!text) {
      co_return text.error();
    }
    co_return session.send(frame.header, as_bytes(*text));
  }));
  Client client(listen_with_dispatcher());
  client.send(1, "");
  EXPECT_EQ(client.receive(), "work and more");
}

TEST_F(SessionTasks, AnErrorOrAnExceptionIsAnsweredWithAnErrorFrame) {
  ASSERT_TRUE(dispatcher_.on(1, [](HeaderSession&, const Frame&) -> rt::Task<Result<void>> {
    (void)co_await rt::yield();
    co_return Errc::invalid_state;
  }));
  ASSERT_TRUE(dispatcher_.on(2, [](HeaderSession&, const Frame&) -> rt::Task<> {
    (void)co_await rt::yield();
    throw std::runtime_error("secret");
  }));
  Client client(listen_with_dispatcher());
  for (const auto& [id, code] : {std::pair(1u, ErrorCode::refused), std::pair(2u, ErrorCode::handler_failed)}) {
    client.send(id, "");
    const auto body = client.receive();
    ASSERT_TRUE(body);
    EXPECT_EQ(parse_error_body(as_bytes(*body)).value().code, code);
  }
}

// --- the end of a session with coroutines ---

rt::Task<> throw_at_once() {
  throw 5;
  co_return;
}

// The ways in which a session may end.
struct Ending {
  const char* name;
  void (*end)(HeaderSession& session);
  CloseReason reason;
};
class EveryEnding : public SessionTasks, public testing::WithParamInterface<Ending> {};

TEST_P(EveryEnding, CancelsItsCoroutinesAndWaitsForThemBeforeOnClose) {
  watch_close();
  script_.on_close = [this, watched = script_.on_close](HeaderSession& session, const Error& why) {
    EXPECT_EQ(shared_.running, 0) << "nothing comes after on_close()";
    EXPECT_EQ(session.spawn(wait_for_the_end(shared_, session)).error(), Errc::closed);
    watched(session, why);
  };
  ASSERT_TRUE(dispatcher_.on(1, [&](HeaderSession& session, const Frame&) -> rt::Task<> {
    for (int i = 0; i < 3; ++i) {
      EXPECT_TRUE(session.spawn(wait_for_the_end(shared_, session)));
    }
    GetParam().end(session);
    co_await wait_for_the_end(shared_, session);
  }));
  Client client(listen_with_dispatcher());
  client.send(1, "");
  ASSERT_TRUE(closed_.take());
  EXPECT_EQ(reason_.load(), GetParam().reason);
  EXPECT_EQ(shared_.outcomes.size(), 4u);
  for (const Error& outcome : shared_.outcomes) {
    EXPECT_EQ(outcome, Errc::cancelled);
  }
  on_core([] {});
  EXPECT_EQ(server_->sessions(), 0u);
}

INSTANTIATE_TEST_SUITE_P(
    SessionTasks, EveryEnding,
    testing::Values(Ending{"Close", [](HeaderSession& session) { session.close(); }, CloseReason::service},
                    Ending{"Abort", [](HeaderSession& session) { session.abort(); }, CloseReason::service},
                    Ending{"Throw", [](HeaderSession& session) { EXPECT_TRUE(session.spawn(throw_at_once())); },
                           CloseReason::service_failed}),
    [](const auto& ending) { return std::string(ending.param.name); });

TEST_F(SessionTasks, APeerThatDisappearsCancelsItsHandler) {
  watch_close();
  ASSERT_TRUE(dispatcher_.on(1, [this](HeaderSession& session, const Frame&) -> rt::Task<> {
    Result<void> slept;
    while (slept) {  // the kernel takes a write or two for a peer that is gone
      (void)session.send({1, 0}, as_bytes(std::string_view("what nobody reads any more")));
      slept = co_await rt::sleep(std::chrono::milliseconds(1));
    }
    EXPECT_FALSE(session.is_open());
    shared_.ended.give();
  }));
  ListenerOptions options;
  options.limits.peer_left = PeerLeft::answer;  // so that a write finds out
  auto client = std::make_unique<Client>(listen_with_dispatcher(options));
  client->send(1, "");
  EXPECT_TRUE(client->receive());
  client.reset();
  EXPECT_TRUE(shared_.ended.take());
  EXPECT_TRUE(closed_.take());
  EXPECT_EQ(closed_for(CloseReason::peer_failed), 1u);
}

// An await that cannot be cancelled: a thread works on the coroutine's variables.
TEST_F(SessionTasks, ThePlaceOfASessionIsNotUsedAgainBeforeItsCoroutinesAreOver) {
  const auto pool = std::move(rt::ThreadPool::make_fixed(1)).value();
  Signal leave;
  watch_close();
  SessionId old;
  ASSERT_TRUE(dispatcher_.on(1, [&](HeaderSession& session, const Frame&) -> rt::Task<> {
    old = session.id();
    session.abort();
    int result = 0;
    const auto worked = co_await rt::run_on(*pool, [&] {
      shared_.begun.give();
      EXPECT_TRUE(leave.take());
      result = 1;
    });
    EXPECT_EQ(worked.error(), Errc::cancelled) << "it is cancelled already, so the work does not begin";
  }));
  ASSERT_TRUE(dispatcher_.on(2, [&](HeaderSession& session, const Frame&) -> rt::Task<> {
    old = session.id();
    ++shared_.running;
    int result = 0;
    const auto worked = co_await rt::run_on(*pool, [&] {
      shared_.begun.give();
      EXPECT_TRUE(leave.take());
      result = 1;
    });
    EXPECT_TRUE(worked);
    EXPECT_EQ(result, 1);
    EXPECT_EQ(session.id(), old) << "it is still there";
    --shared_.running;
  }));
  ASSERT_TRUE(dispatcher_.on(3, test::echo));
  ServerOptions bounds;
  bounds.sessions_max = 2;
  make_server(bounds);
  const std::string endpoint = listen_with_dispatcher();
  Client first(endpoint);
  first.send(1, "");
  ASSERT_TRUE(closed_.take());
  Client second(endpoint);
  second.send(2, "");
  ASSERT_TRUE(shared_.begun.take());
  const SessionId waiting = old;
  on_core([&] { ASSERT_TRUE(server_->post_to(waiting, [](Session& session) { session.abort(); })); });
  EXPECT_EQ(second.read_to_end(), "") << "its peer sees the end at once";
  EXPECT_EQ(server_->sessions(), 1u) << "and it counts";
  on_core(
      [&] { EXPECT_TRUE(server_->post_to(waiting, [](Session&) { ADD_FAILURE() << "an id of what has ended"; })); });
  SessionId next;
  ASSERT_TRUE(dispatcher_.on(4, [&](HeaderSession& session, const Frame& frame) {
    next = session.id();
    test::echo(session, frame);
  }));
  Client third(endpoint);
  third.send(4, "x");
  EXPECT_EQ(third.receive(), "x");
  EXPECT_NE(next.slot().slot(), waiting.slot().slot());
  Client fourth(endpoint);
  EXPECT_EQ(fourth.read_to_end(), "") << "there is no room for more";
  leave.give();
  ASSERT_TRUE(closed_.take());
  on_core([this] { EXPECT_EQ(server_->sessions(), 1u); });
}

TEST_F(SessionTasks, CoroutinesAboveTheBoundAreRefusedAndCounted) {
  ListenerOptions options;
  options.limits.tasks_max = 2;
  std::vector<Result<void>> results;
  ASSERT_TRUE(dispatcher_.on(1, [&](HeaderSession& session, const Frame& frame) {
    for (int i = 0; i < 3; ++i) {
      results.push_back(session.spawn(wait_for_the_end(shared_, session)));
    }
    results.push_back(session.spawn(rt::Task<>()));
    test::echo(session, frame);
  }));
  Client client(listen_with_dispatcher(options));
  client.send(1, "x");
  EXPECT_EQ(client.receive(), "x") << "they owe nothing, and keep no frame";
  ASSERT_EQ(results.size(), 4u);
  EXPECT_TRUE(results[0] && results[1]);
  EXPECT_EQ(results[2].error(), Errc::resource_exhausted);
  EXPECT_EQ(results[3].error(), Errc::invalid_argument);
  EXPECT_EQ(server_->counters().tasks_refused, 1u);
}

TEST_F(SessionTasks, AnExceptionOfASpawnedCoroutineEndsItsSessionAlone) {
  watch_close();
  ASSERT_TRUE(dispatcher_.on(1, [](HeaderSession& session, const Frame&) {
    const auto fail = []() -> rt::Task<> {
      (void)co_await rt::yield();
      throw 5;
    };
    EXPECT_TRUE(session.spawn(fail()));
  }));
  ASSERT_TRUE(dispatcher_.on(2, test::echo));
  const std::string endpoint = listen_with_dispatcher();
  Client other(endpoint);
  Client client(endpoint);
  client.send(1, "");
  ASSERT_TRUE(closed_.take());
  EXPECT_EQ(reason_.load(), CloseReason::service_failed);
  other.send(2, "x");
  EXPECT_EQ(other.receive(), "x");
}

// A graceful stop must deliver the answers of handlers that still run.
TEST_F(SessionTasks, StopWaitsForHandlersAndDeliversTheirAnswersButNotForWhatAccompanies) {
  ASSERT_TRUE(dispatcher_.on(1, [this](HeaderSession& session, const Frame& frame) -> rt::Task<> {
    EXPECT_TRUE(session.spawn(wait_for_the_end(shared_, session)));
    (void)co_await shared_.proceed.wait();
    (void)session.send(frame.header, frame.body);
  }));
  Client client(listen_with_dispatcher());
  client.send(1, "the answer");
  ASSERT_TRUE(shared_.begun.take());
  server_->begin_stop(sys::now() + kLong);
  on_core([this] { shared_.proceed.set(); });
  EXPECT_EQ(client.receive(), "the answer");
  EXPECT_EQ(client.read_to_end(), "");
  EXPECT_TRUE(server_->stop(sys::now() + kLong));
  EXPECT_EQ(closed_for(CloseReason::server_stopped), 1u);
}

TEST_F(SessionTasks, AtTheDeadlineOfAStopHandlersAreCancelled) {
  ASSERT_TRUE(dispatcher_.on(
      1, [this](HeaderSession& session, const Frame&) -> rt::Task<> { return wait_for_the_end(shared_, session); }));
  Client client(listen_with_dispatcher());
  client.send(1, "");
  ASSERT_TRUE(shared_.begun.take());
  EXPECT_EQ(stop_now().error(), Errc::timed_out);
  EXPECT_EQ(shared_.running, 0);
}

TEST_F(SessionTasks, ARuntimeThatEndsFirstEndsThem) {
  ASSERT_TRUE(dispatcher_.on(1, [this](HeaderSession&, const Frame&) -> rt::Task<> {
    ++shared_.running;
    shared_.begun.give();
    EXPECT_EQ((co_await rt::sleep(kForever)).error(), Errc::cancelled);
    --shared_.running;
  }));
  Client client(listen_with_dispatcher());
  client.send(1, "");
  ASSERT_TRUE(shared_.begun.take());
  EXPECT_TRUE(runtime_->stop(sys::now() + kLong));
  EXPECT_EQ(shared_.running, 0);
}

// --- services whose on_frame() is a coroutine ---

struct SlowEcho {
  Progress* shared;

  void on_open(HeaderSession& session) {
    const auto greet = [](HeaderSession& to) -> rt::Task<> {
      (void)co_await rt::yield();
      (void)to.send({0, 0}, as_bytes("welcome"));
    };
    EXPECT_TRUE(session.spawn(greet(session)));
  }
  rt::Task<> on_frame(HeaderSession& session, const Frame& frame) {
    (void)co_await rt::sleep(std::chrono::milliseconds(1));
    if (frame.header.id == 2) {
      throw 5;
    }
    (void)session.send(frame.header, frame.body);
  }
  void on_close(HeaderSession& session, const Error&) {
    EXPECT_EQ(session.reason(), CloseReason::service_failed);
    shared->ended.give();
  }
};

TEST_F(SessionTasks, OnFrameMayBeACoroutine) {
  make_server();
  auto bound = server_->listen<HeaderCodec>("tcp://127.0.0.1:0", {}, [this] { return SlowEcho{&shared_}; });
  Client client(bound.value());
  EXPECT_EQ(client.receive(), "welcome");
  const std::string frames = frame_of(1, "a") + frame_of(1, "b") + frame_of(1, std::string(1000, 'c'));
  client.write(frames);
  EXPECT_EQ(client.read(frames.size()), frames);
  client.send(2, "");
  EXPECT_TRUE(shared_.ended.take());
}

}  // namespace
}  // namespace weft::serve
