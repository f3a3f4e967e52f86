// SPDX-License-Identifier: MIT
#include <string>
#include <vector>

#include "weft/serve/client/client_pool.h"
#include "weft/serve/client/test_serve_client.h"
#include "weft/serve/dispatch/dispatcher.h"
#include "weft/serve/frame/error_frame.h"
#include <gtest/gtest.h>

// How far a request came, and error frames.
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
using test::soon;
using Pool = ClientPool<HeaderCodec>;

class FateTest : public test::ClientFixture {};

constexpr FrameHeader kMuteFrame{2, 0};

void echo_or_be_mute(HeaderSession& session, const HeaderCodec::Frame& frame) {
  if (frame.header.id != kMuteFrame.id) {
    echo(session, frame);
  }
}

rt::Task<void> pay_twice(std::string endpoint) {
  ClientOptions options;
  options.reconnect_first = options.reconnect_max = std::chrono::hours(1);
  const auto client = open_client(endpoint, options);
  EXPECT_TRUE(co_await client->connected());
  const auto executed = co_await ask(client.get(), kOne, "pay 100");
  const auto unsent = co_await ask(client.get(), kOne, "pay 100");
  EXPECT_EQ(executed.error().fate(), Fate::outcome_unknown) << executed.error().message();
  EXPECT_EQ(unsent.error().fate(), Fate::not_sent) << unsent.error().message();
  EXPECT_EQ(unsent.error(), Errc::unreachable);
  EXPECT_FALSE(executed.error() == Errc::unreachable) << "the codes differ, too";
}
TEST_F(FateTest, ARequestThatThePeerCarriedOutAndOneThatWasNotSentEndDifferently) {
  script_.on_frame = [](HeaderSession& session, const HeaderCodec::Frame&) { session.abort(); };
  run(pay_twice(listen()));
}

rt::Task<void> end_in_every_way(std::string endpoint) {
  ClientOptions options;
  options.in_flight_max = 1;
  options.late_max = Duration(-1);
  auto client = open_client(endpoint, options);
  const auto early = co_await ask(client.get(), kOne, "before the connection");
  EXPECT_EQ(early.error().fate(), Fate::not_sent);
  EXPECT_EQ(client->send(kOne, {}).error().fate(), Fate::not_sent);
  EXPECT_TRUE(co_await client->connected());
  const auto past = co_await ask(client.get(), kOne, "too late", Instant::min());
  EXPECT_EQ(past.error().fate(), Fate::not_sent);
  EXPECT_EQ(past.error(), Errc::timed_out);

  Result<std::string> given_up;
  rt::TaskScope scope(*rt::Loop::current());
  EXPECT_TRUE(scope.spawn(ask_into(client.get(), kMuteFrame, "cancelled", &given_up)));
  const auto crowded = co_await ask(client.get(), kOne, "no room");
  EXPECT_EQ(crowded.error().fate(), Fate::not_sent);
  EXPECT_EQ(crowded.error(), Errc::resource_exhausted);
  scope.cancel();
  EXPECT_TRUE(co_await scope.join());
  EXPECT_EQ(given_up.error().fate(), Fate::outcome_unknown);
  EXPECT_EQ(given_up.error(), Errc::cancelled);

  const auto wide = open_client(endpoint);
  EXPECT_TRUE(co_await wide->connected());
  const auto slow = co_await ask(wide.get(), kMuteFrame, "no answer in time", soon());
  EXPECT_EQ(slow.error().fate(), Fate::outcome_unknown);
  EXPECT_EQ(slow.error(), Errc::timed_out);
  Result<std::string> orphan;
  rt::TaskScope last(*rt::Loop::current());
  EXPECT_TRUE(last.spawn(ask_into(wide.get(), kMuteFrame, "the client ends", &orphan)));
  wide->abort();
  EXPECT_TRUE(co_await last.join());
  EXPECT_EQ(orphan.error().fate(), Fate::outcome_unknown);
  const auto closed = co_await ask(wide.get(), kOne, "after the end");
  EXPECT_EQ(closed.error().fate(), Fate::not_sent);
}
TEST_F(FateTest, EachEndOfARequestSaysHowFarItCame) {
  script_.on_frame = echo_or_be_mute;
  run(end_in_every_way(listen()));
}

