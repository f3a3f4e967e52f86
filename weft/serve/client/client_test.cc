// SPDX-License-Identifier: MIT
#include "weft/serve/client/client.h"

#include <string>
#include <vector>

#include "weft/serve/client/test_serve_client.h"
#include "weft/serve/frame/length_codec.h"
#include <gtest/gtest.h>

namespace weft::serve {
namespace {

using test::ask;
using test::ask_into;
using test::echo;
using test::HeaderClient;
using test::HeaderSession;
using test::in_long;
using test::kOne;
using test::open_client;
using test::Signal;
using test::soon;
using Texts = std::vector<Result<std::string>>;

class ClientTest : public test::ClientFixture {};

// --- requests ---

rt::Task<void> ask_once(std::string endpoint) {
  const auto client = open_client(endpoint);
  EXPECT_TRUE(co_await client->connected());
  const auto answer = co_await ask(client.get(), kOne, "hello");
  EXPECT_EQ(answer, "hello");
  EXPECT_TRUE(co_await client->close(in_long()));
  EXPECT_EQ(client->requests().answered.value(), 1u);
  EXPECT_EQ(client->connections().lost.value(), 1u);
}
TEST_F(ClientTest, ARequestIsAnsweredOverTcp) {
  script_.on_frame = echo;
  run(ask_once(listen()));
}
TEST_F(ClientTest, ARequestIsAnsweredOverAUnixSocket) {
  script_.on_frame = echo;
  run(ask_once(listen({}, "ipc://*")));
}

rt::Task<void> ask_and_log(std::string endpoint, std::vector<std::string>* reasons) {
  ClientHostOptions options;
  options.log = [reasons](const LogRecord& record) { reasons->emplace_back(record.reason); };
  const auto client = open_client(endpoint, {}, std::make_shared<ClientHost>(*rt::Core::current(), options));
  EXPECT_TRUE(co_await client->connected());
  EXPECT_EQ(co_await ask(client.get(), kOne, "hello"), "hello");
  EXPECT_TRUE(co_await client->close(in_long()));
}
TEST_F(ClientTest, TheHostsLogIsToldOfTheEndOfAConnection) {
  script_.on_frame = echo;
  std::vector<std::string> reasons;
  run(ask_and_log(listen(), &reasons));
  EXPECT_EQ(reasons, std::vector<std::string>{std::string(describe(CloseReason::service))});
}

template <typename Codec>
struct EchoService {
  void on_frame(SessionOf<Codec>& session, const typename Codec::Frame& frame) {
    (void)session.send(frame.header, frame.body);
  }
};

template <typename C>
rt::Task<void> ask_number(C* client, typename C::Header header, int i, int* right) {
  const auto answer = co_await ask(client, header, std::to_string(i), kNever);
  EXPECT_TRUE(answer) << answer.error().message();
  *right += answer && *answer == std::to_string(i) ? 1 : 0;
}
template <typename C>
rt::Task<void> ask_many(std::string endpoint, int count) {
  ClientOptions options;
  options.in_flight_max = static_cast<std::uint32_t>(count);
  const auto client = open_client<C>(endpoint, options);
  EXPECT_TRUE(co_await client->connected());
  int right = 0;
  rt::TaskScope scope(*rt::Loop::current());
  for (int i = 0; i < count; ++i) {
    typename C::Header header{};
    if constexpr (requires { header.id; }) {
      header.id = static_cast<std::uint32_t>(i % 7);
    }
    EXPECT_TRUE(scope.spawn(ask_number(client.get(), header, i, &right)));
  }
  EXPECT_EQ(client->in_flight(), static_cast<std::size_t>(count));
  EXPECT_TRUE(co_await scope.join());
  EXPECT_EQ(right, count);
  EXPECT_EQ(client->requests().answered.value(), static_cast<std::uint64_t>(count));
  EXPECT_EQ(client->in_flight(), 0u);
}

TEST_F(ClientTest, TenThousandPipelinedRequestsGetTheirOwnAnswersById) {
  script_.on_frame = echo;
  run(ask_many<HeaderClient>(listen(), 10'000));
  // The client writes a batch with few system calls, not with ten thousand.
  EXPECT_LT(server_->counters().reads, 1000u);
}
TEST_F(ClientTest, TenThousandPipelinedRequestsGetTheirOwnAnswersByNumber) {
  script_.on_frame = echo;
  run(ask_many<serve::Client<HeaderCodec, RequestNumber<&FrameHeader::id>>>(listen(), 10'000));
}
TEST_F(ClientTest, TenThousandPipelinedRequestsGetTheirOwnAnswersInOrder) {
  using Codec = LengthCodec<std::uint16_t>;
  make_server();
  const auto endpoint = server_->listen<Codec>("tcp://127.0.0.1:0", {}, [] { return EchoService<Codec>(); });
  ASSERT_TRUE(endpoint);
  run(ask_many<serve::Client<Codec>>(*endpoint, 10'000));
}
TEST_F(ClientTest, LinesAreAskedInOrderToo) {
  make_server();
  const auto endpoint =
      server_->listen<DelimiterCodec>("tcp://127.0.0.1:0", {}, [] { return EchoService<DelimiterCodec>(); });
  ASSERT_TRUE(endpoint);
  run(ask_many<serve::Client<DelimiterCodec>>(*endpoint, 100));
}

TEST_F(ClientTest, ByNumberAPeerMayAnswerInAnyOrder) {
  std::vector<std::pair<FrameHeader, std::string>> asked;
  script_.on_frame = [&](HeaderSession& session, const HeaderCodec::Frame& frame) {
    asked.emplace_back(frame.header, as_text(frame.body));
    if (asked.size() == 100) {
      for (; !asked.empty(); asked.pop_back()) {
        (void)session.send(asked.back().first, as_bytes(asked.back().second));
      }
    }
  };
  run(ask_many<serve::Client<HeaderCodec, RequestNumber<&FrameHeader::id>>>(listen(), 100));
}

rt::Task<void> ask_two_kinds(std::string endpoint) {
  const auto client = open_client(endpoint);
  EXPECT_TRUE(co_await client->connected());
  Result<std::string> slow;
  rt::TaskScope scope(*rt::Loop::current());
  EXPECT_TRUE(scope.spawn(ask_into(client.get(), {1, 0}, "slow", &slow)));
  const auto fast = co_await ask(client.get(), {2, 0}, "fast");
  EXPECT_EQ(fast, "fast");
  EXPECT_EQ(scope.size(), 1u);
  const auto third = co_await ask(client.get(), {3, 0}, "release");
  EXPECT_EQ(third, "release");
  EXPECT_TRUE(co_await scope.join());
  EXPECT_EQ(slow, "slow");
}
TEST_F(ClientTest, ByIdASlowKindDoesNotHoldUpTheOthers) {
  script_.on_frame = [](HeaderSession& session, const HeaderCodec::Frame& frame) {
    if (frame.header.id != 1) {
      (void)session.send(frame.header, frame.body);
    }
    if (frame.header.id == 3) {
      (void)session.send({1, 0}, as_bytes("slow"));
    }
  };
  run(ask_two_kinds(listen()));
}

rt::Task<void> ask_large(std::string endpoint) {
  ClientOptions options;
  const auto client = open_client(endpoint, options);
  EXPECT_TRUE(co_await client->connected());
  for (const std::size_t size : {0u, 1u, 8192u, 70'000u, 3'000'000u}) {
    const std::string text(size, 'x');
    const auto answer = co_await ask(client.get(), kOne, text);
    EXPECT_TRUE(answer && *answer == text) << size;
  }
}
TEST_F(ClientTest, BodiesOfAnySizeArriveWhole) {
  script_.on_frame = echo;
  ListenerOptions options;
  options.limits.write_budget = 16u * 1024 * 1024;
  run(ask_large(listen(options)));
}

// Posts each piece in a turn of its own.
rt::Task<void> drip(Server* server, SessionId id, std::string bytes, std::size_t piece) {
  for (std::size_t at = 0; at < bytes.size(); at += piece) {
    const auto posted = server->post_to(
        id, [part = bytes.substr(at, piece)](Session& session) { (void)session.send_bytes(as_bytes(part)); });
    EXPECT_TRUE(posted);
    EXPECT_TRUE(co_await rt::yield());
  }
}
rt::Task<void> ask_for_pieces(std::string endpoint) {
  const auto client = open_client(endpoint);
  EXPECT_TRUE(co_await client->connected());
  for (const std::size_t size : {0u, 1u, 30u}) {
    const std::string text(size, 'p');
    const auto answer = co_await ask(client.get(), kOne, text);
    EXPECT_EQ(answer, text);
  }
}
TEST_F(ClientTest, AResponseThatComesByteForByteIsOne) {
  script_.on_frame = [this](HeaderSession& session, const HeaderCodec::Frame& frame) {
    (void)rt::spawn(*rt::Loop::current(), drip(server_.get(), session.id(), test::frame_of(1, as_text(frame.body)), 1));
  };
  run(ask_for_pieces(listen()));
}

// --- mistakes of the peer ---

// Asks twice: the first request fails with `expected`, and before the second the client has connected again.
rt::Task<void> ask_again(std::string endpoint, Errc expected) {
  Error lost;
  ClientOptions options;
  options.on_event = [&lost](const ClientEvent& event) {
    if (event.kind == ClientEvent::Kind::lost) {
      lost = event.why;
    }
  };
  const auto client = open_client(endpoint, options);
  EXPECT_TRUE(co_await client->connected());
  const auto first = co_await ask(client.get(), kOne, "first");
  EXPECT_EQ(first.error(), expected) << first.error().message();
  EXPECT_TRUE(co_await client->connected());
  EXPECT_EQ(lost, expected) << lost.message();
  const auto second = co_await ask(client.get(), kOne, "second");
  EXPECT_EQ(second, "second");
  EXPECT_EQ(client->requests().lost.value(), 1u);
  EXPECT_EQ(client->connections().connected.value(), 2u);
}
TEST_F(ClientTest, APeerThatClosesInTheMiddleOfAResponseLosesThatRequestOnly) {
  script_.on_frame = [](HeaderSession& session, const HeaderCodec::Frame& frame) {
    if (as_text(frame.body) == "second") {
      return echo(session, frame);
    }
    (void)session.send_bytes(as_bytes(test::frame_of(1, "first").substr(0, 14)));
    session.close();
  };
  run(ask_again(listen(), Errc::connection_closed));
}
TEST_F(ClientTest, APeerThatAnswersGarbageLosesItsConnection) {
  script_.on_frame = [](HeaderSession& session, const HeaderCodec::Frame& frame) {
    if (as_text(frame.body) == "second") {
      return echo(session, frame);
    }
    (void)session.send_bytes(as_bytes(std::string(40, '\3')));
  };
  run(ask_again(listen(), Errc::protocol_error));
}
TEST_F(ClientTest, APeerThatClosesWithoutAnAnswerLosesThatRequestOnly) {
  script_.on_frame = [](HeaderSession& session, const HeaderCodec::Frame& frame) {
    if (as_text(frame.body) == "second") {
      return echo(session, frame);
    }
    session.close();
  };
  run(ask_again(listen(), Errc::connection_closed));
}

rt::Task<void> ask_the_late(std::string endpoint) {
  const auto client = open_client(endpoint);
  EXPECT_TRUE(co_await client->connected());
  const auto first = co_await ask(client.get(), kOne, "first", soon());
  EXPECT_EQ(first.error(), Errc::timed_out);
  const auto second = co_await ask(client.get(), kOne, "second");
  EXPECT_EQ(second, "second");
  EXPECT_EQ(client->requests().timed_out.value(), 1u);
  EXPECT_EQ(client->requests().late.value(), 1u);
  EXPECT_EQ(client->requests().answered.value(), 1u);
}
TEST_F(ClientTest, ALateResponseIsDroppedAndTheNextRequestGetsItsOwn) {
  script_.on_frame = [](HeaderSession& session, const HeaderCodec::Frame& frame) {
    if (as_text(frame.body) == "second") {
      (void)session.send(frame.header, as_bytes("first"));
      (void)session.send(frame.header, frame.body);
    }
  };
  run(ask_the_late(listen()));
}

rt::Task<void> ask_the_mute(std::string endpoint) {
  ClientOptions options;
  options.in_flight_max = 3;
  const auto client = open_client(endpoint, options);
  EXPECT_TRUE(co_await client->connected());
  for (int i = 0; i < 3; ++i) {
    const auto none = co_await ask(client.get(), kOne, "mute", soon());
    EXPECT_EQ(none.error(), Errc::timed_out);
  }
  // The window is full of places of requests that were given up, so the client drops the connection.
  const auto refused = co_await ask(client.get(), kOne, "speak");
  EXPECT_EQ(refused.error(), Errc::unreachable);
  EXPECT_TRUE(co_await client->connected());
  const auto answer = co_await ask(client.get(), kOne, "speak");
  EXPECT_EQ(answer, "speak");
}
TEST_F(ClientTest, APeerThatNeverAnswersIsLeft) {
  script_.on_frame = [](HeaderSession& session, const HeaderCodec::Frame& frame) {
    if (as_text(frame.body) == "speak") {
      echo(session, frame);
    }
  };
  run(ask_the_mute(listen()));
}

rt::Task<void> ask_the_forgetful(std::string endpoint) {
  ClientOptions options;
  options.late_max = std::chrono::milliseconds(1);
  const auto client = open_client(endpoint, options);
  EXPECT_TRUE(co_await client->connected());
  const auto none = co_await ask(client.get(), kOne, "forget me", soon());
  EXPECT_EQ(none.error(), Errc::timed_out);
  while (client->connections().lost.value() == 0) {
    (void)co_await rt::sleep(std::chrono::milliseconds(1));
  }
  EXPECT_TRUE(co_await client->connected());
  const auto answer = co_await ask(client.get(), kOne, "remember me");
  EXPECT_EQ(answer, "remember me");
}
TEST_F(ClientTest, APeerThatLeavesOutAResponseLosesTheConnectionWhoseOrderThatSpoils) {
  script_.on_frame = [](HeaderSession& session, const HeaderCodec::Frame& frame) {
    if (as_text(frame.body) != "forget me") {
      echo(session, frame);
    }
  };
  run(ask_the_forgetful(listen()));
}

rt::Task<void> ask_too_many(std::string endpoint, Signal* asked) {
  ClientOptions options;
  options.in_flight_max = 2;
  const auto client = open_client(endpoint, options);
  EXPECT_TRUE(co_await client->connected());
  Texts texts(2);
  rt::TaskScope scope(*rt::Loop::current());
  for (auto& text : texts) {
    EXPECT_TRUE(scope.spawn(ask_into(client.get(), kOne, "held", &text)));
  }
  EXPECT_FALSE(client->has_room());
  const auto refused = co_await ask(client.get(), kOne, "third");
  EXPECT_EQ(refused.error(), Errc::resource_exhausted);
  EXPECT_EQ(client->requests().refused.value(), 1u);
  EXPECT_TRUE(client->send({2, 0}, {}));  // this frame releases the answers
  EXPECT_TRUE(co_await scope.join());
  EXPECT_EQ(texts, Texts(2, std::string("held")));
  asked->give();
}
TEST_F(ClientTest, MoreRequestsThanThereMayBeInFlightAreRefused) {
  int held = 0;
  script_.on_frame = [&](HeaderSession& session, const HeaderCodec::Frame& frame) {
    held += frame.header.id == 1 ? 1 : 0;
    for (; frame.header.id == 2 && held != 0; --held) {
      (void)session.send(kOne, as_bytes("held"));
    }
  };
  Signal asked;
  run(ask_too_many(listen(), &asked));
  EXPECT_TRUE(asked.take());
}

rt::Task<void> fill_the_queue(std::string endpoint) {
  ClientOptions options;
  options.limits.write_budget = 64 * 1024;
  const auto client = open_client(endpoint, options);
  EXPECT_TRUE(co_await client->connected());
  const std::string body(10'000, 'b');
  Result<void> sent;
  int taken = 0;
  while (sent) {  // the peer reads nothing
    sent = client->send(kOne, as_bytes(body));
    taken += sent ? 1 : 0;
    EXPECT_TRUE(co_await rt::yield());
  }
  EXPECT_EQ(sent.error(), Errc::resource_exhausted);
  EXPECT_GE(taken, 6);
  EXPECT_EQ(client->requests().refused.value(), 1u);
  EXPECT_TRUE(client->is_connected());
}
TEST_F(ClientTest, FramesThatAPeerDoesNotReadAreRefusedBeyondTheBudget) {
  script_.on_open = [](HeaderSession& session) { session.pause_reading(); };
  run(fill_the_queue(listen()));
}

rt::Task<void> take_pushes(std::string endpoint) {
  const auto client = open_client(endpoint);
  std::vector<std::string> pushed;
  rt::AsyncEvent came;
  client->on_push([&](const HeaderCodec::Frame& frame) {
    pushed.emplace_back(as_text(frame.body));
    came.set();
  });
  EXPECT_TRUE(co_await came.wait());
  const auto answer = co_await ask(client.get(), kOne, "asked");
  EXPECT_EQ(answer, "asked");
  EXPECT_EQ(pushed, (std::vector<std::string>{"welcome", "news"}));
  EXPECT_EQ(client->requests().pushes.value(), 2u);
}
TEST_F(ClientTest, AFrameThatAPeerSendsUnaskedIsNoAnswer) {
  script_.on_open = [](HeaderSession& session) { (void)session.send({9, 0}, as_bytes("welcome")); };
  script_.on_frame = [](HeaderSession& session, const HeaderCodec::Frame& frame) {
    (void)session.send({9, 0}, as_bytes("news"));
    echo(session, frame);
  };
  run(take_pushes(listen()));
}

}  // namespace
}  // namespace weft::serve
