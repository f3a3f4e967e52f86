// SPDX-License-Identifier: MIT
// Tasks and services that wait for room in the queue of a session whose peer reads late, or never.
#include "weft/serve/session/write_room.h"

#include <algorithm>
#include <atomic>
#include <coroutine>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "weft/base/endian.h"
#include "weft/rt/core/core_task.h"
#include "weft/rt/core/test_runtime.h"
#include "weft/rt/task/task_scope.h"
#include "weft/rt/task/task_time.h"
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

constexpr std::size_t kBudget = 256 * 1024;
constexpr std::size_t kBody = 8000;
constexpr std::uint32_t kFill = 1;    // the frames that fill the queue
constexpr std::uint32_t kWaited = 2;  // the frames of waits

std::string body_of(char letter) { return std::string(kBody, letter); }

std::uint32_t id_of(std::string_view frame) {
  return load_big_endian<std::uint32_t>(reinterpret_cast<const std::uint8_t*>(frame.data()) + 2);
}

// One core, and a client that reads only when the test reads.
class WriteRooms : public test::ServerTest {
 public:
  void SetUp() override { start_runtime(1); }
  static ListenerOptions small(SlowConsumer policy = SlowConsumer::disconnect) {
    ListenerOptions options;
    options.limits.write_budget = kBudget;
    options.limits.slow_consumer = policy;
    options.limits.close_timeout = kLong;  // the client may need that long to read
    return options;
  }
  // Fills the queue. The kernel may take all of it at the end of the turn.
  static void fill(HeaderSession& session) {
    const std::string body = body_of('f');
    while (session.has_room()) {
      ASSERT_TRUE(session.send({kFill, 0}, as_bytes(body)));
    }
  }
  std::string listen_with_dispatcher(const ListenerOptions& options) {
    script_.on_frame = [this](HeaderSession& session, const Frame& frame) { dispatcher_.dispatch(session, frame); };
    return listen(options);
  }
  void on_core(std::function<void()> function) { rt::test::on_core(*runtime_, 0, std::move(function)); }
  // Reads up to the frame with that letter. Returns the letters of the frames that waited, in order.
  static std::string read_letters(Client& client, char last, std::size_t count = 1) {
    std::string letters;
    while (static_cast<std::size_t>(std::count(letters.begin(), letters.end(), last)) < count) {
      const std::string frame = client.read(HeaderCodec::kHeaderSize + kBody);
      if (frame.size() != HeaderCodec::kHeaderSize + kBody) {
        ADD_FAILURE() << "the stream ended after " << letters;
        return letters;
      }
      if (id_of(frame) == kWaited) {
        letters += frame.back();
      }
    }
    return letters;
  }

  Signal waits_;
  Signal ended_;
  std::unique_ptr<rt::TaskScope> scope_;
  Dispatcher<HeaderSession> dispatcher_;
};

// The outcomes of some tasks, on the core.
struct RoomOutcomes {
  std::vector<Error> errors;
  Signal ended;
  int running = 0;
};

rt::Task<void> send_letter(HeaderSession& session, char letter, Instant deadline, RoomOutcomes* into) {
  ++into->running;
  const std::string body = body_of(letter);
  const Result<void> sent = co_await session.send_wait({kWaited, 0}, as_bytes(body), deadline);
  into->errors.push_back(sent.error());
  --into->running;
  into->ended.give();
}

// Keeps the queue full, and waits, until a wait fails.
rt::Task<void> send_until_it_fails(HeaderSession& session, char letter, RoomOutcomes* into, bool with_frame = true,
                                   Duration each = std::chrono::hours(1)) {
  ++into->running;
  const std::string body = body_of(letter);
  Result<void> waited;
  while (waited) {
    WriteRooms::fill(session);
    const Instant deadline = sys::now() + each;
    if (with_frame) {
      waited = co_await session.send_wait({kWaited, 0}, as_bytes(body), deadline);
    } else {
      waited = co_await session.writable(deadline);
    }
    into->errors.push_back(waited.error());
  }
  --into->running;
  into->ended.give();
}