rt::Task<void> wait_for_a_pool() {
  PoolOptions options;
  options.waiting_max = 1;
  options.breaker = BreakerOptions{.failure_percent = 101, .failures_in_row = 1, .open_time = std::chrono::hours(1)};
  const auto pool =
      Pool::open(std::make_shared<ClientHost>(*rt::Core::current()), "tcp://127.0.0.1:1", options).value();
  Result<std::string> late;
  rt::TaskScope scope(*rt::Loop::current());
  EXPECT_TRUE(scope.spawn(ask_into(pool.get(), kOne, "in line", &late, soon())));
  const auto crowded = co_await ask(pool.get(), kOne, "behind");
  EXPECT_EQ(crowded.error().fate(), Fate::not_sent);
  EXPECT_TRUE(co_await scope.join());
  EXPECT_EQ(late.error().fate(), Fate::not_sent) << late.error().message();
  const auto refused = co_await ask(pool.get(), kOne, "by the breaker");
  EXPECT_EQ(refused.error(), Errc::unreachable);
  EXPECT_EQ(refused.error().fate(), Fate::not_sent);
}
TEST_F(FateTest, ARequestThatNoConnectionOfAPoolTookWasNotSent) {
  make_server();
  run(wait_for_a_pool());
}

// --- error frames ---

class ErrorFrameTest : public test::ClientFixture {
 protected:
  void SetUp() override {
    ClientFixture::SetUp();
    ASSERT_TRUE(dispatcher_.on(1, [](HeaderSession&, const HeaderCodec::Frame&) -> Result<void> {
      return Error(ErrorDomain("shop"), 7, "sold out");
    }));
    script_.on_frame = [this](HeaderSession& session, const HeaderCodec::Frame& frame) {
      dispatcher_.dispatch(session, frame);
    };
  }
  Dispatcher<HeaderSession> dispatcher_;  // of the only core, which has the session
};

rt::Task<void> read_refusals(std::string endpoint) {
  const auto client = open_client(endpoint);
  EXPECT_TRUE(co_await client->connected());
  const auto refused = co_await client->request(kOne, {});
  EXPECT_EQ(refused.error(), Error(kServiceDomain, 7));
  EXPECT_STREQ(refused.error().text(), "sold out");
  EXPECT_EQ(refused.error().fate(), Fate::answered);
  const auto unknown = co_await client->request({99, 0}, {});
  EXPECT_EQ(unknown.error(), frame_error(ErrorCode::unknown_message, ""));
  const auto raw = co_await client->request_raw(kOne, {});
  EXPECT_TRUE(raw && (raw->header().flags & kFlagError) != 0 && parse_error_body(raw->body())->text == "sold out");
  EXPECT_EQ(client->requests().answered.value(), 3u);
  EXPECT_EQ(client->requests().error_frames.value(), 3u);
}
TEST_F(ErrorFrameTest, AnErrorFrameIsAnErrorAndTheFrameIsThereOnRequest) { run(read_refusals(listen())); }

rt::Task<void> be_refused_by_a_pool(std::string endpoint) {
  PoolOptions options;
  options.connections = 1;
  options.breaker = BreakerOptions{.failure_percent = 101, .failures_in_row = 3, .open_time = std::chrono::hours(1)};
  const auto host = std::make_shared<ClientHost>(*rt::Core::current());
  const auto pool = Pool::open(host, endpoint, options).value();
  EXPECT_TRUE(co_await pool->client(0).connected());
  for (int i = 0; i < 3; ++i) {
    const auto refused = co_await pool->request(kOne, {});
    EXPECT_EQ(refused.error(), Error(kServiceDomain, 7));
  }
  const auto open = co_await pool->request(kOne, {});
  EXPECT_EQ(open.error(), Errc::unreachable);
  EXPECT_EQ(pool->breaker()->openings(), 1u);

  options.judge = [](const Error& error) {
    return error.domain() == kServiceDomain ? CircuitBreaker::Outcome::success : outcome_of(error);
  };
  const auto lenient = Pool::open(host, endpoint, options).value();
  EXPECT_TRUE(co_await lenient->client(0).connected());
  for (int i = 0; i < 5; ++i) {
    const auto refused = co_await lenient->request(kOne, {});
    EXPECT_EQ(refused.error(), Error(kServiceDomain, 7));
  }
}
TEST_F(ErrorFrameTest, ThatAServiceRefusesOpensTheBreakerOfAPoolUnlessItsJudgeSaysOtherwise) {
  run(be_refused_by_a_pool(listen()));
}

rt::Task<void> probe_by_a_refusal(std::string endpoint) {
  PoolOptions options;
  options.connections = 1;
  options.client.connect_timeout = test::kLong;  // the only attempt
  options.client.reconnect_first = options.client.reconnect_max = std::chrono::hours(1);
  const auto probe = [](HeaderClient& client) -> rt::Task<Result<void>> {
    WEFT_CO_TRY(co_await client.request(kOne, {}));
    co_return Result<void>();
  };
  const auto pool = Pool::open(std::make_shared<ClientHost>(*rt::Core::current()), endpoint, options, probe).value();
  while (pool->counts().probe_failures.value() == 0) {
    EXPECT_TRUE(co_await rt::yield());
  }
  EXPECT_EQ(pool->healthy(), 0u);
}
TEST_F(ErrorFrameTest, AProbeThatIsAnsweredByOneFails) { run(probe_by_a_refusal(listen())); }

}  // namespace
}  // namespace weft::serve
