// SPDX-License-Identifier: MIT
#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "weft/base/random.h"
#include "weft/rt/core/core_task.h"
#include "weft/rt/task/task_scope.h"
#include "weft/rt/task/task_time.h"
#include "weft/serve/rpc/test_rpc.h"
#include <gtest/gtest.h>

namespace weft::serve::rpc {
namespace {

using namespace std::chrono_literals;
using test::open_rpc;

// Any mixture of handlers, deadlines, cancels and lost connections, on two cores: each call has one outcome at each
// end, and an answer is that of its own call.
using Plain = Method<"plain", std::string, std::string>;
using Slow = Method<"slow", std::string, std::string, 1>;

struct Outcomes {
  std::atomic<std::uint64_t> answered{0};
  std::atomic<std::uint64_t> failed{0};
  std::atomic<std::uint64_t> wrong{0};
};

rt::Task<void> storm_once(Client* client, std::string text, CallOptions options, bool slow, Outcomes* outcomes) {
  Result<std::string> answer;
  if (slow) {
    answer = co_await client->call<Slow>(text, options);
  } else {
    answer = co_await client->call<Plain>(text, options);
  }
  if (!answer) {
    ++outcomes->failed;
  } else {
    ++(*answer == text ? outcomes->answered : outcomes->wrong);
  }
}

struct ClientSums {
  std::atomic<std::uint64_t> sent{0};
  std::atomic<std::uint64_t> ended{0};
};

rt::Task<void> storm_client(std::string endpoint, std::uint64_t seed, int rounds, Outcomes* outcomes,
                            ClientSums* sums) {
  Random random(seed);
  const auto client = open_rpc(endpoint);
  for (int round = 0; round < rounds; ++round) {
    co_await test::await_connection(client.get());
    rt::TaskScope kept(*rt::Loop::current());
    rt::TaskScope cancelled(*rt::Loop::current());
    for (int i = 0; i < 20; ++i) {
      CallOptions options;
      if (random.below(4) == 0) {
        options.timeout = std::chrono::microseconds(random.below(2000));
      }
      const std::string text = std::to_string(seed) + '/' + std::to_string(round) + '/' + std::to_string(i);
      rt::TaskScope& scope = random.below(4) == 0 ? cancelled : kept;
      const auto spawned = scope.spawn(storm_once(client.get(), text, options, random.below(2) == 0, outcomes));
      EXPECT_TRUE(spawned);
    }
    if (random.below(2) == 0) {
      const auto turn = co_await rt::yield();
      EXPECT_TRUE(turn);
    }
    cancelled.cancel();
    if (random.below(8) == 0) {
      client->connection().drop_connection(Error(Errc::connection_closed, "dropped by the test"));
    }
    const auto joined = co_await kept.join();
    const auto gone = co_await cancelled.join();
    EXPECT_TRUE(joined);
    EXPECT_TRUE(gone);
  }
  co_await test::end_client(client.get());
  const RequestCounts& counts = client->connection().requests();
  sums->sent += counts.sent.value();
  sums->ended += counts.answered.value() + counts.timed_out.value() + counts.cancelled.value() + counts.lost.value();
}

class RpcStorm : public test::RpcFixture {};

TEST_F(RpcStorm, EachCallHasOneOutcomeAtEachEnd) {
  Methods methods;
  ASSERT_TRUE(methods.add<Plain>([](const std::string& text) { return text; }));
  ASSERT_TRUE(methods.add<Slow>([](const std::string& text) -> rt::Task<Result<std::string>> {
    for (std::size_t turns = text.size() % 5; turns > 0; --turns) {
      WEFT_CO_TRY(co_await rt::sleep(50us));
    }
    co_return text;
  }));
  ServiceOptions limits;
  limits.calls_max = 16;
  const std::string endpoint = serve(std::move(methods), limits);
  constexpr int kClients = 6;
  constexpr int kRounds = 20;
  Outcomes outcomes;
  ClientSums sums;
  std::vector<rt::Future<void>> futures;
  for (unsigned i = 0; i < kClients; ++i) {
    auto spawned = rt::spawn(runtime_->core(i % 2), storm_client(endpoint, i, kRounds, &outcomes, &sums));
    ASSERT_TRUE(spawned);
    futures.push_back(std::move(*spawned));
  }
  for (auto& future : futures) {
    ASSERT_TRUE(future.wait_until(sys::now() + 4 * test::kLong));
    const auto ended = future.get();
    EXPECT_TRUE(ended) << ended.error().message();
  }
  EXPECT_EQ(outcomes.wrong, 0u);
  EXPECT_EQ(outcomes.answered + outcomes.failed, std::uint64_t{kClients} * kRounds * 20);
  EXPECT_GT(outcomes.answered, 0u);
  EXPECT_EQ(sums.sent, sums.ended);
  (void)stop_now();
  const RpcCounts counts = service_->counts();
  const std::uint64_t requests = counts.answered + counts.refused + counts.failed + counts.unknown + counts.invalid +
                                 counts.timed_out + counts.cancelled + counts.lost + counts.busy + counts.too_large +
                                 counts.unsent;
  EXPECT_GE(counts.answered, outcomes.answered.load());
  EXPECT_LE(requests, sums.sent.load());
  EXPECT_EQ(counts.duplicates + counts.unasked + counts.failed + counts.unknown + counts.invalid, 0u);
  // Each frame was a request with one outcome, or a cancel.
  EXPECT_EQ(requests + counts.cancels_late + counts.cancelled, server_->counters().frames_in);
}

}  // namespace
}  // namespace weft::serve::rpc