class EveryPolicy : public WriteRooms, public testing::WithParamInterface<SlowConsumer> {};

TEST_P(EveryPolicy, AHandlerSendsFarMoreThanTheBudgetAndNoFrameIsLost) {
  constexpr std::uint32_t kFrames = 2000;
  Signal all_sent;
  std::size_t most = 0;
  ASSERT_TRUE(dispatcher_.on(1, [&](HeaderSession& session, const Frame&) -> rt::Task<Result<void>> {
    const std::string body = body_of('x');
    for (std::uint32_t i = 0; i < kFrames; ++i) {
      WEFT_CO_TRY(co_await session.send_wait({i, 0}, as_bytes(body)));
      most = std::max(most, session.queued());
    }
    all_sent.give();
    co_return Result<void>();
  }));
  Client client(listen_with_dispatcher(small(GetParam())));
  client.send(1, "");
  until([](const CounterValues& counters) { return counters.room_waits != 0; });
  for (std::uint32_t i = 0; i < kFrames; ++i) {
    const std::string frame = client.read(HeaderCodec::kHeaderSize + kBody);
    ASSERT_EQ(frame.size(), HeaderCodec::kHeaderSize + kBody);
    ASSERT_EQ(id_of(frame), i);
  }
  ASSERT_TRUE(all_sent.take());
  EXPECT_LE(most, kBudget + HeaderCodec::kHeaderSize + kBody);
  const CounterValues counters = server_->counters();
  EXPECT_EQ(counters.dropped_newest + counters.dropped_oldest + counters.conflated, 0u);
  EXPECT_EQ(counters.closed_total(), 0u);
}

INSTANTIATE_TEST_SUITE_P(WriteRooms, EveryPolicy,
                         testing::Values(SlowConsumer::disconnect, SlowConsumer::drop_newest, SlowConsumer::drop_oldest,
                                         SlowConsumer::conflate, SlowConsumer::conflate_state));

TEST_F(WriteRooms, TasksAreServedInTheOrderOfTheirComing) {
  RoomOutcomes outcomes;
  script_.on_frame = [&](HeaderSession& session, const Frame&) {
    fill(session);
    for (const char letter : {'a', 'b', 'c', 'd', 'e'}) {
      EXPECT_TRUE(session.spawn(send_letter(session, letter, kNever, &outcomes)));
    }
  };
  Client client(listen(small()));
  client.send(1, "");
  EXPECT_EQ(read_letters(client, 'e'), "abcde");
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(outcomes.ended.take());
  }
  EXPECT_EQ(server_->counters().room_waits, 5u);
  on_core([&] { EXPECT_EQ(outcomes.errors, std::vector<Error>(5)); });
}

TEST_F(WriteRooms, AWaitEndsAtItsDeadlineAndItsFrameIsNotSent) {
  RoomOutcomes outcomes;
  ASSERT_TRUE(dispatcher_.on(1, [&](HeaderSession& session, const Frame&) -> rt::Task<> {
    co_await send_until_it_fails(session, 'a', &outcomes, true, std::chrono::milliseconds(1));
    fill(session);
    co_await send_letter(session, 'b', Instant(), &outcomes);
    co_await send_letter(session, 'c', sys::now() + std::chrono::hours(1), &outcomes);
  }));
  Client client(listen_with_dispatcher(small()));
  client.send(1, "");
  ASSERT_TRUE(outcomes.ended.take());
  ASSERT_TRUE(outcomes.ended.take());
  const std::string letters = read_letters(client, 'c');
  ASSERT_TRUE(outcomes.ended.take());
  on_core([&] {
    const std::size_t sent = outcomes.errors.size() - 3;
    EXPECT_EQ(letters, std::string(sent, 'a') + "c");
    EXPECT_EQ(outcomes.errors[sent], Errc::timed_out);
    EXPECT_EQ(outcomes.errors[sent + 1], Errc::timed_out) << "a wait with that deadline does not begin";
    EXPECT_EQ(outcomes.errors[sent + 2], Errc::ok);
  });
}

