// SPDX-License-Identifier: MIT
#include "weft/serve/rpc/balanced_client.h"

#include <array>
#include <atomic>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "weft/rt/task/task_group.h"
#include "weft/rt/task/task_time.h"
#include "weft/serve/rpc/test_rpc.h"
#include <gtest/gtest.h>

namespace weft::serve::rpc {
namespace {

using std::chrono::milliseconds;

using Look = Method<"store.look", std::string, std::string>;
using LookAgain = Idempotent<Look>;

// The way of an endpoint with a call.
enum class Way : std::size_t { answers, is_busy, aborts, waits };

// Listeners of one server, each with a way of its own.
class BalancedClientTest : public test::RpcFixture {
 protected:
  std::string serve_by(Way way) {
    if (server_ == nullptr) {
      make_server();
    }
    Methods methods;
    EXPECT_TRUE(methods.add<Look>([this, way](const std::string& text, Call& call) -> rt::Task<Result<std::string>> {
      ++ran_[static_cast<std::size_t>(way)];
      switch (way) {
        case Way::answers: break;
        case Way::is_busy: co_return status_error(Status::busy, "busy");
        case Way::aborts: call.session().abort(); break;
        case Way::waits: {
          const Result<void> slept = co_await rt::sleep(2 * test::kLong);
          if (!slept) {
            co_return slept.error();
          }
          break;
        }
      }
      co_return text;
    }));
    services_.emplace_back(std::move(methods));
    const auto bound = rpc::listen(*server_, "tcp://127.0.0.1:0", services_.back());
    EXPECT_TRUE(bound) << bound.error().message();
    return bound.value_or("");
  }
  std::vector<std::string> serve_by(std::vector<Way> ways) {
    std::vector<std::string> endpoints;
    for (const Way way : ways) {
      endpoints.push_back(serve_by(way));
    }
    return endpoints;
  }
  static BalancedOptions patient() {
    BalancedOptions options;
    options.client.connection.reconnect_first = milliseconds(1);
    options.client.connection.reconnect_max = milliseconds(5);
    options.client.connection.connect_timeout = test::kLong;
    options.client.timeout = test::kLong;
    options.retry_first = milliseconds(1);
    return options;
  }
  static std::unique_ptr<BalancedClient> open(const std::vector<std::string>& endpoints,
                                              const BalancedOptions& options = patient()) {
    auto client = BalancedClient::open(std::make_shared<ClientHost>(*rt::Core::current()), endpoints, options);
    EXPECT_TRUE(client) << client.error().message();
    return std::move(client).value();
  }
  // Until all endpoints are connected.
  static rt::Task<void> connect_all(BalancedClient* client) {
    for (std::size_t i = 0; i < client->size(); ++i) {
      co_await test::await_connection(&client->client(i));
    }
  }
  [[nodiscard]] int ran(Way way) const { return ran_[static_cast<std::size_t>(way)]; }

