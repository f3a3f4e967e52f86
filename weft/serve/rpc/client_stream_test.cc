// SPDX-License-Identifier: MIT
#include <chrono>
#include <string>
#include <vector>

#include "weft/rt/task/async_event.h"
#include "weft/rt/task/task_scope.h"
#include "weft/rt/task/task_time.h"
#include "weft/serve/rpc/test_rpc.h"
#include <gtest/gtest.h>

namespace weft::serve::rpc {
namespace {

using test::Add;
using test::open_rpc;
using test::RawCaller;

using Count = ServerStream<"count", std::int64_t, std::int64_t>;     // 0 to n - 1
using Total = ClientStream<"total", std::int64_t, std::int64_t, 9>;  // the sum
using Shout = TwoWayStream<"shout", std::string, std::string>;       // each text, louder
using Endless = ServerStream<"endless", std::int64_t, std::string>;  // messages of a size
using Ignore = ClientStream<"ignore", std::string, Empty>;           // reads nothing
using RefuseStream = ServerStream<"refuse", Empty, std::string>;     // one message, then an error

class RpcStream : public test::RpcFixture {
 protected:
  void SetUp() override { start_runtime(1); }

  Methods streams() {
    Methods methods;
    EXPECT_TRUE(methods.add<Count>([](const std::int64_t& n, Writer<std::int64_t>& out) -> rt::Task<Result<void>> {
      for (std::int64_t i = 0; i < n; ++i) {
        WEFT_CO_TRY(co_await out.send(i));
      }
      co_return Result<void>();
    }));
    EXPECT_TRUE(methods.add<Total>([](Reader<std::int64_t>& in) -> rt::Task<Result<std::int64_t>> {
      std::int64_t sum = 0;
      for (;;) {
        WEFT_CO_TRY(const auto next, co_await in.next());
        if (!next) {
          co_return sum;
        }
        sum += *next;
      }
    }));
    EXPECT_TRUE(methods.add<Shout>([](Reader<std::string>& in, Writer<std::string>& out) -> rt::Task<Result<void>> {
      for (;;) {
        WEFT_CO_TRY(const auto next, co_await in.next());
        if (!next) {
          co_return Result<void>();
        }
        WEFT_CO_TRY(co_await out.send(*next + "!"));
      }
    }));
    EXPECT_TRUE(
        methods.add<Endless>([this](const std::int64_t& size, Writer<std::string>& out) -> rt::Task<Result<void>> {
          const std::string message(static_cast<std::size_t>(size), 'm');
          for (;;) {
            const auto sent = co_await out.send(message);
            if (!sent) {
              ended_.set();
              co_return sent;
            }
            ++sent_;
          }
        }));
    EXPECT_TRUE(methods.add<Ignore>([this](Reader<std::string>&, Call&) -> rt::Task<Result<void>> {
      const auto come = co_await go_.wait();
      co_return come;
    }));
    EXPECT_TRUE(
        methods.add<RefuseStream>([](const Empty&, Writer<std::string>& out, Call& call) -> rt::Task<Result<void>> {
          const std::string last = "last";
          WEFT_CO_TRY(co_await out.send(last));
          co_return call.refuse(5, "no more");
        }));
    EXPECT_TRUE(methods.add<Add>([](const test::Sum& sum) { return sum.a + sum.b; }));
    return methods;
  }