rt::Task<void> cancel_one(HeaderSession& session, RoomOutcomes* cancelled) {
  const auto late =
      co_await rt::with_timeout(send_until_it_fails(session, 'a', cancelled), std::chrono::milliseconds(1));
  EXPECT_EQ(late.error(), Errc::timed_out);
}

TEST_F(WriteRooms, ACancelledTaskIsTakenOutOfTheLine) {
  RoomOutcomes cancelled;
  RoomOutcomes outcomes;
  script_.on_frame = [&](HeaderSession& session, const Frame&) {
    EXPECT_TRUE(session.spawn(cancel_one(session, &cancelled)));
    EXPECT_TRUE(session.spawn(send_letter(session, 'b', kNever, &outcomes)));
  };
  Client client(listen(small()));
  client.send(1, "");
  ASSERT_TRUE(cancelled.ended.take());
  const std::string letters = read_letters(client, 'b');
  ASSERT_TRUE(outcomes.ended.take());
  on_core([&] {
    EXPECT_EQ(cancelled.errors.back(), Errc::cancelled);
    EXPECT_LE(static_cast<std::size_t>(std::count(letters.begin(), letters.end(), 'a')), cancelled.errors.size() - 1);
    EXPECT_EQ(outcomes.errors, std::vector<Error>(1));
  });
}

// --- the end of a session ---

struct End {
  const char* name;
  void (*end)(HeaderSession& session);
};
class EveryEnd : public WriteRooms, public testing::WithParamInterface<End> {};

// No end of the session cancels a task of another owner.
TEST_P(EveryEnd, EndsTheWaitsOfTasksOfTheSessionAndOfOthers) {
  RoomOutcomes own;
  RoomOutcomes other;
  script_.on_frame = [&](HeaderSession& session, const Frame& frame) {
    if (frame.header.id != 1) {
      return GetParam().end(session);
    }
    ASSERT_TRUE(session.spawn(send_until_it_fails(session, 'a', &own)));
    ASSERT_TRUE(session.spawn(send_until_it_fails(session, 'a', &own, false)));
    ASSERT_TRUE(rt::spawn(*rt::Core::current(), send_until_it_fails(session, 'b', &other)));
    ASSERT_TRUE(rt::spawn(*rt::Core::current(), send_until_it_fails(session, 'b', &other, false)));
  };
  Client client(listen(small(SlowConsumer::drop_newest)));  // a session that reads on with a full queue
  client.send(1, "");
  until([](const CounterValues& counters) { return counters.room_waits >= 4; });
  client.send(2, "");
  for (RoomOutcomes* const outcomes : {&own, &other}) {
    ASSERT_TRUE(outcomes->ended.take());
    ASSERT_TRUE(outcomes->ended.take());
  }
  on_core([&] {
    EXPECT_TRUE(own.errors.back() == Errc::cancelled || own.errors.back() == Errc::closed);
    EXPECT_EQ(other.errors.back(), Errc::closed);
    EXPECT_EQ(own.running + other.running, 0);
  });
  client.close();
  (void)stop_now();
}

INSTANTIATE_TEST_SUITE_P(WriteRooms, EveryEnd,
                         testing::Values(End{"Close", [](HeaderSession& session) { session.close(); }},
                                         End{"Abort", [](HeaderSession& session) { session.abort(); }},
                                         End{"EndWriting", [](HeaderSession& session) { session.end_writing(); }},
                                         End{"Throw", [](HeaderSession&) { throw 5; }}),
                         [](const auto& ending) { return std::string(ending.param.name); });