  std::array<std::atomic<int>, 4> ran_{};
  std::deque<Service> services_;
};

template <typename M>
rt::Task<void> look_into(BalancedClient* client, Result<std::string>* into, BalancedCall options = {}) {
  const std::string text = "text";
  *into = co_await client->call<M>(text, options);
}

TEST_F(BalancedClientTest, IsRefusedWithoutEndpointsOrAttempts) {
  run([]() -> rt::Task<void> {
    const auto host = std::make_shared<ClientHost>(*rt::Core::current());
    BalancedOptions none;
    none.attempts = 0;
    EXPECT_EQ(BalancedClient::open(host, {}).error(), Errc::invalid_argument);
    EXPECT_EQ(BalancedClient::open(host, std::vector<std::string>(257, "tcp://127.0.0.1:1")).error(),
              Errc::invalid_argument);
    EXPECT_EQ(BalancedClient::open(host, {"tcp://127.0.0.1:1"}, none).error(), Errc::invalid_argument);
    EXPECT_EQ(BalancedClient::open(host, {"tcp://127.0.0.1:1", "udp://127.0.0.1:1"}).error(), Errc::not_supported);
    co_return;
  }());
}

rt::Task<void> call_many(std::vector<std::string> endpoints, BalancedOptions options, int calls,
                         rt::Task<void> (*connect)(BalancedClient*), BalancedCounts* counts) {
  const auto host = std::make_shared<ClientHost>(*rt::Core::current());
  auto client = BalancedClient::open(host, endpoints, options).value();
  co_await connect(client.get());
  for (int i = 0; i < calls; ++i) {
    Result<std::string> answer = Error(Errc::would_block);
    co_await look_into<Look>(client.get(), &answer);
    EXPECT_EQ(answer, "text");
  }
  counts->calls.add(client->counts().calls.value());
  counts->retries.add(client->counts().retries.value());
  counts->ejections.add(client->counts().ejections.value());
  const auto closed = co_await client->close(test::in_long());
  EXPECT_TRUE(closed) << closed.error().message();
}

TEST_F(BalancedClientTest, EachEndpointGetsCalls) {
  BalancedCounts counts;
  run(call_many(serve_by({Way::answers, Way::answers, Way::answers}), patient(), 60, connect_all, &counts));
  EXPECT_EQ(counts.calls.value(), 60u);
  for (const Service& service : services_) {
    EXPECT_GT(service.counts().answered, 0u);
  }
}

TEST_F(BalancedClientTest, ABusyServerIsLeftForAnotherOneAndEjected) {
  BalancedOptions options = patient();
  options.choice.failures_in_row = 1;
  options.choice.eject_first = options.choice.eject_max = std::chrono::hours(1);
  BalancedCounts counts;
  run(call_many(serve_by({Way::is_busy, Way::answers}), options, 50, connect_all, &counts));
  EXPECT_EQ(ran(Way::is_busy), 1);  // it was unknown, so one of the first two calls tried it
  EXPECT_EQ(counts.retries.value(), 1u);
  EXPECT_EQ(counts.ejections.value(), 1u);
}

rt::Task<void> lose_calls(std::vector<std::string> endpoints, BalancedOptions options,
                          rt::Task<void> (*connect)(BalancedClient*), std::atomic<int>* ran) {
  const auto host = std::make_shared<ClientHost>(*rt::Core::current());
  auto client = BalancedClient::open(host, endpoints, options).value();
  co_await connect(client.get());
  RetryRule rule = RetryRule::none;
  BalancedCall call;
  call.rule = &rule;
  call.wait_for_ready = true;
  Result<std::string> answer = Error(Errc::would_block);
  co_await look_into<Look>(client.get(), &answer, call);
  EXPECT_FALSE(answer);
  EXPECT_EQ(answer.error().fate(), Fate::outcome_unknown);
  EXPECT_EQ(rule, RetryRule::idempotence);
  EXPECT_EQ(*ran, 1);
  co_await look_into<LookAgain>(client.get(), &answer, call);
  EXPECT_FALSE(answer);
  EXPECT_EQ(answer.error().fate(), Fate::outcome_unknown);
  EXPECT_EQ(rule, RetryRule::attempts);
  EXPECT_EQ(*ran, 4);
  EXPECT_EQ(client->counts().failed_idempotence.value(), 1u);
  EXPECT_EQ(client->counts().failed_attempts.value(), 1u);
}

TEST_F(BalancedClientTest, ALostCallIsRepeatedOnlyIfItsMethodIsIdempotent) {
  run(lose_calls(serve_by(std::vector<Way>{Way::aborts}), patient(), connect_all,
                 &ran_[static_cast<std::size_t>(Way::aborts)]));
}

rt::Task<void> spend_budget(std::vector<std::string> endpoints, BalancedOptions options,
                            rt::Task<void> (*connect)(BalancedClient*)) {
  const auto host = std::make_shared<ClientHost>(*rt::Core::current());
  auto client = BalancedClient::open(host, endpoints, options).value();
  co_await connect(client.get());
  RetryRule rule = RetryRule::none;
  BalancedCall call;
  call.rule = &rule;
  for (int i = 0; i < 3; ++i) {
    Result<std::string> answer = Error(Errc::would_block);
    co_await look_into<Look>(client.get(), &answer, call);
    EXPECT_TRUE(!answer && is_busy(answer.error()));
    EXPECT_EQ(rule, RetryRule::budget);
  }
  EXPECT_EQ(client->counts().retries.value(), 2u);
}

TEST_F(BalancedClientTest, TheBudgetBoundsTheRetriesOfAllCalls) {
  BalancedOptions options = patient();
  options.attempts = 100;
  options.retry_percent = 0;
  options.retries_max = 2;
  run(spend_budget(serve_by(std::vector<Way>{Way::is_busy}), options, connect_all));
  EXPECT_EQ(ran(Way::is_busy), 5);
}

rt::Task<void> call_late(std::vector<std::string> endpoints, BalancedOptions options,
                         rt::Task<void> (*connect)(BalancedClient*)) {
  const auto host = std::make_shared<ClientHost>(*rt::Core::current());
  auto client = BalancedClient::open(host, endpoints, options).value();
  co_await connect(client.get());
  RetryRule rule = RetryRule::none;
  BalancedCall call;
  call.rule = &rule;
  call.timeout = milliseconds(5);
  Result<std::string> answer = Error(Errc::would_block);
  co_await look_into<LookAgain>(client.get(), &answer, call);
  EXPECT_EQ(answer.error(), Errc::timed_out);
  EXPECT_TRUE(rule == RetryRule::deadline || rule == RetryRule::answered) << describe(rule);  // by either end's clock
}

TEST_F(BalancedClientTest, AllAttemptsOfACallHaveOneDeadline) {
  run(call_late(serve_by({Way::waits, Way::waits}), patient(), connect_all));
}

rt::Task<void> hedge_calls(std::vector<std::string> endpoints, BalancedOptions options,
                           rt::Task<void> (*connect)(BalancedClient*), const Service* slow) {
  const auto host = std::make_shared<ClientHost>(*rt::Core::current());
  auto client = BalancedClient::open(host, endpoints, options).value();
  co_await connect(client.get());
  BalancedCall call;
  call.hedge_after = milliseconds(1);
  for (int i = 0; i < 5; ++i) {
    Result<std::string> answer = Error(Errc::would_block);
    co_await look_into<LookAgain>(client.get(), &answer, call);
    EXPECT_EQ(answer, "text");
  }
  EXPECT_GE(client->counts().hedges_won.value(), 4u);  // the endpoint without an answer is tried again and again
  for (const Instant limit = test::in_long(); slow->counts().cancelled == 0 && sys::now() < limit;) {
    (void)co_await rt::sleep(milliseconds(1));
  }
  EXPECT_GT(slow->counts().cancelled, 0u);
  Result<std::string> refused = Error(Errc::would_block);
  co_await look_into<Look>(client.get(), &refused, call);
  EXPECT_EQ(refused.error(), Errc::invalid_argument);
}

TEST_F(BalancedClientTest, AHedgeAnswersInsteadOfASlowEndpointWhichIsToldToStop) {
  const auto endpoints = serve_by({Way::waits, Way::answers});
  run(hedge_calls(endpoints, patient(), connect_all, &services_.front()));
}

rt::Task<void> find_no_endpoint(BalancedOptions options) {
  const auto host = std::make_shared<ClientHost>(*rt::Core::current());
  auto client = BalancedClient::open(host, {"ipc:///nowhere/at/all"}, options).value();
  RetryRule rule = RetryRule::none;
  BalancedCall call;
  call.rule = &rule;
  Result<std::string> answer = Error(Errc::would_block);
  co_await look_into<LookAgain>(client.get(), &answer, call);
  EXPECT_EQ(answer.error(), Errc::unreachable);
  EXPECT_EQ(answer.error().fate(), Fate::not_sent);
  EXPECT_EQ(rule, RetryRule::endpoint);
  call.wait_for_ready = true;
  call.timeout = milliseconds(5);
  co_await look_into<LookAgain>(client.get(), &answer, call);
  EXPECT_EQ(answer.error(), Errc::timed_out);
  EXPECT_EQ(answer.error().fate(), Fate::not_sent);
  EXPECT_EQ(rule, RetryRule::endpoint);
  EXPECT_EQ(client->counts().failed_endpoint.value(), 2u);
}

TEST_F(BalancedClientTest, WithoutAnEndpointACallFailsAtOnceOrWaits) { run(find_no_endpoint(patient())); }

rt::Task<void> call_before_the_connection(std::vector<std::string> endpoints, BalancedOptions options) {
  const auto host = std::make_shared<ClientHost>(*rt::Core::current());
  auto client = BalancedClient::open(host, endpoints, options).value();
  BalancedCall call;
  call.wait_for_ready = true;
  Result<std::string> answer = Error(Errc::would_block);
  co_await look_into<Look>(client.get(), &answer, call);
  EXPECT_EQ(answer, "text");
}

TEST_F(BalancedClientTest, ACallMayWaitForAConnection) {
  run(call_before_the_connection(serve_by(std::vector<Way>{Way::answers}), patient()));
}

rt::Task<void> end_early(std::unique_ptr<BalancedClient>* client, bool close, std::atomic<int>* ran) {
  while (*ran == 0) {
    (void)co_await rt::sleep(milliseconds(1));
  }
  if (close) {
    const auto closed = co_await (*client)->close(sys::now());
    EXPECT_EQ(closed.error(), Errc::timed_out);
  }
  client->reset();
}
rt::Task<void> call_beside_the_end(std::vector<std::string> endpoints, BalancedOptions options, bool close,
                                   rt::Task<void> (*connect)(BalancedClient*), std::atomic<int>* ran) {
  const auto host = std::make_shared<ClientHost>(*rt::Core::current());
  auto client = BalancedClient::open(host, endpoints, options).value();
  co_await connect(client.get());
  *ran = 0;
  BalancedCall call;
  call.hedge_after = milliseconds(1);
  Result<std::string> answer = Error(Errc::would_block);
  rt::Task<void> looking = look_into<LookAgain>(client.get(), &answer, call);
  rt::Task<void> ending = end_early(&client, close, ran);
  co_await rt::when_all(std::move(looking), std::move(ending));
  EXPECT_FALSE(answer);
  EXPECT_TRUE(answer.error() == Errc::closed || answer.error() == Errc::timed_out) << answer.error().message();
}

TEST_F(BalancedClientTest, AClientMayEndBesideItsCalls) {
  const auto endpoints = serve_by({Way::waits, Way::waits});
  for (const bool close : {false, true}) {
    run(call_beside_the_end(endpoints, patient(), close, connect_all, &ran_[static_cast<std::size_t>(Way::waits)]));
  }
}

}  // namespace
}  // namespace weft::serve::rpc
