// SPDX-License-Identifier: MIT
#include "weft/serve/client/client_pool.h"

#include <atomic>
#include <string>
#include <vector>

#include "weft/serve/client/test_serve_client.h"
#include <gtest/gtest.h>

namespace weft::serve {
namespace {

using test::ask;
using test::ask_into;
using test::echo;
using test::HeaderClient;
using test::HeaderSession;
using test::in_long;
using test::kLong;
using test::kOne;
using test::Signal;
using test::soon;
using Pool = ClientPool<HeaderCodec>;
using Texts = std::vector<Result<std::string>>;

std::unique_ptr<Pool> open_pool(const std::string& endpoint, PoolOptions options = {}, Pool::Probe probe = {}) {
  options.client.reconnect_first = std::chrono::milliseconds(2);
  options.client.reconnect_max = std::chrono::milliseconds(20);
  options.client.connect_timeout = kLong;  // a busy machine may need that long, and for a probe
  if (options.probe_timeout == PoolOptions().probe_timeout) {
    options.probe_timeout = kLong;
  }
  options.probe_every = std::chrono::hours(1);  // each connection has one probe
  auto pool =
      Pool::open(std::make_shared<ClientHost>(*rt::Core::current()), endpoint, std::move(options), std::move(probe));
  EXPECT_TRUE(pool) << pool.error().message();
  return std::move(pool).value();
}

// Sends a request over the client that it gets, and reads the answer.
rt::Task<Result<void>> probe_by_asking(HeaderClient& client) {
  const auto answer = co_await ask(&client, {2, 0}, "are you well?");
  if (!answer) {
    co_return answer.error();
  }
  co_return *answer == "are you well?" ? Result<void>() : Result<void>(Error(Errc::protocol_error, "no"));
}

class ClientPoolTest : public test::ClientFixture {
 protected:
  void SetUp() override {
    ClientFixture::SetUp();
    script_.on_open = [this](HeaderSession&) {
      const int open = open_.fetch_add(1) + 1;
      for (int most = most_open_.load(); most < open && !most_open_.compare_exchange_weak(most, open);) {
      }
    };
    script_.on_close = [this](HeaderSession&, const Error&) { open_.fetch_sub(1); };
  }