TEST_F(WriteRooms, APeerThatDiesEndsTheWaits) {
  watch_close();
  RoomOutcomes own;
  RoomOutcomes other;
  script_.on_frame = [&](HeaderSession& session, const Frame&) {
    ASSERT_TRUE(session.spawn(send_until_it_fails(session, 'a', &own)));
    ASSERT_TRUE(rt::spawn(*rt::Core::current(), send_until_it_fails(session, 'b', &other)));
  };
  auto client = std::make_unique<Client>(listen(small()));
  client->send(1, "");
  EXPECT_EQ(client->read(100).size(), 100u);
  until([](const CounterValues& counters) { return counters.room_waits >= 2; });
  client.reset();  // with unread bytes: the connection is reset
  ASSERT_TRUE(own.ended.take());
  ASSERT_TRUE(other.ended.take());
  ASSERT_TRUE(closed_.take());
  EXPECT_EQ(reason_.load(), CloseReason::peer_failed);
  on_core([&] {  // `closed`: a write failed before a read did
    EXPECT_TRUE(own.errors.back() == Errc::cancelled || own.errors.back() == Errc::closed);
    EXPECT_EQ(other.errors.back(), Errc::closed);
  });
}

TEST_F(WriteRooms, AStopWaitsForAHandlerWhosePeerReads) {
  RoomOutcomes outcomes;
  ASSERT_TRUE(dispatcher_.on(1, [&](HeaderSession& session, const Frame&) -> rt::Task<> {
    co_await send_until_it_fails(session, 'a', &outcomes, true, std::chrono::milliseconds(1));
    co_await send_letter(session, 'z', kNever, &outcomes);
  }));
  Client client(listen_with_dispatcher(small()));
  client.send(1, "");
  ASSERT_TRUE(outcomes.ended.take());
  server_->begin_stop(sys::now() + kLong);
  EXPECT_EQ(read_letters(client, 'z').back(), 'z');
  EXPECT_EQ(client.read_to_end(), "");
  EXPECT_TRUE(server_->stop(sys::now() + kLong));
  EXPECT_EQ(outcomes.errors.back(), Errc::ok);
}

TEST_F(WriteRooms, AtTheDeadlineOfAStopTheWaitsAreCancelled) {
  RoomOutcomes outcomes;
  ASSERT_TRUE(dispatcher_.on(1, [&](HeaderSession& session, const Frame&) -> rt::Task<> {
    return send_until_it_fails(session, 'a', &outcomes);
  }));
  Client client(listen_with_dispatcher(small()));
  client.send(1, "");
  until([](const CounterValues& counters) { return counters.room_waits != 0; });
  EXPECT_EQ(stop_now().error(), Errc::timed_out);
  EXPECT_EQ(outcomes.errors.back(), Errc::cancelled);
  EXPECT_EQ(outcomes.running, 0);
}

// --- bounds and misuse ---

TEST_F(WriteRooms, MoreWaitsThanThereMayBeAreRefusedAndCounted) {
  RoomOutcomes outcomes;
  script_.on_frame = [&](HeaderSession& session, const Frame&) {
    fill(session);
    for (const char letter : {'a', 'b', 'c'}) {
      ASSERT_TRUE(session.spawn(send_letter(session, letter, kNever, &outcomes)));
    }
  };
  ListenerOptions options = small();
  options.limits.waits_max = 2;
  Client client(listen(options));
  client.send(1, "");
  EXPECT_EQ(read_letters(client, 'b'), "ab");
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(outcomes.ended.take());
  }
  on_core([&] { EXPECT_EQ(outcomes.errors.at(0), Errc::resource_exhausted) << "the third wait ends first"; });
  EXPECT_EQ(server_->counters().waits_refused, 1u);
  EXPECT_EQ(server_->counters().room_waits, 2u);
}

rt::Task<Result<void>> wait_elsewhere(HeaderSession* session) { co_return co_await session->writable(); }

rt::Task<void> misuse(HeaderSession& session, rt::Runtime* runtime, Signal* done) {
  auto room = session.writable();
  const Result<void> once = co_await room;
  EXPECT_TRUE(once);
  const Result<void> twice = co_await room;
  EXPECT_EQ(twice.error(), Errc::invalid_state);
  HeaderSession* const at = &session;
  const Result<void> elsewhere = co_await runtime->call(1 - session.id().core(), [at] { return wait_elsewhere(at); });
  EXPECT_EQ(elsewhere.error(), Errc::invalid_state);
  done->give();
}