  rt::AsyncEvent ended_;  // the handler of Endless
  rt::AsyncEvent go_;     // the handler of Ignore
  std::int64_t sent_ = 0;
};

rt::Task<void> use_streams(std::string endpoint) {
  const auto client = open_rpc(endpoint);
  co_await test::await_connection(client.get());

  constexpr std::int64_t kMany = 50'000;  // many windows
  const auto counting = client->stream<Count>(kMany);
  EXPECT_TRUE(counting);
  std::int64_t expected = 0;
  for (;;) {
    const auto next = co_await (*counting)->next();
    EXPECT_TRUE(next) << next.error().message();
    if (!next || !*next) {
      break;
    }
    EXPECT_EQ(**next, expected);
    ++expected;
  }
  EXPECT_EQ(expected, kMany);
  const auto counted = co_await (*counting)->finish();
  EXPECT_TRUE(counted);

  const auto summing = client->stream<Total>();
  EXPECT_TRUE(summing);
  for (std::int64_t i = 0; i < kMany; ++i) {
    const auto sent = co_await (*summing)->send(i);
    EXPECT_TRUE(sent) << sent.error().message();
    if (!sent) {
      break;
    }
  }
  const auto ended = (*summing)->end();
  EXPECT_TRUE(ended);
  const auto sum = co_await (*summing)->finish();
  EXPECT_EQ(sum, kMany * (kMany - 1) / 2);
  const std::int64_t late = 1;
  const auto after = co_await (*summing)->send(late);
  EXPECT_EQ(after.error(), Errc::closed);

  const auto shouting = client->stream<Shout>();
  EXPECT_TRUE(shouting);
  for (int i = 0; i < 100; ++i) {
    const std::string text(static_cast<std::size_t>(i) * 1000, 't');
    const auto sent = co_await (*shouting)->send(text);
    EXPECT_TRUE(sent);
    const auto louder = co_await (*shouting)->next();
    EXPECT_TRUE(louder && *louder && **louder == text + "!");
  }
  const auto silent = (*shouting)->end();
  EXPECT_TRUE(silent);
  const auto last = co_await (*shouting)->next();
  EXPECT_TRUE(last && !*last);
  co_await test::end_client(client.get());
}
TEST_F(RpcStream, MessagesPassInOrderInBothDirections) {
  run(use_streams(serve(streams())));
  until_counted([](const RpcCounts& counts) { return counts.answered == 3; });
  EXPECT_EQ(service_->counts().faults, 0u);
}

rt::Task<void> read_refused(std::string endpoint) {
  const auto client = open_rpc(endpoint);
  co_await test::await_connection(client.get());
  const auto refusing = client->stream<RefuseStream>();
  EXPECT_TRUE(refusing);
  const auto first = co_await (*refusing)->next();
  EXPECT_TRUE(first && *first && **first == "last");
  const auto second = co_await (*refusing)->next();
  EXPECT_EQ(second.error(), Error(kServiceDomain, 5));
  const auto answer = co_await (*refusing)->finish();
  EXPECT_STREQ(answer.error().text(), "no more");
}
TEST_F(RpcStream, AnErrorComesAfterTheMessagesBeforeIt) { run(read_refused(serve(streams()))); }

// A program that takes nothing stops its peer, which sends a window and one message at most.
TEST_F(RpcStream, AStreamThatIsNotReadStopsItsSender) {
  const std::string endpoint = serve(streams());
  constexpr std::int64_t kSize = 10'000;
  const auto hold = [&]() -> rt::Task<void> {
    const auto client = open_rpc(endpoint);
    co_await test::await_connection(client.get());
    auto endless = client->stream<Endless>(kSize);
    EXPECT_TRUE(endless);
    constexpr std::int64_t kMost = (kWindow + kSize + kMessageCost - 1) / (kSize + kMessageCost);
    while (sent_ < kMost) {
      const auto turn = co_await rt::yield();
      EXPECT_TRUE(turn);
    }
    const test::Sum one{1, 2};
    for (int i = 0; i < 10; ++i) {
      const auto sum = co_await client->call<Add>(one);
      EXPECT_EQ(sum, 3) << "other calls pass";
    }
    EXPECT_EQ(sent_, kMost);
    const auto first = co_await (*endless)->next();
    EXPECT_TRUE(first && *first && (*first)->size() == kSize);
    endless->reset();  // cancels the call
    const auto ended = co_await ended_.wait();
    EXPECT_TRUE(ended);
  };
  run(hold());
  until_counted([](const RpcCounts& counts) { return counts.cancelled == 1; });
}

TEST_F(RpcStream, AHandlerThatReadsNothingStopsItsClient) {
  const std::string endpoint = serve(streams());
  const auto push = [&]() -> rt::Task<void> {
    const auto client = open_rpc(endpoint);
    co_await test::await_connection(client.get());
    const auto ignored = client->stream<Ignore>();
    EXPECT_TRUE(ignored);
    const std::string message(static_cast<std::size_t>(kWindow), 'm');
    const auto sent = co_await (*ignored)->send(message);
    EXPECT_TRUE(sent);
    const auto stopped = co_await rt::with_timeout((*ignored)->send(message), std::chrono::milliseconds(20));
    EXPECT_EQ(stopped.error(), Errc::timed_out);
    go_.set();
    const auto answer = co_await (*ignored)->finish();
    EXPECT_TRUE(answer) << answer.error().message();
    const auto late = co_await (*ignored)->send(message);
    EXPECT_EQ(late.error(), Errc::closed) << "the call has ended";
  };
  run(push());
}

rt::Task<void> lose_stream(std::string endpoint) {
  const auto client = open_rpc(endpoint);
  co_await test::await_connection(client.get());
  const auto counting = client->stream<Endless>(std::int64_t{10});
  EXPECT_TRUE(counting);
  const auto first = co_await (*counting)->next();
  EXPECT_TRUE(first);
  client->connection().drop_connection(Error(Errc::connection_closed, "dropped by the test"));
  Result<std::optional<std::string>> next;
  do {
    next = co_await (*counting)->next();
  } while (next && *next);
  EXPECT_EQ(next.error(), Errc::connection_closed);
  EXPECT_EQ(next.error().fate(), Fate::outcome_unknown);
}
TEST_F(RpcStream, AStreamEndsWithItsConnection) {
  run(lose_stream(serve(streams())));
  until_counted([](const RpcCounts& counts) { return counts.lost == 1; });
}

// --- peers that break the rules ---

class RpcHostileStream : public RpcStream {
 protected:
  static std::string stream_frame(FrameType type, std::uint32_t number = 0, std::string_view body = {}) {
    Header header;
    header.type = type;
    header.id = 1;
    header.number = number;
    return RawCaller::frame(header, body);
  }
  // Begins the stream, sends the frames, and expects that the connection ends for that.
  void expect_fault(std::string_view method, const std::string& frames, std::string_view request = {}) {
    RawCaller caller(serve(streams()));
    caller.write(RawCaller::request(1, method, request) + frames);
    until_counted([](const RpcCounts& counts) { return counts.faults == 1; });
    caller.close();
    until([](const CounterValues& counters) { return counters.closed_for(CloseReason::refused_frame) == 1; });
  }
  static constexpr std::string_view kThousand{"\0\0\0\0\0\0\x03\xE8", 8};  // the size of messages of Endless
};
TEST_F(RpcHostileStream, AMessageWithoutCreditEndsTheConnection) {
  const std::string window(static_cast<std::size_t>(kWindow), 'w');
  expect_fault("ignore", stream_frame(FrameType::data, 0, window) + stream_frame(FrameType::data, 0, "more"));
}
TEST_F(RpcHostileStream, AMessageAfterTheEndEndsTheConnection) {
  expect_fault("ignore", stream_frame(FrameType::end) + stream_frame(FrameType::data, 0, "more"));
}
TEST_F(RpcHostileStream, ASecondEndEndsTheConnection) {
  expect_fault("ignore", stream_frame(FrameType::end) + stream_frame(FrameType::end));
}
TEST_F(RpcHostileStream, AMessageToAStreamOfTheServerEndsTheConnection) {
  expect_fault("endless", stream_frame(FrameType::data, 0, "more"), kThousand);
}
TEST_F(RpcHostileStream, CreditsBeyondTheBoundEndTheConnection) {
  expect_fault("endless", stream_frame(FrameType::credit, kGrantMax) + stream_frame(FrameType::credit, kGrantMax),
               kThousand);
}
TEST_F(RpcHostileStream, ACreditForAStreamOfTheClientEndsTheConnection) {
  expect_fault("ignore", stream_frame(FrameType::credit, 1));
}
TEST_F(RpcHostileStream, FramesOfAStreamThatIsNotInFlightAreCountedAndDropped) {
  RawCaller caller(serve(streams()));
  caller.write(stream_frame(FrameType::data, 0, "x") + stream_frame(FrameType::end) +
               stream_frame(FrameType::credit, 5) + RawCaller::request(1, "calc.add", std::string(16, '\0')));
  EXPECT_EQ(caller.receive()->status, Status::ok);
  until_counted([](const RpcCounts& counts) { return counts.messages_late == 3; });
}

}  // namespace
}  // namespace weft::serve::rpc