  std::atomic<int> open_{0};  // open sessions of the server
  std::atomic<int> most_open_{0};
};

// Every connection of the pool must connect and serve.
TEST_F(ClientPoolTest, AllConnectionsAreMadeAndServe) {
  script_.on_frame = echo;
  const auto live = [](std::string endpoint) -> rt::Task<void> {
    const auto pool = open_pool(endpoint, {}, probe_by_asking);
    for (std::size_t i = 0; i < pool->size(); ++i) {
      EXPECT_TRUE(co_await pool->client(i).connected());
    }
    while (pool->healthy() != 4) {
      EXPECT_TRUE(co_await rt::yield());
    }
    Texts texts(100);
    rt::TaskScope scope(*rt::Loop::current());
    for (auto& text : texts) {
      EXPECT_TRUE(scope.spawn(ask_into(pool.get(), kOne, "x", &text)));
    }
    EXPECT_TRUE(co_await scope.join());
    EXPECT_EQ(texts, Texts(100, std::string("x")));
    for (std::size_t i = 0; i < pool->size(); ++i) {
      EXPECT_EQ(pool->client(i).requests().answered.value(), 26u);  // 25 requests and the probe
    }
    EXPECT_TRUE(co_await pool->close(in_long()));
    const auto refused = co_await ask(pool.get(), kOne, "closed");
    EXPECT_EQ(refused.error(), Errc::closed);
  };
  run(live(listen()));
  EXPECT_EQ(most_open_, 4);
}

// Waits for the condition, for as long as a busy machine may need.
template <typename Condition>
rt::Task<void> until_true(Condition condition) {
  for (const Instant limit = in_long(); !condition() && sys::now() < limit;) {
    (void)co_await rt::sleep(std::chrono::milliseconds(1));
  }
  EXPECT_TRUE(condition());
}

// `count` requests at once, each of which occupies a connection until all have one.
rt::Task<void> use_connections(Pool* pool, std::size_t count) {
  Texts texts(count);
  rt::TaskScope scope(*rt::Loop::current());
  for (auto& text : texts) {
    EXPECT_TRUE(scope.spawn(ask_into(pool, kOne, "held", &text)));
  }
  const auto all_held = [pool, count] {
    std::size_t held = 0;
    for (std::size_t i = 0; i < pool->size(); ++i) {
      held += pool->client(i).in_flight();
    }
    return held == count && pool->waiting() == 0;
  };
  co_await until_true(all_held);
  EXPECT_EQ(pool->size(), count);
  for (std::size_t i = 0; i < pool->size(); ++i) {
    EXPECT_TRUE(pool->client(i).send({9, 0}, {}));
  }
  EXPECT_TRUE(co_await scope.join());
  EXPECT_EQ(texts, Texts(count, std::string("late")));
}

TEST_F(ClientPoolTest, ARequestThatWaitsAddsAConnectionAndIdleOnesEnd) {
  script_.on_frame = [](HeaderSession& session, const HeaderCodec::Frame& frame) {
    if (frame.header.id == 9) {
      (void)session.send(kOne, as_bytes("late"));
    } else if (as_text(frame.body) != "held") {
      echo(session, frame);
    }
  };
  const auto live = [](std::string endpoint, Pool::Probe probe, const std::atomic<int>* open) -> rt::Task<void> {
    PoolOptions options;
    options.connections = 3;
    options.connections_min = 1;
    options.idle_timeout = std::chrono::milliseconds(20);
    options.client.in_flight_max = 1;
    const auto pool = open_pool(endpoint, options, probe);
    EXPECT_EQ(pool->size(), 1u);
    for (const std::uint64_t round : {1u, 2u}) {
      co_await use_connections(pool.get(), 3);
      co_await until_true([&] { return pool->size() == 1 && *open == 1; });
      EXPECT_EQ(pool->counts().evictions.value(), 2 * round);
      // The page has the requests of the connections that ended.
      CounterReadings readings;
      pool->counter_source()("pool", readings);
      std::uint64_t answered = 0;
      for (const CounterReading& reading : readings) {
        for (std::size_t row = 0; row < reading.values.size(); ++row) {
          const bool counts = reading.table->thing == "client" && reading.table->rows[row].member == "answered";
          answered += counts ? reading.values[row] : 0;
        }
      }
      EXPECT_EQ(answered, 3 * round + pool->counts().probes.value());
    }
    EXPECT_TRUE(co_await pool->close(in_long()));
  };
  const std::string endpoint = listen();
  run(live(endpoint, {}, &open_));
  EXPECT_EQ(most_open_, 3);
  run(live(endpoint, probe_by_asking, &open_));
}

TEST_F(ClientPoolTest, TheMinimumIsBetweenOneAndAll) {
  const auto open = [](std::uint32_t least) -> rt::Task<void> {
    PoolOptions options;
    options.connections_min = least;
    const auto host = std::make_shared<ClientHost>(*rt::Core::current());
    EXPECT_EQ(Pool::open(host, "tcp://127.0.0.1:1", options).error(), Errc::invalid_argument);
    co_return;
  };
  run(open(0));
  run(open(5));
}

TEST_F(ClientPoolTest, TheConnectionWithTheLeastInFlightIsTaken) {
  script_.on_frame = [](HeaderSession& session, const HeaderCodec::Frame& frame) {
    if (as_text(frame.body) != "held") {
      echo(session, frame);
    }
  };
  const auto live = [](std::string endpoint) -> rt::Task<void> {
    PoolOptions options;
    options.connections = 2;
    const auto pool = open_pool(endpoint, options);
    EXPECT_TRUE(co_await pool->client(0).connected());
    EXPECT_TRUE(co_await pool->client(1).connected());
    Texts held(3);
    rt::TaskScope scope(*rt::Loop::current());
    for (auto& text : held) {
      EXPECT_TRUE(scope.spawn(ask_into(&pool->client(1), {3, 0}, "held", &text)));
    }
    for (int i = 0; i < 10; ++i) {
      const auto answer = co_await ask(pool.get(), kOne, "quick");
      EXPECT_EQ(answer, "quick");
    }
    EXPECT_EQ(pool->client(0).requests().answered.value(), 10u);
    EXPECT_EQ(pool->client(1).requests().answered.value(), 0u);
    scope.cancel();
    (void)co_await scope.join();
  };
  run(live(listen()));
}

TEST_F(ClientPoolTest, ARequestWithoutRoomWaitsInTurnAndNotForEver) {
  std::vector<std::string> order;  // as they reached the server
  int held = 0;
  script_.on_frame = [&](HeaderSession& session, const HeaderCodec::Frame& frame) {
    if (frame.header.id == 9) {  // this frame releases one
      held -= 1;
      (void)session.send(kOne, as_bytes(order[order.size() - 1]));
      return;
    }
    order.emplace_back(as_text(frame.body));
    if (++held > 2) {
      ADD_FAILURE() << "more in flight than there may be";
    }
    if (order.size() > 2) {
      --held;
      echo(session, frame);
    }
  };
  const auto live = [](std::string endpoint, std::vector<std::string>* came) -> rt::Task<void> {
    PoolOptions options;
    options.connections = 1;
    options.waiting_max = 3;
    options.client.in_flight_max = 2;
    const auto pool = open_pool(endpoint, options);
    EXPECT_TRUE(co_await pool->client(0).connected());
    Texts texts(5);
    rt::TaskScope scope(*rt::Loop::current());
    for (std::size_t i = 0; i < texts.size(); ++i) {
      EXPECT_TRUE(scope.spawn(ask_into(pool.get(), kOne, std::to_string(i), &texts[i])));
    }
    EXPECT_EQ(pool->waiting(), 3u);
    const auto refused = co_await ask(pool.get(), kOne, "one too many");
    EXPECT_EQ(refused.error(), Errc::resource_exhausted);
    EXPECT_EQ(pool->counts().refused.value(), 1u);
    EXPECT_TRUE(pool->client(0).send({9, 0}, {}));
    while (scope.size() > 1) {
      EXPECT_TRUE(co_await rt::yield());
    }
    EXPECT_TRUE(pool->client(0).send({9, 0}, {}));
    EXPECT_TRUE(co_await scope.join());
    EXPECT_EQ(*came, (std::vector<std::string>{"0", "1", "2", "3", "4"}));
    EXPECT_EQ(pool->counts().waited.value(), 3u);
    EXPECT_EQ(pool->waiting(), 0u);
  };
  run(live(listen(), &order));
}

// The ids keep their order: a request that was given up keeps its place until its response came.
TEST_F(ClientPoolTest, LateResponsesMakeRoomForAllRequestsThatWait) {
  constexpr std::uint32_t kHeld = 1, kLate = 2, kTogether = 3, kRelease = 9;
  int late = 0;
  int together = 0;
  script_.on_frame = [&](HeaderSession& session, const HeaderCodec::Frame& frame) {
    late += frame.header.id == kLate ? 1 : 0;
    for (; frame.header.id == kRelease && late != 0; --late) {
      (void)session.send({kLate, 0}, as_bytes("late"));
    }
    together += frame.header.id == kTogether ? 1 : 0;
    for (int i = 0; together == 3 && i < 3; ++i) {
      (void)session.send({kTogether, 0}, as_bytes("together"));
    }
  };
  const auto live = [](std::string endpoint) -> rt::Task<void> {
    PoolOptions options;
    options.connections = 1;
    options.client.in_flight_max = 4;
    options.client.late_max = Duration(-1);
    const auto pool = open_pool(endpoint, options);
    EXPECT_TRUE(co_await pool->client(0).connected());
    Result<std::string> held = Error(Errc::closed);
    rt::TaskScope holding(*rt::Loop::current());
    EXPECT_TRUE(holding.spawn(ask_into(pool.get(), FrameHeader{kHeld, 0}, "held", &held)));
    Texts texts(6);
    rt::TaskScope given_up(*rt::Loop::current());
    rt::TaskScope waiting(*rt::Loop::current());
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_TRUE(given_up.spawn(ask_into(pool.get(), FrameHeader{kLate, 0}, "?", &texts[i], soon())));
    }
    EXPECT_TRUE(co_await given_up.join());
    const Instant deadline = in_long();
    for (std::size_t i = 3; i < 6; ++i) {
      EXPECT_TRUE(waiting.spawn(ask_into(pool.get(), FrameHeader{kTogether, 0}, "!", &texts[i], deadline)));
    }
    EXPECT_EQ(pool->waiting(), 3u);
    EXPECT_TRUE(pool->client(0).send({kRelease, 0}, {}));
    EXPECT_TRUE(co_await waiting.join());
    for (std::size_t i = 0; i < 6; ++i) {
      EXPECT_EQ(texts[i], i < 3 ? Result<std::string>(Error(Errc::timed_out)) : Result<std::string>("together"));
    }
    EXPECT_EQ(pool->waiting(), 0u);
    holding.cancel();
    (void)co_await holding.join();
  };
  run(live(listen()));
}

TEST_F(ClientPoolTest, ARequestThatWaitsIsAnsweredAtItsDeadlineWhenCancelledAndAtTheEnd) {
  const auto live = [](bool close) -> rt::Task<void> {
    PoolOptions options;
    options.connections = 2;
    rt::AsyncEvent told;
    options.client.on_event = [&told](const ClientEvent& /*event*/) { told.set(); };
    auto pool = open_pool("tcp://127.0.0.1:1", options);  // no listener on this port
    EXPECT_TRUE(co_await told.wait());
    const auto late = co_await ask(pool.get(), kOne, "x", soon());
    EXPECT_EQ(late.error(), Errc::unreachable);
    EXPECT_EQ(late.error().message().find("no such peer: not connected: connection failed: tcp://127.0.0.1:1"), 0u)
        << late.error().message();
    Texts texts(10);
    rt::TaskScope scope(*rt::Loop::current());
    rt::TaskScope cancelled(*rt::Loop::current());
    for (std::size_t i = 0; i < texts.size(); ++i) {
      EXPECT_TRUE((i < 5 ? scope : cancelled).spawn(ask_into(pool.get(), kOne, "x", &texts[i])));
    }
    EXPECT_EQ(pool->waiting(), 10u);
    cancelled.cancel();
    EXPECT_TRUE(co_await cancelled.join());
    EXPECT_EQ(pool->waiting(), 5u);
    if (close) {
      EXPECT_TRUE(co_await pool->close(in_long()));
    } else {
      pool.reset();
    }
    EXPECT_TRUE(co_await scope.join());
    for (std::size_t i = 0; i < texts.size(); ++i) {
      EXPECT_EQ(texts[i].error(), i < 5 ? Error(Errc::closed) : rt::kCancelled);
    }
  };
  run(live(true));
  run(live(false));
}

// A health check must read the answer.
TEST_F(ClientPoolTest, AConnectionWhoseProbeIsNotAnsweredWellIsReplacedAndGetsNoRequests) {
  std::atomic<int> sessions{0};
  std::atomic<int> asked_the_ill{0};
  auto opened = std::move(script_.on_open);
  script_.on_open = [&, opened](HeaderSession& session) {
    opened(session);
    // The first three sessions answer probes badly.
    session.set_context(sessions.fetch_add(1) < 3 ? &sessions : nullptr);
  };
  script_.on_frame = [&](HeaderSession& session, const HeaderCodec::Frame& frame) {
    if (session.context() == nullptr) {
      return echo(session, frame);
    }
    if (frame.header.id != 2) {
      asked_the_ill.fetch_add(1);
    }
    (void)session.send(frame.header, as_bytes("no"));
  };
  const auto live = [](std::string endpoint, const std::atomic<int>* open) -> rt::Task<void> {
    PoolOptions options;
    options.connections = 2;
    const auto pool = open_pool(endpoint, options, probe_by_asking);
    for (int i = 0; i < 20; ++i) {
      const auto answer = co_await ask(pool.get(), kOne, "x");
      EXPECT_EQ(answer, "x");
    }
    while (pool->healthy() != 2) {
      EXPECT_TRUE(co_await rt::yield());
    }
    EXPECT_EQ(pool->counts().probe_failures.value(), 3u);
    EXPECT_GE(pool->counts().probes.value(), 5u);
    // The server may see a new connection before the end of the old one.
    for (const Instant limit = in_long(); *open != 2 && sys::now() < limit;) {
      EXPECT_TRUE(co_await rt::yield());
    }
    EXPECT_EQ(*open, 2);
  };
  run(live(listen(), &open_));
  EXPECT_EQ(asked_the_ill, 0);
}

TEST_F(ClientPoolTest, AProbeThatGetsNoAnswerIsGivenUp) {
  std::atomic<int> sessions{0};
  script_.on_open = [&](HeaderSession& session) {
    session.set_context(sessions.fetch_add(1) == 0 ? &sessions : nullptr);
  };
  script_.on_frame = [](HeaderSession& session, const HeaderCodec::Frame& frame) {
    if (session.context() == nullptr) {
      echo(session, frame);
    }
  };
  const auto live = [](std::string endpoint) -> rt::Task<void> {
    PoolOptions options;
    options.connections = 1;
    options.probe_timeout = std::chrono::milliseconds(200);
    const auto pool = open_pool(endpoint, options, probe_by_asking);
    const auto answer = co_await ask(pool.get(), kOne, "x");
    EXPECT_EQ(answer, "x");
    EXPECT_GE(pool->counts().probe_failures.value(), 1u);
  };
  run(live(listen()));
}

TEST_F(ClientPoolTest, AProbeThatThrowsFails) {
  script_.on_frame = echo;
  const auto live = [](std::string endpoint) -> rt::Task<void> {
    PoolOptions options;
    options.connections = 1;
    const auto times = std::make_shared<int>(0);
    const auto pool = open_pool(endpoint, options, [times](HeaderClient& client) -> rt::Task<Result<void>> {
      if (++*times == 1) {
        throw std::runtime_error("probe");
      }
      return probe_by_asking(client);
    });
    const auto answer = co_await ask(pool.get(), kOne, "x");
    EXPECT_EQ(answer, "x");
    EXPECT_EQ(pool->counts().probe_failures.value(), 1u);
  };
  run(live(listen()));
}

TEST_F(ClientPoolTest, APoolComesBackWithItsServer) {
  script_.on_frame = echo;
  Signal answered;
  Signal restarted;
  const auto live = [](std::string endpoint, Signal* told) -> rt::Task<void> {
    const auto pool = open_pool(endpoint, {}, probe_by_asking);
    for (int i = 0; i < 3; ++i) {
      Result<std::string> answer = co_await ask(pool.get(), kOne, "before");
      EXPECT_TRUE(answer);
      told->give();
      while (pool->healthy() != 0) {
        (void)co_await rt::sleep(std::chrono::milliseconds(1));
      }
      told->give();
      answer = co_await ask(pool.get(), kOne, "after");  // waits for a connection
      EXPECT_EQ(answer, "after");
    }
  };
  auto done = rt::spawn(runtime_->core(0).loop(), live(listen(), &answered));
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(answered.take());
    ASSERT_TRUE(server_->stop(sys::now() + kLong));
    ASSERT_TRUE(answered.take());
    ASSERT_TRUE(server_->restart());
  }
  ASSERT_TRUE(done.wait_until(sys::now() + kLong));
}

