// SPDX-License-Identifier: MIT
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "weft/rt/task/async_event.h"
#include "weft/rt/task/task_scope.h"
#include "weft/rt/task/task_time.h"
#include "weft/serve/rpc/test_rpc.h"
#include <gtest/gtest.h>

namespace weft::serve::rpc {
namespace {

using test::Add;
using test::call_into;
using test::for_at_most;
using test::open_rpc;
using test::RawCaller;
using test::Sum;
using test::Upper;
using test::Wait;
using Got = RawCaller::Got;

// --- clients that break the rules ---

class RpcHostileClient : public test::RpcFixture {
 protected:
  static Methods methods() {
    Methods methods;
    EXPECT_TRUE(methods.add<Upper>([](const std::string& text) { return text + "!"; }));
    EXPECT_TRUE(methods.add<Wait>([](const std::string& text) -> rt::Task<Result<std::string>> {
      rt::AsyncEvent never;
      WEFT_CO_TRY(co_await never.wait());
      co_return text;
    }));
    return methods;
  }
  static std::string upper(std::uint64_t id) {
    Header header;
    header.id = id;
    header.number = Upper::kNumber;
    return RawCaller::frame(header, "hey");
  }
};

TEST_F(RpcHostileClient, ACancelOfACallThatIsNotInFlightIsCountedAndIgnored) {
  RawCaller caller(serve(methods()));
  caller.write(RawCaller::cancel(99) + upper(1) + RawCaller::cancel(1) + RawCaller::request(2, "wait") +
               RawCaller::cancel(2) + RawCaller::cancel(2) + upper(2));
  EXPECT_EQ(caller.receive(), (Got{1, Status::ok, 0, "hey!"}));
  EXPECT_EQ(caller.receive(), (Got{2, Status::ok, 0, "hey!"})) << "the cancelled call has no answer, and frees its id";
  until_counted([](const RpcCounts& counts) { return counts.cancels_late == 3 && counts.cancelled == 1; });
}

TEST_F(RpcHostileClient, IdsAreAnyNumbersOf64Bits) {
  RawCaller caller(serve(methods()));
  const std::uint64_t ids[] = {1, ~std::uint64_t{0}, std::uint64_t{1} << 32U, (std::uint64_t{1} << 32U) + 1};
  for (const std::uint64_t id : ids) {
    caller.write(RawCaller::request(id, "wait"));
  }
  for (const std::uint64_t id : ids) {
    caller.write(RawCaller::cancel(id) + upper(id));
    EXPECT_EQ(caller.receive(), (Got{id, Status::ok, 0, "hey!"}));
  }
  until_counted([](const RpcCounts& counts) { return counts.cancelled == 4; });
}

// Writes the bytes, and expects that the server ends the connection after the answers that it owes.
class RpcRefusedFrame : public RpcHostileClient {
 protected:
  void expect_end(RawCaller& caller) {
    EXPECT_EQ(caller.receive(), std::nullopt);
    caller.close();
    until([](const CounterValues& counters) { return counters.closed_for(CloseReason::refused_frame) == 1; });
  }
};
TEST_F(RpcRefusedFrame, ARequestWithTheIdOfACallInFlightEndsTheConnection) {
  RawCaller caller(serve(methods()));
  caller.write(upper(1) + RawCaller::request(7, "wait", "", 1000) + upper(7));
  EXPECT_EQ(caller.receive(), (Got{1, Status::ok, 0, "hey!"}));
  EXPECT_EQ(caller.receive()->status, Status::timed_out) << "the first call of this id is answered";
  expect_end(caller);
  EXPECT_EQ(service_->counts().duplicates, 1u);
}
TEST_F(RpcRefusedFrame, AnAnswerOfAClientEndsTheConnection) {
  RawCaller caller(serve(methods()));
  Header answer;
  answer.type = FrameType::answer;
  answer.id = 3;
  caller.write(upper(1) + RawCaller::frame(answer, "unasked") + upper(2));
  EXPECT_EQ(caller.receive(), (Got{1, Status::ok, 0, "hey!"}));
  expect_end(caller);
  EXPECT_EQ(service_->counts().unasked, 1u);
}
TEST_F(RpcRefusedFrame, BytesThatAreNotAFrameEndTheConnection) {
  RawCaller caller(serve(methods()));
  caller.write(upper(1) + "GET / HTTP/1.1\r\n\r\n");
  EXPECT_EQ(caller.receive(), (Got{1, Status::ok, 0, "hey!"}));
  expect_end(caller);
}

TEST_F(RpcHostileClient, UnknownMethodsAreAnsweredByNameAndByNumber) {
  RawCaller caller(serve(methods()));
  Header header;
  header.id = 5;
  header.number = 1234;
  caller.write(RawCaller::request(4, std::string(kNameMax, '\n')) + RawCaller::frame(header, "x"));
  EXPECT_EQ(caller.receive()->status, Status::unknown_method);
  EXPECT_EQ(caller.receive(), (Got{5, Status::unknown_method, 0, "the server has no such method"}));
  until_counted([](const RpcCounts& counts) { return counts.unknown == 2; });
}

TEST_F(RpcHostileClient, AFloodOfCallsHoldsNoMoreThanTheBound) {
  ServiceOptions limits;
  limits.calls_max = 8;
  RawCaller caller(serve(methods(), limits));
  std::string flood;
  for (std::uint64_t id = 1; id <= 1000; ++id) {
    flood += RawCaller::request(id, "wait");
  }
  caller.write(flood);
  for (std::uint64_t id = 9; id <= 1000; ++id) {
    EXPECT_EQ(caller.receive(), (Got{id, Status::busy, 0, "the connection has calls_max calls in flight"}));
  }
  std::string cancels;
  for (std::uint64_t id = 1; id <= 8; ++id) {
    cancels += RawCaller::cancel(id);
  }
  caller.write(cancels + upper(1));
  EXPECT_EQ(caller.receive()->status, Status::ok);
  until_counted([](const RpcCounts& counts) { return counts.busy == 992 && counts.cancelled == 8; });
}

// --- servers that break the rules ---

struct LyingService {
  std::function<void(Session&, const Codec::Frame&)> frame;
  void on_frame(Session& session, const Codec::Frame& got) { frame(session, got); }
};
Header answer_to(const Header& request, std::uint64_t id_offset = 0) {
  Header answer;
  answer.type = FrameType::answer;
  answer.id = request.id + id_offset;
  return answer;
}

class RpcLyingServer : public test::RpcFixture {
 protected:
  // Calls Upper of a server that does this, then checks the client.
  void call(std::function<void(Session&, const Codec::Frame&)> lie,
            const std::function<void(const Result<std::string>&, const RequestCounts&)>& check) {
    make_server();
    const auto endpoint = server_->listen<Codec>("tcp://127.0.0.1:0", {}, [lie] { return LyingService{lie}; });
    ASSERT_TRUE(endpoint);
    const auto ask = [&]() -> rt::Task<void> {
      const auto client = open_rpc(*endpoint);
      co_await test::await_connection(client.get());
      const std::string text = "who?";
      const auto first = co_await client->call<Upper>(text);
      const auto second = co_await client->call<Upper>(text);  // after all frames of the first
      check(first, client->connection().requests());
      check(second, client->connection().requests());
    };
    run(ask());
  }
};

TEST_F(RpcLyingServer, ASecondAnswerIsCountedAndDropped) {
  int asked = 0;
  call(
      [&asked](Session& session, const Codec::Frame& frame) {
        ++asked;
        (void)session.send(answer_to(frame.header), as_bytes("first"));
        (void)session.send(answer_to(frame.header), as_bytes("second"));
        (void)session.send(answer_to(frame.header), as_bytes("third"));
      },
      [](const Result<std::string>& outcome, const RequestCounts& counts) {
        EXPECT_EQ(outcome, "first");
        EXPECT_EQ(counts.answered.value(), 2u);
        EXPECT_GE(counts.late.value(), 2u);
      });
  EXPECT_EQ(asked, 2);
}

TEST_F(RpcLyingServer, AnswersWithUnknownIdsAndRequestsAreCountedAndDropped) {
  call(
      [](Session& session, const Codec::Frame& frame) {
        (void)session.send(answer_to(frame.header, 1'000'000), as_bytes("a call that was never made"));
        (void)session.send(answer_to(frame.header, std::uint64_t{1} << 40U), as_bytes("an id of more than 32 bits"));
        Header request;
        request.id = frame.header.id;
        request.method = "client.method";
        (void)session.send(request, as_bytes("a request to a client"));
        (void)session.send(Codec::Correlation::withdrawal(frame.header), {});
        (void)session.send(answer_to(frame.header), as_bytes("right"));
      },
      [](const Result<std::string>& outcome, const RequestCounts& counts) {
        EXPECT_EQ(outcome, "right");
        EXPECT_EQ(counts.pushes.value(), 8u);
        EXPECT_EQ(counts.pushes_dropped.value(), 8u);
        EXPECT_EQ(counts.late.value(), 0u);
      });
}

TEST_F(RpcLyingServer, AStatusOfALaterVersionIsAnError) {
  call(
      [](Session& session, const Codec::Frame& frame) {
        Header answer = answer_to(frame.header);
        answer.status = static_cast<Status>(4711);
        (void)session.send(answer, as_bytes("what a pity"));
      },
      [](const Result<std::string>& outcome, const RequestCounts& counts) {
        EXPECT_EQ(outcome.error(), Errc::protocol_error);
        EXPECT_EQ(outcome.error().fate(), Fate::answered);
        EXPECT_EQ(counts.error_frames.value(), 2u);
      });
}

TEST_F(RpcLyingServer, BytesThatAreNotAFrameEndTheCall) {
  call([](Session& session, const Codec::Frame&) { (void)session.send_bytes(as_bytes("HTTP/1.1 200 OK\r\n\r\n")); },
       [](const Result<std::string>& outcome, const RequestCounts&) { EXPECT_FALSE(outcome); });
}

// An answer that comes after its call was given up is not taken for the next call.
TEST_F(RpcLyingServer, AnAnswerAfterTheCancelIsCountedAsLate) {
  start_runtime(1);
  make_server();
  std::vector<Header> asked;
  std::vector<Header> cancelled;
  rt::AsyncEvent came;
  const auto serve_late = [&](Session& session, const Codec::Frame& frame) {
    if (frame.header.type == FrameType::cancel) {
      cancelled.push_back(frame.header);
      return came.pulse();
    }
    asked.push_back(frame.header);
    if (asked.size() == 2) {
      (void)session.send(answer_to(asked[0]), as_bytes("late"));
      (void)session.send(answer_to(asked[1]), as_bytes("in time"));
    }
    came.pulse();
  };
  const auto endpoint =
      server_->listen<Codec>("tcp://127.0.0.1:0", {}, [serve_late] { return LyingService{serve_late}; });
  ASSERT_TRUE(endpoint);
  Result<std::string> first;
  const auto ask = [&]() -> rt::Task<void> {
    const auto client = open_rpc(*endpoint);
    co_await test::await_connection(client.get());
    rt::TaskScope scope(*rt::Loop::current());
    const auto spawned = scope.spawn(call_into<Upper>(client.get(), "one", &first));
    EXPECT_TRUE(spawned);
    while (asked.empty()) {
      const auto more = co_await came.wait();
      EXPECT_TRUE(more);
    }
    scope.cancel();
    const auto joined = co_await scope.join();
    EXPECT_TRUE(joined);
    while (cancelled.empty()) {
      const auto more = co_await came.wait();
      EXPECT_TRUE(more);
    }
    const std::string text = "two";
    const auto second = co_await client->call<Upper>(text);
    EXPECT_EQ(second, "in time");
    EXPECT_EQ(client->connection().requests().late.value(), 1u);
  };
  run(ask());
  EXPECT_EQ(first.error(), Errc::cancelled);
  EXPECT_EQ(asked[0].id, cancelled[0].id);
  (void)stop_now();
}

}  // namespace
}  // namespace weft::serve::rpc