TEST_F(WriteRooms, AnotherCoreAndASecondAwaitAreRefused) {
  start_runtime(2);
  Signal checked;
  script_.on_open = [&](HeaderSession& session) {
    ASSERT_TRUE(session.spawn(misuse(session, runtime_.get(), &checked)));
  };
  Client client(listen(small()));
  EXPECT_TRUE(checked.take());
}

// A coroutine whose frame the test destroys while it waits.
struct Dropped {
  struct promise_type {  // NOLINT(readability-identifier-naming): the language's name
    // The scope is the coroutine's first parameter.
    template <typename... Rest>
    explicit promise_type(rt::CancelScope& of, Rest&&... /*rest*/) noexcept : scope_of(of) {}
    Dropped get_return_object() noexcept { return {std::coroutine_handle<promise_type>::from_promise(*this)}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    void return_void() noexcept {}
    void unhandled_exception() noexcept { std::terminate(); }
    rt::CancelScope& scope() noexcept { return scope_of; }
    rt::CancelScope& scope_of;
  };
  std::coroutine_handle<promise_type> handle;
};
Dropped wait_dropped(rt::CancelScope& /*scope*/, HeaderSession& session, bool with_frame) {
  const std::string body = body_of('q');
  const Instant deadline = sys::now() + std::chrono::hours(1);
  if (with_frame) {
    (void)co_await session.send_wait({kWaited, 0}, as_bytes(body), deadline);
  } else {
    (void)co_await session.writable(deadline);
  }
  ADD_FAILURE() << "the frame is gone";
}

TEST_F(WriteRooms, AWaitThatIsDestroyedLeavesTheLine) {
  RoomOutcomes outcomes;
  script_.on_frame = [&](HeaderSession& session, const Frame&) {
    fill(session);
    rt::CancelScope scope;
    scope.open(rt::Core::current()->loop().tasks().root());
    const Dropped first = wait_dropped(scope, session, true);
    const Dropped second = wait_dropped(scope, session, false);
    first.handle.destroy();
    second.handle.destroy();
    ASSERT_TRUE(session.spawn(send_letter(session, 'r', kNever, &outcomes)));
  };
  ListenerOptions options = small();
  options.limits.waits_max = 2;
  Client client(listen(options));
  client.send(1, "");
  EXPECT_EQ(read_letters(client, 'r'), "r");
  ASSERT_TRUE(outcomes.ended.take());
}

// --- writable() ---

rt::Task<void> send_many(HeaderSession& session, char letter, int count, Signal* ended) {
  const std::string body = body_of(letter);
  for (int i = 0; i < count; ++i) {
    const Result<void> waited = co_await session.writable();
    EXPECT_TRUE(waited);
    EXPECT_TRUE(session.send({kWaited, 0}, as_bytes(body)));
  }
  ended->give();
}

TEST_F(WriteRooms, ATaskThatWaitedForRoomSendsWithoutThePolicy) {
  constexpr int kTasks = 6;
  constexpr int kEach = 40;
  script_.on_frame = [&](HeaderSession& session, const Frame&) {
    fill(session);
    for (int i = 0; i < kTasks; ++i) {
      ASSERT_TRUE(session.spawn(send_many(session, static_cast<char>('a' + i), kEach, &ended_)));
    }
  };
  Client client(listen(small()));
  client.send(1, "");
  until([](const CounterValues& counters) { return counters.room_waits >= kTasks; });
  for (int i = 0; i < kTasks * kEach;) {
    const std::string frame = client.read(HeaderCodec::kHeaderSize + kBody);
    ASSERT_EQ(frame.size(), HeaderCodec::kHeaderSize + kBody);
    i += id_of(frame) == kWaited ? 1 : 0;
  }
  for (int i = 0; i < kTasks; ++i) {
    ASSERT_TRUE(ended_.take());
  }
  EXPECT_EQ(server_->counters().closed_total(), 0u);
}

rt::Task<void> cancel_when_written(HeaderSession& session, std::unique_ptr<rt::TaskScope>* scope) {
  while (session.queued() > kBudget / 2) {
    const Result<void> written = co_await session.written().wait();
    EXPECT_TRUE(written);
    if (!written) {
      break;
    }
  }
  (*scope)->cancel();
}

rt::Task<void> wait_writable(HeaderSession& session, RoomOutcomes* into) {
  const Result<void> waited = co_await session.writable();
  into->errors.push_back(waited.error());
  into->ended.give();
}

TEST_F(WriteRooms, TheRoomOfATaskThatIsCancelledInThatTurnGoesToTheNext) {
  RoomOutcomes cancelled;
  RoomOutcomes outcomes;
  script_.on_frame = [&](HeaderSession& session, const Frame&) {
    fill(session);
    ASSERT_TRUE(session.spawn(cancel_when_written(session, &scope_)));
    scope_ = std::make_unique<rt::TaskScope>(rt::Core::current()->loop());
    ASSERT_TRUE(scope_->spawn(wait_writable(session, &cancelled)));
    ASSERT_TRUE(session.spawn(send_letter(session, 's', kNever, &outcomes)));
  };
  Client client(listen(small()));
  client.send(1, "");
  EXPECT_EQ(read_letters(client, 's'), "s");
  ASSERT_TRUE(cancelled.ended.take());
  ASSERT_TRUE(outcomes.ended.take());
  on_core([&] {
    EXPECT_EQ(cancelled.errors.at(0), Errc::cancelled);
    scope_.reset();
  });
}

// --- services without coroutines ---

// Sends numbered frames while there is room, and continues in on_writable().
struct Pump {
  static constexpr std::uint32_t kFrames = 2000;
  std::atomic<int>* told;
  std::uint32_t next = 0;