// --- circuit breaker ---

TEST_F(ClientPoolTest, TheBreakerOpensWhenRequestsFailAndClosesWhenTheyAreAnsweredAgain) {
  std::atomic<bool> mute{true};
  script_.on_frame = [&](HeaderSession& session, const HeaderCodec::Frame& frame) {
    if (!mute) {
      echo(session, frame);
    }
  };
  const auto live = [](std::string endpoint, std::atomic<bool>* silent) -> rt::Task<void> {
    PoolOptions options;
    options.connections = 1;
    options.client.late_max = std::chrono::milliseconds(1);
    options.breaker = BreakerOptions{.failure_percent = 101, .failures_in_row = 3, .open_time = std::chrono::hours(1)};
    const auto pool = open_pool(endpoint, options);
    EXPECT_TRUE(co_await pool->client(0).connected());
    while (pool->breaker()->openings() == 0) {
      const auto none = co_await ask(pool.get(), kOne, "?", soon());
      EXPECT_FALSE(none);
    }
    const std::uint64_t sent = pool->client(0).requests().sent.value();
    for (int i = 0; i < 10; ++i) {
      const auto refused = co_await ask(pool.get(), kOne, "?");
      EXPECT_EQ(refused.error(), Errc::unreachable);
    }
    EXPECT_EQ(pool->client(0).requests().sent.value(), sent);  // no request was sent to the peer
    EXPECT_EQ(pool->counts().refused_open.value(), 10u);
    EXPECT_EQ(pool->counts().breaker_openings.value(), pool->breaker()->openings());
    *silent = false;
    const BreakerOptions soon_again{
        .failure_percent = 101, .failures_in_row = 1, .open_time = std::chrono::milliseconds(1)};
    *pool->breaker() = CircuitBreaker(soon_again);
    Result<std::string> answer = Error(Errc::unreachable);
    while (!answer) {  // spends the connections of the mute server, and the open time
      answer = co_await ask(pool.get(), kOne, "well", sys::now() + std::chrono::milliseconds(200));
      (void)co_await rt::sleep(std::chrono::milliseconds(1));
    }
    EXPECT_EQ(answer, "well");
  };
  run(live(listen(), &mute));
  (void)stop_now();  // before `mute` ends: a connection that was dropped may have frames that no core has read
}

}  // namespace
}  // namespace weft::serve