  void on_frame(HeaderSession& session, const Frame& /*frame*/) { pump(session); }
  void on_writable(HeaderSession& session) {
    ++*told;
    pump(session);
  }
  void pump(HeaderSession& session) {
    const std::string body = body_of('p');
    for (; next < kFrames && session.has_room(); ++next) {
      EXPECT_TRUE(session.send({next, 0}, as_bytes(body)));
    }
  }
};

TEST_F(WriteRooms, AServiceIsToldWhenHalfOfAFullQueueIsWritten) {
  make_server();
  std::atomic<int> told{0};
  const auto bound = server_->listen<HeaderCodec>("tcp://127.0.0.1:0", small(), [&told] { return Pump{&told}; });
  ASSERT_TRUE(bound);
  Client client(*bound);
  client.send(1, "");
  for (std::uint32_t i = 0; i < Pump::kFrames; ++i) {
    const std::string frame = client.read(HeaderCodec::kHeaderSize + kBody);
    ASSERT_EQ(frame.size(), HeaderCodec::kHeaderSize + kBody);
    ASSERT_EQ(id_of(frame), i);
  }
  client.close();
  ASSERT_TRUE(server_->stop(sys::now() + kLong));  // no call comes after it
  // Each call filled at least half of the budget.
  EXPECT_GT(told.load(), 1);
  EXPECT_LE(told.load(), static_cast<int>(Pump::kFrames * (kBody + HeaderCodec::kHeaderSize) / (kBudget / 2)) + 1);
  EXPECT_EQ(server_->counters().closed_for(CloseReason::slow_consumer), 0u);
}

struct ThrowsWhenWritable {
  void on_frame(HeaderSession& session, const Frame& /*frame*/) {
    const std::string body = body_of('t');
    while (session.has_room()) {
      (void)session.send({1, 0}, as_bytes(body));
    }
  }
  void on_writable(HeaderSession& /*session*/) { throw 5; }
};

TEST_F(WriteRooms, AServiceThatThrowsThenEndsItsSession) {
  make_server();
  const auto bound = server_->listen<HeaderCodec>("tcp://127.0.0.1:0", small(), [] { return ThrowsWhenWritable(); });
  ASSERT_TRUE(bound);
  Client client(*bound);
  client.send(1, "");
  (void)client.read_to_end();
  until([](const CounterValues& counters) { return counters.closed_for(CloseReason::service_failed) == 1; });
}

}  // namespace
}  // namespace weft::serve
